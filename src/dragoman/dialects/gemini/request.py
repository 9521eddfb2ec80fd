"""A generateContent request, parsed: messages, tools and the choice among them; `fields` reads generationConfig.

Rules: one content is one message, in the order received; the system instruction is the first. Every function
declaration is one tool; what else stands in a Tool object (googleSearch, codeExecution, …) is one native tool. What
Google lets a caller write in several ways (an object for a list, a text for a content, an empty object) is remembered
as a spelling word, and so is the object that a tool stood in; the legacy roles `function` and `tool`, and
`MODE_UNSPECIFIED`, are read but never written.
"""

from collections.abc import Iterator

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
from dragoman.wire.shape import carried, non_null_bytes
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
"""Not plain "string": other dialects say that of their messages, and Gemini itself wants an object."""
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
    """Read the Tool objects, or the only one, that stand at `where`."""
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
    group: wire.GeminiTool, where: str, word: str, fields: dict[str, bytes], found: list[Tool | NativeTool]
) -> None:
    """Read one Tool object; `fields` are its unread members."""
    declarations = group.function_declarations
    for index, declaration in enumerate(declarations or ()):
        below = f"/functionDeclarations/{index}"
        own = {name: fields.pop(name) for name in list(fields) if name.startswith(f"{below}/")} if fields else None
        taken = {name[len(below) :]: raw for name, raw in own.items()} if own else None
        found.append(_read_tool(declaration, where + below, word, taken))
    fields = {**(carried(group) or {}), **fields}
    members = {name: raw for name, raw in fields.items() if raw != b"null"}
    if members or not declarations:
        empty = b"{}" if declarations is None else b'{"functionDeclarations":[]}'
        native = graft(b"{}" if declarations else empty, members)
        if native != b"{}" or not fields:
            found.append(NativeTool(dialect=NAME, raw=native, where=where, spelling=word))


def _read_tool(declaration: wire.FunctionDeclaration, where: str, word: str, fields: dict[str, bytes] | None) -> Tool:
    openapi = non_null_bytes(declaration.parameters)
    schema = non_null_bytes(declaration.parameters_json_schema)
    if declaration.parameters_json_schema is ABSENT:
        schema = non_null_bytes(declaration.snake_schema)
    elif declaration.snake_schema is not ABSENT:
        fields = {"/parameters_json_schema": bytes(declaration.snake_schema), **(fields or {})}
    if declaration.response_json_schema is not ABSENT or declaration.snake_response_schema is not ABSENT:
        fields = {**(carried(declaration) or {}), **(fields or {})}
    if openapi is not None and schema is not None:
        fields = {**(fields or {}), "/parameters": openapi}
    return Tool(
        name=declaration.name,
        description=declaration.description or "",
        parameters=openapi if schema is None else schema,
        openapi=schema is None and openapi is not None,
        where=where,
        spelling=f"{word} {DESCRIBED}" if declaration.description == "" else word,
        extras=Extras(NAME, fields) if fields else None,
    )


def read_choice(config: FunctionCallingConfig, where: str) -> ToolChoice:
    """Return how free the model is; a mode nobody knows says nothing but is remembered."""
    mode = config.mode
    known = mode.upper() if mode is not None else ""
    words = [mode] if mode is not None and (mode != known or known not in _MODES) else []
    if config.allowed_function_names == []:
        words.append(NO_NAMES)
    return ToolChoice(
        mode=_MODES.get(known),  # pyright: ignore[reportArgumentType]
        names=tuple(config.allowed_function_names or ()),
        validated=known == "VALIDATED",
        where=where,
        spelling=" ".join(words),
    )


def parse_request(call: Call, *, first: int = 0, read_tools: ReadTools = read_tools) -> Request:
    """Read a request, in Code Assist's envelope or without it."""
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
    """A decoded request and its position in the document."""

    body: GenerateContentRequest
    unread: Unread | None
    call: Call
    first: int = 0
    """The number of the first message that the body holds."""
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
    outer = {**(carried(wrapper) or {}), **(envelope.rest() if envelope else {})}
    model = _strip_model_prefix(outer.pop("/model", b'""'))
    enveloped = Call(body=b"", model=model or call.model, stream=call.stream)
    return _read_request(_DecodedRequest(body, unread, enveloped, prefix=code_assist.INNER, outer=outer), read_tools)


def _read_request(read: _DecodedRequest, read_tools: ReadTools) -> Request:
    body, unread, call, prefix, outer = read.body, read.unread, read.call, read.prefix, read.outer
    if body.contents is None:
        raise Problem("invalid_request", "contents is missing", where=f"{prefix}/contents")
    if unread is not None:
        unread.renumber("contents", read.first)
    leftovers = UnreadMembers(unread or Unread(), prefix)
    below = leftovers if unread else None
    leftovers.add_carried(body, "")
    words: set[str] = set() if outer is None else {code_assist.SPELLING}
    messages = tuple(_read_messages(body, prefix, below, words, read.first))
    raw_tools = non_null_bytes(body.tools)
    tools = read_tools(raw_tools, f"{prefix}/tools") if raw_tools is not None else ()
    if raw_tools is not None and (word := _find_tools_spelling(raw_tools)):
        words.add(word)
    choice = None
    if body.tool_config is not None:
        words.add(CONFIG)
        leftovers.add_carried(body.tool_config, "/toolConfig")
        calling = body.tool_config.function_calling_config
        if calling is not None:
            words.add(CALLING_CONFIG)
            choice = read_choice(calling, f"{prefix}/toolConfig/functionCallingConfig")
    config = body.generation_config
    sampling, thinking, output, simple = _NO_SAMPLING, None, None, REQUEST_FIELDS.read(body)
    if config is not None:
        where = f"{prefix}/generationConfig"
        words.add(PRESENT)
        leftovers.add_carried(config, "/generationConfig")
        sampling = read_sampling(config, where, words)
        if config.thinking_config is not None:
            thinking = read_thinking(config.thinking_config, f"{where}/thinkingConfig", words, leftovers)
        output = read_output(config, where, leftovers)
        simple |= CONFIG_FIELDS.read(config, where)
    rest = {**outer, **leftovers.rest()} if outer else leftovers.rest()
    return Request(
        **simple,
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
        spelling=frozenset(words),
    )


def _find_references(rest: dict[str, bytes], prefix: str) -> tuple[Reference, ...]:
    """Find what a request stands on or goes on from that only Google keeps."""
    places = (f"{prefix}/{name}" for name in _STORED_MEMBERS)
    return tuple(Reference(place) for place in places if rest.get(place, b'""') not in (b'""', b"null"))


def _strip_model_prefix(raw: bytes) -> str:
    model = json.decode(raw)
    return model.removeprefix("models/") if isinstance(model, str) else ""


def _read_messages(
    body: GenerateContentRequest, prefix: str, leftovers: UnreadMembers | None, words: set[str], first: int
) -> Iterator[Message]:
    if body.system_instruction is not None:
        yield _read_system(body.system_instruction, f"{prefix}/systemInstruction", leftovers)
    match body.contents:
        case list() as contents:
            for index, content in enumerate(contents, first):
                yield _read_message(content, f"{prefix}/contents/{index}", leftovers)
        case wire.Content() as content:
            words.add(ONE_CONTENT)
            yield _read_message(content, f"{prefix}/contents", leftovers)
        case None:
            pass


def _read_system(instruction: wire.Content | str, where: str, leftovers: UnreadMembers | None) -> Message:
    if isinstance(instruction, str):
        return Message(role="system", parts=(Text(text=instruction, where=where),), where=where, spelling=STRING)
    parts, spelling = _read_parts(instruction, where, leftovers)
    if instruction.role is not None:
        spelling = f"{ROLE}{instruction.role} {spelling}".rstrip()
    fields = leftovers.take(where) if leftovers is not None else None
    extras = Extras(NAME, fields) if fields else None
    return Message(role="system", parts=parts, where=where, spelling=spelling, extras=extras)


def _read_message(content: wire.Content, where: str, leftovers: UnreadMembers | None) -> Message:
    role = _ROLES.get(content.role)
    if role is None:
        raise Problem("invalid_request", f"not a valid role: {content.role!r}", where=f"{where}/role")
    parts, spelling = _read_parts(content, where, leftovers)
    if not content.role:
        spelling = f"{NO_ROLE} {spelling}".rstrip()
    if role == "assistant" and parts and all(isinstance(part, ToolResult) for part in parts):
        # Some Code Assist clients give results in the model's name.
        role, spelling = "user", f"{ROLE}{content.role} {spelling}".rstrip()
    fields = leftovers.take(where) if leftovers is not None else None
    extras = Extras(NAME, fields) if fields else None
    return Message(role=role, parts=parts, where=where, spelling=spelling, extras=extras)


def _read_parts(content: wire.Content, where: str, leftovers: UnreadMembers | None) -> tuple[tuple[AnyPart, ...], str]:
    parts = content.parts
    if parts is None:
        return (), NO_PARTS
    if isinstance(parts, GeminiPart):
        where = f"{where}/parts"
        return (read_part(parts, where, leftovers.take(where) if leftovers is not None else None),), ONE_PART
    read: list[AnyPart] = []
    for index, part in enumerate(parts):
        pointer = f"{where}/parts/{index}"
        read.append(read_part(part, pointer, leftovers.take(pointer) if leftovers is not None else None))
    return tuple(read), ""


def _find_tools_spelling(raw: bytes) -> str:
    """Return how tools were written, where it was not as a list of some."""
    if raw.startswith(b"{"):
        return ONE_TOOL
    return NO_TOOLS if not raw[1:-1].strip() else ""
