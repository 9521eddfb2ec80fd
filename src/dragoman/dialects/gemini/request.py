"""Parses a generateContent request: messages, tools and tool choice. `fields` reads generationConfig.

Rules: each content is one message, in the order received; the system instruction is the first message. Each function
declaration is one tool; the other members of a Tool object (googleSearch, codeExecution, …) are one native tool. Where
Google accepts several forms (an object for a list, a string for a content, an empty object), the constants below note
the form in `spelling`, and also the Tool object that a tool was in. The legacy roles `function` and `tool`, and
`MODE_UNSPECIFIED`, are read but never written.
"""

from collections.abc import Iterator
from typing import assert_never

from msgspec import Struct

from dragoman.core.parts import AnyPart, Text, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, NativeTool, Reference, Request, Role, Sampling, Tool, ToolChoice
from dragoman.core.value import Extras
from dragoman.dialects.gemini import code_assist, wire
from dragoman.dialects.gemini.fields import (
    CONFIG_FIELDS,
    PRESENT,
    REQUEST_FIELDS,
    read_output,
    read_sampling,
    read_thinking,
)
from dragoman.dialects.gemini.parts import read_part
from dragoman.dialects.gemini.wire import (
    ABSENT,
    NAME,
    REQUEST,
    FunctionCallingConfig,
    GeminiPart,
    GenerateContentRequest,
    UnreadMembers,
)
from dragoman.dialects.record import Call, ReadTools
from dragoman.wire import json
from dragoman.wire.shape import get_raw_members, non_null_bytes
from dragoman.wire.splice import graft
from dragoman.wire.unread import Unread

GROUP = "tool:"
DESCRIBED = "described"
NO_NAMES = "no_names"
_MODES = {"AUTO": "auto", "ANY": "required", "NONE": "none", "VALIDATED": "auto"}
NO_ROLE = "no_role"
ONE_PART = "one_part"
NO_PARTS = "no_parts"
STRING = "string_instruction"
"""Not "string": other dialects use that value, and their instructions must be rendered as an object for Gemini."""
ROLE = "role:"
ONE_CONTENT = "one_content"
ONE_TOOL = "tools_object"
NO_TOOLS = "tools"
CONFIG = "toolConfig"
CALLING_CONFIG = "functionCallingConfig"
_STORED_MEMBERS = ("cachedContent", "cached_content", "continuationToken", "continuation_token")
_NO_SAMPLING = Sampling()
_ROLES: dict[str | None, Role] = {
    "user": "user",
    "model": "assistant",
    None: "user",
    "": "user",
    "function": "user",
    "tool": "user",
}


def read_tools(raw: bytes, where: str) -> tuple[Tool | NativeTool, ...]:
    """Parse the list of Tool objects, or a single one, whose pointer is `where`."""
    try:
        tools, unread = wire.TOOLS.read(raw)
    except json.Malformed as error:
        raise json.Malformed(error.message, where + error.where) from None
    found: list[Tool | NativeTool] = []
    if isinstance(tools, wire.GeminiTool):
        _read_group(tools, where, f"{GROUP}0", unread.rest() if unread is not None else {}, found)
    for index, group in enumerate(tools if isinstance(tools, list) else ()):
        fields = (unread.take(f"/{index}") if unread is not None else None) or {}
        _read_group(group, f"{where}/{index}", f"{GROUP}{index}", fields, found)
    return tuple(found)


def _read_group(
    group: wire.GeminiTool, where: str, spelling: str, fields: dict[str, bytes], found: list[Tool | NativeTool]
) -> None:
    """Append the tools of one Tool object to `found`; `fields` are its unread members."""
    declarations = group.function_declarations
    for index, declaration in enumerate(declarations or ()):
        below = f"/functionDeclarations/{index}"
        taken = {name: fields.pop(name) for name in list(fields) if name.startswith(f"{below}/")} if fields else None
        tool_fields = {name[len(below) :]: raw for name, raw in taken.items()} if taken else None
        found.append(_read_tool(declaration, where + below, spelling, tool_fields))
    fields = {**(get_raw_members(group) or {}), **fields}
    members = {name: raw for name, raw in fields.items() if raw != b"null"}
    if members or not declarations:
        empty = b"{}" if declarations is None else b'{"functionDeclarations":[]}'
        native = graft(b"{}" if declarations else empty, members)
        if native != b"{}" or not fields:
            found.append(NativeTool(dialect=NAME, raw=native, where=where, spelling=spelling))


def _read_tool(
    declaration: wire.FunctionDeclaration, where: str, spelling: str, fields: dict[str, bytes] | None
) -> Tool:
    openapi = non_null_bytes(declaration.parameters)
    schema = non_null_bytes(declaration.parameters_json_schema)
    if declaration.parameters_json_schema is ABSENT:
        schema = non_null_bytes(declaration.snake_schema)
    elif declaration.snake_schema is not ABSENT:
        fields = {"/parameters_json_schema": bytes(declaration.snake_schema), **(fields or {})}
    if declaration.response_json_schema is not ABSENT or declaration.snake_response_schema is not ABSENT:
        fields = {**(get_raw_members(declaration) or {}), **(fields or {})}
    if openapi is not None and schema is not None:
        fields = {**(fields or {}), "/parameters": openapi}
    return Tool(
        name=declaration.name,
        description=declaration.description or "",
        parameters=openapi if schema is None else schema,
        openapi=schema is None and openapi is not None,
        where=where,
        spelling=f"{spelling} {DESCRIBED}" if declaration.description == "" else spelling,
        extras=Extras(NAME, fields) if fields else None,
    )


def read_choice(config: FunctionCallingConfig, where: str) -> ToolChoice:
    """Read the tool choice. An unknown mode sets no mode and is noted in `spelling`."""
    mode = config.mode
    canonical = mode.upper() if mode is not None else ""
    spelling = [mode] if mode is not None and (mode != canonical or canonical not in _MODES) else []
    if config.allowed_function_names == []:
        spelling.append(NO_NAMES)
    return ToolChoice(
        mode=_MODES.get(canonical),  # pyright: ignore[reportArgumentType]
        names=tuple(config.allowed_function_names or ()),
        validated=canonical == "VALIDATED",
        where=where,
        spelling=" ".join(spelling),
    )


def parse_request(call: Call, *, first: int = 0, read_tools: ReadTools = read_tools) -> Request:
    """Parse a request, with or without Code Assist's envelope."""
    try:
        body, unread = REQUEST.read(call.body)
        inner = non_null_bytes(body.request)
        if inner is not None and body.contents is None:
            return _read_wrapped(body, inner, unread, call, read_tools)
        if inner is not None:
            unread = unread or Unread()
            unread.add("/request", inner)
        return _read_request(_DecodedRequest(body, unread, call, first=first), read_tools)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None


class _DecodedRequest(Struct, frozen=True):
    """A decoded request and its position in the body."""

    body: GenerateContentRequest
    unread: Unread | None
    call: Call
    first: int = 0
    """The index of the first message in the body."""
    prefix: str = ""
    """The pointer of the request in Code Assist's envelope; empty without one."""
    outer: dict[str, bytes] | None = None
    """The members of the envelope."""


def _read_wrapped(
    wrapper: GenerateContentRequest, inner: bytes, envelope: Unread | None, call: Call, read_tools: ReadTools
) -> Request:
    try:
        body, unread = REQUEST.read(inner)
    except json.Malformed as error:
        raise json.Malformed(error.message, code_assist.INNER + error.where) from None
    outer = {**(get_raw_members(wrapper) or {}), **(envelope.rest() if envelope else {})}
    model = _strip_model_prefix(outer.pop("/model", b'""'))
    enveloped = Call(body=b"", model=model or call.model, stream=call.stream)
    return _read_request(_DecodedRequest(body, unread, enveloped, prefix=code_assist.INNER, outer=outer), read_tools)


def _read_request(decoded: _DecodedRequest, read_tools: ReadTools) -> Request:
    body, unread, call, prefix = decoded.body, decoded.unread, decoded.call, decoded.prefix
    outer = decoded.outer
    if body.contents is None:
        raise Problem("invalid_request", "`contents` is missing", where=f"{prefix}/contents")
    if unread is not None:
        unread.renumber("contents", decoded.first)
    members = UnreadMembers(unread or Unread(), prefix)
    message_members = members if unread else None
    members.add_raw_members(body, "")
    spelling: set[str] = set() if outer is None else {code_assist.SPELLING}
    messages = tuple(_read_messages(body, prefix, message_members, spelling, decoded.first))
    raw_tools = non_null_bytes(body.tools)
    tools = read_tools(raw_tools, f"{prefix}/tools") if raw_tools is not None else ()
    if raw_tools is not None and (form := _find_tools_spelling(raw_tools)):
        spelling.add(form)
    choice = None
    if body.tool_config is not None:
        spelling.add(CONFIG)
        members.add_raw_members(body.tool_config, "/toolConfig")
        calling = body.tool_config.function_calling_config
        if calling is not None:
            spelling.add(CALLING_CONFIG)
            choice = read_choice(calling, f"{prefix}/toolConfig/functionCallingConfig")
    config = body.generation_config
    sampling, thinking, output, copied = _NO_SAMPLING, None, None, REQUEST_FIELDS.read(body)
    if config is not None:
        where = f"{prefix}/generationConfig"
        spelling.add(PRESENT)
        members.add_raw_members(config, "/generationConfig")
        sampling = read_sampling(config, where, spelling)
        if config.thinking_config is not None:
            thinking = read_thinking(config.thinking_config, f"{where}/thinkingConfig", spelling, members)
        output = read_output(config, where, members)
        copied |= CONFIG_FIELDS.read(config, where)
    rest = {**outer, **members.rest()} if outer else members.rest()
    return Request(
        **copied,
        model=call.model or _strip_model_prefix(rest.get("/model", b'""')),
        messages=messages,
        tools=tools,
        tool_choice=choice,
        sampling=sampling,
        thinking=thinking,
        output=output,
        stream=call.stream,
        references=_find_references(rest, prefix) if rest else (),
        extras=Extras(NAME, rest) if rest else None,
        spelling=frozenset(spelling),
    )


def _find_references(rest: dict[str, bytes], prefix: str) -> tuple[Reference, ...]:
    """Return references to data that only Google stores: cached content and continuation tokens."""
    pointers = (f"{prefix}/{name}" for name in _STORED_MEMBERS)
    return tuple(Reference(pointer) for pointer in pointers if rest.get(pointer, b'""') not in (b'""', b"null"))


def _strip_model_prefix(raw: bytes) -> str:
    model = json.decode(raw)
    return model.removeprefix("models/") if isinstance(model, str) else ""


def _read_messages(
    body: GenerateContentRequest, prefix: str, unread: UnreadMembers | None, spelling: set[str], first: int
) -> Iterator[Message]:
    if body.system_instruction is not None:
        yield _read_system(body.system_instruction, f"{prefix}/systemInstruction", unread)
    match body.contents:
        case list() as contents:
            for index, content in enumerate(contents, first):
                yield _read_message(content, f"{prefix}/contents/{index}", unread)
        case wire.Content() as content:
            spelling.add(ONE_CONTENT)
            yield _read_message(content, f"{prefix}/contents", unread)
        case None:
            pass
        case _:
            assert_never(body.contents)


def _read_system(instruction: wire.Content | str, where: str, unread: UnreadMembers | None) -> Message:
    if isinstance(instruction, str):
        return Message(role="system", parts=(Text(text=instruction, where=where),), where=where, spelling=STRING)
    parts, spelling = _read_parts(instruction, where, unread)
    if instruction.role is not None:
        spelling = f"{ROLE}{instruction.role} {spelling}".rstrip()
    fields = unread.take(where) if unread is not None else None
    extras = Extras(NAME, fields) if fields else None
    return Message(role="system", parts=parts, where=where, spelling=spelling, extras=extras)


def _read_message(content: wire.Content, where: str, unread: UnreadMembers | None) -> Message:
    role = _ROLES.get(content.role)
    if role is None:
        raise Problem("invalid_request", f"invalid role {content.role!r}; use user or model", where=f"{where}/role")
    parts, spelling = _read_parts(content, where, unread)
    if not content.role:
        spelling = f"{NO_ROLE} {spelling}".rstrip()
    if role == "assistant" and parts and all(isinstance(part, ToolResult) for part in parts):
        # Some Code Assist clients send tool results with the role "model".
        role, spelling = "user", f"{ROLE}{content.role} {spelling}".rstrip()
    fields = unread.take(where) if unread is not None else None
    extras = Extras(NAME, fields) if fields else None
    return Message(role=role, parts=parts, where=where, spelling=spelling, extras=extras)


def _read_parts(content: wire.Content, where: str, unread: UnreadMembers | None) -> tuple[tuple[AnyPart, ...], str]:
    parts = content.parts
    if parts is None:
        return (), NO_PARTS
    if isinstance(parts, GeminiPart):
        where = f"{where}/parts"
        return (read_part(parts, where, unread.take(where) if unread is not None else None),), ONE_PART
    read: list[AnyPart] = []
    for index, part in enumerate(parts):
        pointer = f"{where}/parts/{index}"
        read.append(read_part(part, pointer, unread.take(pointer) if unread is not None else None))
    return tuple(read), ""


def _find_tools_spelling(raw: bytes) -> str:
    """Return the spelling of tools that were sent as a single object or as an empty list, else ""."""
    if raw.startswith(b"{"):
        return ONE_TOOL
    return NO_TOOLS if not raw[1:-1].strip() else ""
