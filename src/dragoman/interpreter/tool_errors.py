"""Errors about tools and calls, each with its JSON pointer into the client's document.

Before a request is sent, tools are parsed one by one, so that every error in their definitions is reported and not only
the first. If an upstream rejects a tool or a call, it is located in the client's own request.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct, structs

from dragoman.core.parts import ToolCall, ToolResult
from dragoman.core.problems import Kind, Problem
from dragoman.core.request import AnyTool, Request, Tool
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.ids import alias_id
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.schema.drafts import Fault
from dragoman.interpreter.tools import find_duplicates, find_faults_in
from dragoman.interpreter.undo import Undo
from dragoman.wire import json
from dragoman.wire.lookup import Document, lookup
from dragoman.wire.pointer import join, split


def explain_tools(problem: Problem, call: Call, dialect: Dialect) -> Problem:
    """Return a parser's error with all errors in the tool definitions, or with the code for an error in a tool call."""
    if problem.kind != "invalid_request" or problem.code is not None or not problem.where:
        return problem
    if any(problem.where.startswith(pointer) for pointer in dialect.pointers["tools"]):
        faults = find_all_faults(call, dialect)
        return build_problem(faults) if faults else problem
    if is_about_call(call.body, problem.where):
        return Problem("invalid_request", problem.message, where=problem.where, code=CALL_CODE)
    return problem


CODE = "invalid_tool"
_MAX_LISTED = 100


def build_problem(faults: list[Fault]) -> Problem:
    """Return one error that lists all errors in tool definitions."""
    listed = faults[:_MAX_LISTED]
    more = f"; and {len(faults) - len(listed)} more" if len(faults) > len(listed) else ""
    messages = "; ".join(f"{where}: {message}" for where, message in listed)
    count = "1 error" if len(faults) == 1 else f"{len(faults)} errors"
    message = f"{count} in the definitions of tools: {messages}{more}"
    return Problem("invalid_request", message, where=listed[0][0], code=CODE, violations=tuple(listed))


def find_tool_faults(tool: AnyTool, ledger: Ledger) -> list[Fault]:
    """Return the errors of one tool, with pointers into the document of `ledger`."""
    base = ledger.find_pointer("tool.parameters", tool)
    return [(base + at if in_schema else tool.where + at, message) for at, message, in_schema in find_faults_in(tool)]


_GROUPS = ("functionDeclarations", "function_declarations", "tools")
"""Fields of a tool that hold several functions."""


_MISSING = re.compile(r"missing required field `(\w+)`")


_MAX_ERRORS = 20


_ANY_NAME = "unnamed"


class _SingleTool(Struct, frozen=True):
    """One tool, to be parsed as the only tool of a request."""

    where: str
    """Its pointer in the caller's document."""
    own_where: str
    """Its pointer in the request that has only this tool."""
    member: str
    """The request field that holds it."""
    tool: Any

    def to_document(self, where: str) -> str:
        """Return the pointer in the caller's document for one in the request that has only this tool."""
        return self.where + where.removeprefix(self.own_where)


def find_all_faults(call: Call, dialect: Dialect) -> list[Fault]:
    """Return all errors in the tools of a request."""
    faults: list[Fault] = []
    tools: list[AnyTool] = []
    for alone in _split_tools(call.body, dialect):
        unread, read, ledger = _read_tool(alone, dialect)
        found = [*unread, *(fault for tool in read for fault in find_tool_faults(tool, ledger))]
        faults += [(alone.to_document(at), message) for at, message in found]
        if not unread:
            tools += [structs.replace(tool, where=alone.to_document(tool.where)) for tool in read]
    document = Document(call.body)
    exact = ((document.find(where), where, message) for where, message in faults)
    located = ((found[0] if found else where, message) for found, where, message in exact)
    return [*located, *find_duplicates(tuple(tools))]


def _split_tools(body: bytes, dialect: Dialect) -> Iterator[_SingleTool]:
    for candidate in dialect.pointers["tools"]:
        found = lookup(body, candidate)
        if found is None:
            continue
        pointer, raw = found
        member = split(pointer)[-1]
        tools = json.peek(raw)
        if not isinstance(tools, list):
            if tools is not None:
                yield _SingleTool(pointer, f"/{member}", member, tools)
            continue
        for index, tool in enumerate(cast("list[Any]", tools)):
            yield from _split_group(tool, f"{pointer}/{index}", member)


def _split_group(tool: Any, where: str, member: str) -> Iterator[_SingleTool]:
    members = json.as_object(tool)
    group = next((name for name in _GROUPS if isinstance(members.get(name), list) and members[name]), None)
    if group is None:
        yield _SingleTool(where, f"/{member}/0", member, [tool])
        return
    for index, one in enumerate(members[group]):
        yield _SingleTool(f"{where}/{group}/{index}", f"/{member}/0/{group}/0", member, [{**members, group: [one]}])


def _read_tool(alone: _SingleTool, dialect: Dialect) -> tuple[list[Fault], tuple[AnyTool, ...], Ledger]:
    """Return the parse errors of a tool, the tool without the wrong fields, and a ledger that finds its pointers."""
    faults: list[Fault] = []
    document: dict[str, Any] = {"model": "any", dialect.history: [], alone.member: alone.tool}
    while len(faults) < _MAX_ERRORS:
        body = json.encode(document)
        try:
            request = dialect.parse_request(Call(body, "any"))
        except Problem as problem:
            missing = _MISSING.search(problem.message)
            where = f"{problem.where}/{missing[1]}" if missing is not None else problem.where
            faults.append((where, problem.message))
            if not where.startswith(f"/{alone.member}") or not _repair_tool(document, where):
                break
        else:
            return faults, request.tools, Ledger(dialect.pointers, body)
    return faults, (), Ledger(dialect.pointers)


def _repair_tool(document: Any, where: str) -> bool:
    """Put a placeholder for a wrong or missing name, or remove any other wrong value; return whether it changed."""
    *above, last = split(where)
    value: Any = document
    for token in above:
        if isinstance(value, list):
            items = cast("list[Any]", value)
            value = items[int(token)] if token.isdecimal() and int(token) < len(items) else None
        else:
            value = cast("dict[str, Any]", value).get(token) if isinstance(value, dict) else None
    if isinstance(value, list) and last.isdecimal() and int(last) < len(cast("list[Any]", value)):
        del value[int(last)]
        return True
    if not isinstance(value, dict):
        return False
    members = cast("dict[str, Any]", value)
    if last == "name" and members.get(last) != _ANY_NAME:
        members[last] = _ANY_NAME
        return True
    return members.pop(last, None) is not None


CALL_CODE = "invalid_tool_call"
_REJECTION_KINDS: frozenset[Kind] = frozenset({"invalid_request", "unsupported"})
_PLACE = re.compile(r"\b(?:tools|messages|contents|input)(?:\.\w+|\[\w+\])+")
"""A path as vendors write it: `tools.0.custom.input_schema`, `tools[0].function_declarations[1].name`."""
_QUOTED = re.compile(r"['`\"]([^'`\"]+)['`\"]|: ([\w.:-]+)")
_ABOUT_TOOLS = re.compile(r"^tools\b|'tools'|\btool names?\b|function declaration|schema for function", re.IGNORECASE)
_ABOUT_CALLS = re.compile(
    r"tool_use|tool_result|tool_call|tool messages?\b|tool output|function[ _](?:call|response)\b|\bcall_id\b"
    r"|thought_signature|role 'tool'",
    re.IGNORECASE,
)
_NO_CALL = re.compile(r"function[ _]call(?:ing)?[ _](?:config|mode)|calling mode", re.IGNORECASE)
_CALLS = frozenset(
    {"tool_use", "tool_result", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"}
)
"""Types of content blocks and items that are a call or its result."""
_HOLDERS = frozenset(
    {"tool_calls", "tool_call_id", "function_call", "functionCall", "functionResponse", "function_response"}
)
"""Fields of messages and parts that mean that they are a call or its result."""
_SCHEMAS = frozenset({"parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema"})
_IDS = ("tool_call_id", "tool_use_id", "call_id", "id")


class SentRequest:
    """The request that was sent to an upstream, and how to find the client's own names for it."""

    def __init__(self, body: bytes, dialect: str, model: str, undo: Undo, server: str = "") -> None:
        self.document = json.peek(body)
        self.undo = undo
        self.traits = traits_for(dialect, model, "", server)

    def find_chain(self, where: str) -> list[tuple[str, Any]]:
        """Return the values along a pointer, each with its key or index; tokens that match nothing are skipped."""
        value = self.document
        found: list[tuple[str, Any]] = []
        for token in split(where):
            step = _find_step(value, token)
            if step is not None:
                value = _get_item(value, step)
                found.append((step, value))
        return found

    def find_original(self, name: str) -> tuple[str, str]:
        """Return the client's namespace and name of a tool."""
        return self.undo.names.get(name, ("", name))


def locate_rejection(problem: Problem, sent: SentRequest, request: Request, client: Dialect, body: bytes) -> Problem:
    """Return an upstream's rejection of a tool or call with its code and the pointer into the client's document."""
    if problem.kind not in _REJECTION_KINDS:
        return problem
    where = problem.where or _find_pointer(problem.message)
    chain = sent.find_chain(where)
    top = chain[0][0] if chain else split(where)[0] if where else ""
    if top == "tools" or (not chain and _ABOUT_TOOLS.search(problem.message)):
        return _with_code(problem, _locate_tool(problem, chain, sent, _ClientRequest(request, client, body)), CODE)
    if any(_is_call(value) for _, value in chain) or _is_message_about_calls(problem.message):
        return _with_code(problem, _locate_call(problem, chain, sent, request), CALL_CODE)
    return problem


def add_code(problem: Problem, body: bytes) -> Problem:
    """Return a rejection of a tool or call in the client's own dialect with its code, if the vendor gave none."""
    if problem.kind not in _REJECTION_KINDS or problem.code is not None:
        return problem
    where = problem.where or _find_pointer(problem.message)
    if where.startswith(("/tools", "/request/tools")) or _ABOUT_TOOLS.search(problem.message):
        return _with_code(problem, problem.where or where, CODE)
    if is_about_call(body, where) or _is_message_about_calls(problem.message):
        return _with_code(problem, problem.where or where, CALL_CODE)
    return problem


def is_about_call(body: bytes, where: str) -> bool:
    """Return whether a pointer into a request is inside a call or a result."""
    value = json.peek(body)
    for token in split(where):
        if token in _HOLDERS or _is_call(value):
            return True
        step = _find_step(value, token)
        value = _get_item(value, step) if step is not None else None
    return _is_call(value)


def _is_message_about_calls(message: str) -> bool:
    return _ABOUT_CALLS.search(message) is not None and _NO_CALL.search(message) is None


def _with_code(problem: Problem, where: str, code: str) -> Problem:
    return Problem(
        problem.kind,
        problem.message,
        status=problem.status,
        where=where,
        code=code,
        detail=problem.detail,
        detail_dialect=problem.detail_dialect,
    )


def _find_pointer(message: str) -> str:
    found = _PLACE.search(message)
    return "".join(f"/{token}" for token in re.split(r"[.\[\]]+", found[0]) if token) if found is not None else ""


def _find_step(value: Any, token: str) -> str | None:
    """Return the key or index that a token means: vendors report names in snake_case that they read in camelCase."""
    if isinstance(value, list):
        return token if token.isdecimal() and int(token) < len(cast("list[Any]", value)) else None
    head, *rest = token.split("_")
    camel = head + "".join(piece.title() for piece in rest)
    return next((name for name in (token, camel) if name in json.as_object(value)), None)


def _get_item(value: Any, step: str) -> Any:
    return cast("list[Any]", value)[int(step)] if isinstance(value, list) else value[step]


def _is_call(value: Any) -> bool:
    members = json.as_object(value)
    # The client's own document may have any value here, also one that is not hashable.
    kind = members.get("type")
    return (isinstance(kind, str) and kind in _CALLS) or not _HOLDERS.isdisjoint(members)


class _ClientRequest(Struct, frozen=True):
    """The client's request: its core value, its dialect and its body."""

    request: Request
    dialect: Dialect
    body: bytes


def _locate_tool(problem: Problem, chain: list[tuple[str, Any]], sent: SentRequest, original: _ClientRequest) -> str:
    names = [name for name in _find_names([value for _, value in chain], problem.message) if name]
    tools = [tool for tool in original.request.tools if isinstance(tool, Tool)]
    for name in names:
        found = next((tool for tool in tools if (tool.namespace, tool.name) == sent.find_original(name)), None)
        if found is not None:
            steps = [step for step, _ in chain]
            schema = next((at for at, step in enumerate(steps) if step in _SCHEMAS), None)
            if schema is None:
                return found.where
            pointer = Ledger(original.dialect.pointers, original.body).find_pointer("tool.parameters", found)
            inner = join(steps[schema + 1 :])
            return _trim_to_existing(original.body, pointer + inner)
    return tools[0].where.rpartition("/")[0] if tools else ""


def _trim_to_existing(body: bytes, where: str) -> str:
    """Return the longest prefix of a pointer that the document has, as the document spells its names."""
    document = Document(body)
    while where:
        found = document.find(where)
        if found is not None:
            return found[0]
        where = where.rpartition("/")[0]
    return ""


def _find_names(values: list[Any], message: str) -> Iterator[str]:
    """Yield candidates for the name of the rejected tool: from the values at the pointer, then from the message."""
    for value in values:
        members = json.as_object(value)
        for holder in (members, json.as_object(members.get("function")), json.as_object(members.get("custom"))):
            if isinstance(holder.get("name"), str) and not _SCHEMAS.isdisjoint({*holder, "parameters"}):
                yield holder["name"]
    for quoted, bare in _QUOTED.findall(message):
        yield quoted or bare.rstrip(".")


def _locate_call(problem: Problem, chain: list[tuple[str, Any]], sent: SentRequest, request: Request) -> str:
    """Return the pointer of the rejected call or result: by its id, else by its name if only one has that name."""
    parts = [part for message in request.messages for part in message.parts if isinstance(part, ToolCall | ToolResult)]
    ids = [value for _, held in chain for value in _find_ids(held)]
    for part in parts:
        call_id = alias_id(part.id if isinstance(part, ToolCall) else part.call_id, sent.traits)
        if call_id and (call_id in ids or call_id in problem.message):
            return part.where
    found = (json.as_object(json.as_object(held).get(holder)).get("name") for _, held in chain for holder in _HOLDERS)
    names = {sent.find_original(name)[1] for name in found if name and isinstance(name, str)}
    alike = [part for part in parts if part.name and part.name in names]
    return alike[0].where if len(alike) == 1 else ""


def _find_ids(value: Any) -> Iterator[str]:
    members = json.as_object(value)
    if not _is_call(value):
        return
    held = [members, *(json.as_object(members.get(name)) for name in ("functionCall", "functionResponse"))]
    calls = members.get("tool_calls")
    held += [json.as_object(call) for call in cast("list[Any]", calls)] if isinstance(calls, list) else []
    for one in held:
        yield from (one[name] for name in _IDS if isinstance(one.get(name), str))
