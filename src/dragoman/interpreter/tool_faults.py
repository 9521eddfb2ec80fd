"""Validate the tools of a request before an upstream is called: report all that is wrong, with its pointer.

Tools that cannot be parsed together are read one by one, so that each error is reported and not only the first. A
schema is wrong if no draft of JSON Schema gives it a meaning.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec import Struct, structs

from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool, Request, Tool, ToolChoice
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.native_tools import is_called
from dragoman.interpreter.schema.drafts import modernised
from dragoman.interpreter.schema.metaschema import is_list
from dragoman.interpreter.schema.nodes import as_list, as_node, children
from dragoman.interpreter.schema.plain import UNPROVEN, PlainProof, prove_plain
from dragoman.interpreter.schema.references import REFERENCES, References
from dragoman.interpreter.tools_cache import NO_PROOFS
from dragoman.wire import json
from dragoman.wire.lookup import Document, lookup
from dragoman.wire.pointer import split

Fault = tuple[str, str]
"""A place and what is wrong there."""
_MEANINGLESS = {
    "cannot be so": "is no value for",
    "not a schema": "is no schema, which is an object or a boolean, at",
    "no type of JSON Schema": "is no type of JSON Schema, at",
    "not the name of a property": "is not the name of a property, at number",
}
"""What notes say of what no draft knows, and how it is told."""
_LONGEST_SHOWN = 60


def schema_faults(schema: bytes, *, openapi: bool = False, proof: PlainProof | None = None) -> tuple[Fault, ...]:
    """Return all that is wrong, by places in the schema.

    `proof` is what `prove_plain` found of these bytes, if it has read them before.
    """
    proof = prove_plain(schema) if proof is None else proof
    return () if proof.valid else find_faults(schema, openapi=openapi)


def find_faults(schema: bytes, *, openapi: bool = False) -> tuple[Fault, ...]:
    """Return all that is wrong with a schema that is not proven plain."""
    document = json.peek(schema)
    if isinstance(document, bool):
        return ()
    if as_node(document) is None:
        return (("", f"{_shown(document)} is no schema: the parameters of a tool are an object"),)
    try:
        return (*_meaningless(document, openapi), *_leading_nowhere(document))
    except RecursionError:
        return (("", "the schema is nested too deeply"),)


def _meaningless(document: Any, openapi: bool) -> Iterator[Fault]:
    for note in modernised(document).notes:
        words = next((words for said, words in _MEANINGLESS.items() if said in note.what), None)
        value = _at(document, note.where)
        keyword = split(note.where)[-1] if note.where else ""
        # Google's enumerations may be written as numbers.
        if words is not None and not (openapi and keyword == "type" and isinstance(value, int)):
            yield note.where, f"{_shown(value)} {words} {keyword!r}"


def _leading_nowhere(document: Any) -> Iterator[Fault]:
    references = References(document)
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        where, schema = waiting.pop()
        node = as_node(schema)
        if node is None:
            continue
        for keyword in REFERENCES:
            named = node.get(keyword)
            if isinstance(named, str) and named.startswith("#") and references.locate(named, where) is None:
                yield f"{where}/{keyword}", f"{_shown(named)} is not in the schema"
        waiting.extend((where + relative, child) for relative, child in children(node))


def _at(document: Any, where: str) -> Any:
    value = document
    for token in split(where):
        node = as_node(value)
        value = as_list(value)[int(token)] if node is None and is_list(value) else (node or {}).get(token)
    return value


def _shown(value: Any) -> str:
    text = json.encode(value).decode()
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


CODE = "invalid_tool"
_DESCRIBED = frozenset({"function", "parameters", "input_schema"})
"""Members by which a caller describes a tool of its own."""
_MOST_LISTED = 100
AnyTool = Tool | NativeTool


def are_valid(tools: tuple[AnyTool, ...], proofs: Mapping[str, PlainProof] = NO_PROOFS) -> bool:
    """Tell whether nothing is wrong with the tools, of whose schemas some are proven to be plain."""
    return not any(_of_tool(tool, proofs.get(tool.where)) for tool in tools) and not any(twice(tools))


def unproven_bytes(tools: tuple[AnyTool, ...], proofs: Mapping[str, PlainProof] = NO_PROOFS) -> int:
    """Count the bytes of the schemas that are not proven to be plain."""
    schemas = [tool for tool in tools if isinstance(tool, Tool) and tool.parameters]
    return sum(len(tool.parameters or b"") for tool in schemas if not proofs.get(tool.where, UNPROVEN).valid)


def faults_in(tool: AnyTool, ledger: Ledger) -> list[Fault]:
    """Return what is wrong with one tool, by places in the document that `ledger` looks into."""
    base = ledger.place("tool.parameters", tool)
    return [(base + at if in_schema else tool.where + at, words) for at, words, in_schema in _of_tool(tool)]


def _of_tool(tool: AnyTool, proof: PlainProof | None = None) -> list[tuple[str, str, bool]]:
    """Return what is wrong with one tool: places in it or, if that is said, in its schema.

    `proof` is what `prove_plain` found of the tool's parameters, if it has read them before.
    """
    if isinstance(tool, NativeTool):
        return [("", "a tool of the caller's must be described as one", False)] if _is_halfway(tool) else []
    found = [] if tool.name.strip() else [("", "a tool has no name", False)]
    if tool.parameters is not None:
        wrong = schema_faults(tool.parameters, openapi=tool.openapi, proof=proof)
        found += [(at, words, True) for at, words in wrong]
    return found


def _is_halfway(tool: NativeTool) -> bool:
    """Tell whether what could be read only as a vendor's own tool was meant as the caller's."""
    members = json.decode_object(tool.raw) if json.is_object(tool.raw) else {}
    if "type" in members:
        return bytes(members["type"]) == b'"function"'
    return not _DESCRIBED.isdisjoint(members)


def twice(tools: tuple[AnyTool, ...]) -> Iterator[Fault]:
    """Iterate the tools that are declared before with other words: nobody could tell which of the two is called."""
    known: dict[tuple[str, str], Tool] = {}
    for tool in tools:
        if not isinstance(tool, Tool):
            continue
        before = known.setdefault((tool.namespace, tool.name), tool)
        if before is not tool and (before.description, before.parameters) != (tool.description, tool.parameters):
            yield tool.where, f"another tool is called {json.encode(tool.name).decode()}, at {before.where}"


def wrong_choice(request: Request) -> list[Fault]:
    """Return what the choice names that is not among the tools."""
    choice = request.tool_choice
    if choice is None or not choice.names or choice.mode == "none":
        return []
    known = {tool.name for tool in request.tools if isinstance(tool, Tool)}
    natives = [tool for tool in request.tools if isinstance(tool, NativeTool)]
    return [
        (_named_at(choice), f"the tool {json.encode(name).decode()} is chosen, and is not among the tools")
        for name in choice.names
        if name not in known and not any(is_called(tool, name) for tool in natives)
    ]


def _named_at(choice: ToolChoice) -> str:
    return choice.where or "/tool_choice"


def tools_problem(faults: list[Fault]) -> Problem:
    """Return the error that lists all that is wrong."""
    listed = faults[:_MOST_LISTED]
    more = f"; and {len(faults) - len(listed)} more" if len(faults) > len(listed) else ""
    told = "; ".join(f"{where}: {words}" for where, words in listed)
    count = "1 error" if len(faults) == 1 else f"{len(faults)} errors"
    message = f"{count} in the definitions of tools: {told}{more}"
    return Problem("invalid_request", message, where=listed[0][0], code=CODE, violations=tuple(listed))


_GROUPS = ("functionDeclarations", "function_declarations", "tools")
"""Members of a tool that hold several of the caller's."""
_MISSING = re.compile(r"missing required field `(\w+)`")
_MOST_IN_ONE = 20
_ANY_NAME = "unnamed"


class _Alone(Struct, frozen=True):
    """One tool as the only one of a request."""

    where: str
    """Where it stands in the caller's document."""
    here: str
    """Where it stands as the only one."""
    member: str
    """The member of the request that holds it."""
    tool: Any

    def place(self, where: str) -> str:
        """Return a place in it as one in the caller's document."""
        return self.where + where.removeprefix(self.here)


def all_faults(call: Call, dialect: Dialect) -> list[Fault]:
    """Return all that is wrong with the tools of a request."""
    faults: list[Fault] = []
    tools: list[AnyTool] = []
    for alone in _each(call.body, dialect):
        unread, read, ledger = _read(alone, dialect)
        found = [*unread, *(fault for tool in read for fault in faults_in(tool, ledger))]
        faults += [(alone.place(at), words) for at, words in found]
        if not unread:
            tools += [structs.replace(tool, where=alone.place(tool.where)) for tool in read]
    document = Document(call.body)
    exact = ((document.find(where), where, words) for where, words in faults)
    return [*((found[0] if found else where, words) for found, where, words in exact), *twice(tuple(tools))]


def _each(body: bytes, dialect: Dialect) -> Iterator[_Alone]:
    for candidate in dialect.pointers["tools"]:
        found = lookup(body, candidate)
        if found is None:
            continue
        place, raw = found
        member = split(place)[-1]
        tools = json.peek(raw)
        if not isinstance(tools, list):
            if tools is not None:
                yield _Alone(place, f"/{member}", member, tools)
            continue
        for index, tool in enumerate(cast("list[Any]", tools)):
            yield from _apart(tool, f"{place}/{index}", member)


def _apart(tool: Any, where: str, member: str) -> Iterator[_Alone]:
    members = cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
    group = next((name for name in _GROUPS if isinstance(members.get(name), list) and members[name]), None)
    if group is None:
        yield _Alone(where, f"/{member}/0", member, [tool])
        return
    for index, one in enumerate(members[group]):
        yield _Alone(f"{where}/{group}/{index}", f"/{member}/0/{group}/0", member, [{**members, group: [one]}])


def _read(alone: _Alone, dialect: Dialect) -> tuple[list[Fault], tuple[AnyTool, ...], Ledger]:
    """Return what cannot be read of a tool, the tool without that, and what tells the places of its fields."""
    faults: list[Fault] = []
    document: dict[str, Any] = {"model": "any", dialect.history: [], alone.member: alone.tool}
    while len(faults) < _MOST_IN_ONE:
        body = json.encode(document)
        try:
            request = dialect.parse_request(Call(body, "any"))
        except Problem as problem:
            missing = _MISSING.search(problem.message)
            where = f"{problem.where}/{missing[1]}" if missing is not None else problem.where
            faults.append((where, problem.message))
            if not where.startswith(f"/{alone.member}") or not _mend(document, where):
                break
        else:
            return faults, request.tools, Ledger(dialect.pointers, body)
    return faults, (), Ledger(dialect.pointers)


def _mend(document: Any, where: str) -> bool:
    """Put a name where one must stand, and take out what else is wrong; tell whether anything changed."""
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
