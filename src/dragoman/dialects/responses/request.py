"""Parses the conversation, tools and tool choice of a request; `fields` parses the rest.

Rules: each member that maps to the core is decoded by its own type; all others are extras, unchanged.
`Request.spelling` holds flags that record which of several equivalent forms was used ("stream:false", "no input",
"tools:[]", and those of `fields`). The tools of a namespace group are flattened, each with the group's name; the first
one has the flag "group" in its spelling and the group's other fields in its extras below /namespace, so that rendering
restores the group. A tool's spelling also records what the caller left out ("no strict", "no parameters").
"""

from collections.abc import Iterable
from typing import Literal, assert_never

from msgspec import Raw, structs
from msgspec.json import Decoder

from dragoman.core.parts import Opaque, Text, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, NativeTool, Reference, Request, Tool, ToolChoice
from dragoman.core.value import Extras
from dragoman.dialects.record import Call, ReadTools
from dragoman.dialects.responses.client_items import read_found_tools
from dragoman.dialects.responses.client_tools import CLIENT_TOOLS, is_client_tool, list_calls
from dragoman.dialects.responses.fields import (
    REQUEST_FIELDS,
    read_metadata,
    read_sampling,
    read_text,
    read_thinking,
    read_user,
)
from dragoman.dialects.responses.items import INSTRUCTIONS, read_items
from dragoman.dialects.responses.parts import build_extras
from dragoman.dialects.responses.wire import (
    NAME,
    AllowedTools,
    AnyTool,
    Choice,
    CustomTool,
    NamedCustomTool,
    NamedTool,
    NamespaceTool,
    ResponsesRequest,
    WireFunctionTool,
    decode_known,
)
from dragoman.wire import json
from dragoman.wire.shape import ABSENT, Shape, get_raw_members, non_null_bytes
from dragoman.wire.unread import Unknown, Unread

GROUP = "group"
GROUP_FIELDS = "/namespace"
NO_STRICT = "no strict"
NO_PARAMETERS = "no parameters"
EMPTY_DESCRIPTION = "empty description"
TEXT_FORMAT = "text format"
_MODES: dict[bytes, Literal["auto", "none", "required"]] = {
    b'"auto"': "auto",
    b'"none"': "none",
    b'"required"': "required",
}
_TOOLS_DECODER: Decoder[list[AnyTool]] = Decoder(list[AnyTool])
_TOOL: Shape[AnyTool] = Shape(AnyTool)
_CHOICE: Shape[Choice] = Shape(Choice)
_REQUEST: Shape[ResponsesRequest] = Shape(ResponsesRequest)
_STORED_MEMBERS = ("conversation", "prompt")
"""Members that refer to data stored at OpenAI: earlier turns, reusable prompts."""
STRING_INPUT = "string"
NO_INPUT = "no input"
STREAM_FALSE = "stream:false"


def read_declared_tools(messages: Iterable[Message]) -> tuple[Tool | NativeTool, ...]:
    """Parse the tools that items of a conversation declare (`additional_tools`, `tool_search_output`)."""
    tools: list[Tool | NativeTool] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, Opaque) and part.declares and part.dialect == NAME:
                raw = non_null_bytes(json.decode_object(part.raw).get("tools"))
                tools.extend(_read_declared(raw, f"{part.where}/tools"))
            elif isinstance(part, ToolResult) and (found := read_found_tools(part)) is not None:
                tools.extend(_read_declared(*found))
    return tuple(tools)


def _read_declared(raw: bytes | None, where: str) -> tuple[Tool | NativeTool, ...]:
    if raw is None:
        return ()
    try:
        return read_tools(raw, where)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where or where) from None


def read_tools(raw: bytes, parent: str) -> tuple[Tool | NativeTool, ...]:
    """Parse an array of tools, of a request or an item, that is located at the pointer `parent`."""
    tools: list[Tool | NativeTool] = []
    known = decode_known(_TOOLS_DECODER, raw)
    if known is None:
        for index, one in enumerate(json.decode_array(raw)):
            where = f"{parent}/{index}"
            try:
                wire, unread = _TOOL.read(one)
            except json.Malformed as error:
                raise json.Malformed(error.message, where + error.where) from None
            tools.extend(_read_tool(wire, where, bytes(one), unread))
        return tuple(tools)
    raws: list[Raw] = []
    for index, wire in enumerate(known):
        if isinstance(wire, NamespaceTool) and not wire.tools:
            raws = raws or json.decode_array(raw)
        tools.extend(_read_tool(wire, f"{parent}/{index}", bytes(raws[index]) if raws else b"", None))
    return tuple(tools)


def _read_tool(wire: AnyTool, where: str, raw: bytes, unread: Unread | None) -> list[Tool | NativeTool]:
    match wire:
        case NamespaceTool():
            return list(_read_group(wire, where, unread)) or [NativeTool(where=where, dialect=NAME, raw=raw)]
        case Unknown():
            native = NativeTool(where=where, dialect=NAME, raw=bytes(wire.raw))
            return [structs.replace(native, calls=list_calls(native))]
        case _:
            return [_read_client_tool(wire, where, unread.rest() if unread else None)]


def _read_client_tool(
    wire: WireFunctionTool | CustomTool,
    where: str,
    fields: dict[str, bytes] | None,
    namespace: str = "",
    spelling: str = "",
) -> Tool:
    flags = [spelling] if spelling else []
    if wire.description == "":
        flags.append(EMPTY_DESCRIPTION)
    grammar = parameters = strict = None
    if isinstance(wire, WireFunctionTool):
        strict = wire.strict
        if wire.defer_loading is not ABSENT:
            fields = {"/defer_loading": bytes(wire.defer_loading), **(fields or {})}
        parameters = non_null_bytes(wire.parameters)
        if strict is None:
            flags.append(NO_STRICT)
        if parameters is None:
            flags.append(NO_PARAMETERS)
    elif non_null_bytes(wire.format) is not None:
        match json.decode(wire.format):
            case {"type": "text", **more} if not more:
                flags.append(TEXT_FORMAT)
            case {"type": "grammar", "syntax": str(), "definition": str()}:
                grammar = bytes(wire.format)
            case _:
                fields = {**(fields or {}), "/format": bytes(wire.format)}
    return Tool(
        where=where,
        spelling=",".join(flags),
        extras=build_extras(fields),
        name=wire.name,
        description=wire.description or "",
        parameters=parameters,
        strict=strict,
        form="json" if isinstance(wire, WireFunctionTool) else "text",
        grammar=grammar,
        namespace=namespace,
    )


def _read_group(group: NamespaceTool, where: str, unread: Unread | None) -> list[Tool]:
    """Flatten a namespace group; entries that are not client tools go to the extras of the first tool."""
    tools: list[Tool] = []
    kept: dict[str, bytes] = {}
    for index, wire in enumerate(group.tools):
        if isinstance(wire, Unknown):
            kept[f"{GROUP_FIELDS}/tools/{index}"] = bytes(wire.raw)
            continue
        fields = unread.take(f"/tools/{index}") if unread else None
        flag = "" if tools else GROUP
        tools.append(_read_client_tool(wire, f"{where}/tools/{index}", fields, group.name, flag))
    if not tools:
        return []
    if group.description == "":
        kept[f"{GROUP_FIELDS}/description"] = b'""'
    if unread:
        kept.update({GROUP_FIELDS + pointer: raw for pointer, raw in unread.rest().items()})
    first = tools[0]
    own = first.extras.fields if first.extras else {}
    description = group.description or ""
    tools[0] = structs.replace(first, extras=build_extras({**own, **kept}), namespace_description=description)
    return tools


def read_choice(choice: Raw | None, parallel: bool | None) -> ToolChoice | None:
    """Parse `tool_choice` and `parallel_tool_calls`."""
    where = "/tool_choice"
    raw = non_null_bytes(choice)
    if raw is None:
        return None if parallel is None else ToolChoice(where=where, parallel=parallel)
    mode = _MODES.get(raw)
    if mode is not None:
        return ToolChoice(where=where, mode=mode, parallel=parallel)
    if json.first_byte(raw) != b"{":
        return _keep_native_choice(raw, parallel)
    try:
        wire, unread = _CHOICE.read(raw)
    except json.Malformed as error:
        raise json.Malformed(error.message, where + error.where) from None
    fields = unread.rest() if unread else {}
    match wire:
        case Unknown():
            return _read_native_choice(raw, parallel)
        case NamedTool(name=name) | NamedCustomTool(name=name):
            return ToolChoice(
                where=where, extras=build_extras(fields), mode="required", names=(name,), parallel=parallel
            )
        case AllowedTools(mode=mode, tools=tools):
            for index, tool in enumerate(tools):
                if isinstance(tool, Unknown):
                    fields[f"/tools/{index}"] = bytes(tool.raw)
            return ToolChoice(
                where=where,
                spelling="allowed_tools",
                extras=build_extras(fields),
                mode=mode,
                names=tuple([tool.name for tool in tools if not isinstance(tool, Unknown)]),
                parallel=parallel,
                listed=True,
            )
        case _:
            assert_never(wire)


def _read_native_choice(raw: bytes, parallel: bool | None) -> ToolChoice:
    """Parse a choice by type; one of a tool that the client runs names the function that replaces it."""
    members = json.as_object(json.peek(raw))
    kind = str(members.get("type"))
    if len(members) > 1 or not is_client_tool(kind) or kind == "tool_search":
        return _keep_native_choice(raw, parallel)
    name = CLIENT_TOOLS[kind].name or kind
    return ToolChoice(where="/tool_choice", spelling=kind, mode="required", names=(name,), parallel=parallel)


def _keep_native_choice(raw: bytes, parallel: bool | None) -> ToolChoice:
    """Keep a choice of hosted tools as raw JSON in extras, under the empty pointer; the core cannot express it."""
    return ToolChoice(where="/tool_choice", extras=Extras(NAME, {"": raw}), parallel=parallel)


def parse_request(call: Call, *, first: int = 0, read_tools: ReadTools = read_tools) -> Request:
    """Parse a request; `first` is the index of its first item, for pointers."""
    try:
        body, unread = _REQUEST.read(call.body)
        return _read_request(body, unread, call, first, read_tools)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None


def _read_request(
    body: ResponsesRequest, unread: Unread | None, call: Call, first: int, read_tools: ReadTools
) -> Request:
    spelling: set[str] = set()
    extras: dict[str, bytes] = {}
    messages = _read_messages(body, spelling, first)
    if body.stream is False:
        spelling.add(STREAM_FALSE)
    thinking = read_thinking(body.reasoning, spelling, extras)
    output, verbosity = read_text(body.text, extras)
    tools = non_null_bytes(body.tools)
    choice = read_choice(body.tool_choice, body.parallel_tool_calls)
    if tools is not None and tools.strip() == b"[]":
        spelling.add("tools:[]")
    user = read_user(body, spelling, extras)
    metadata = read_metadata(body.metadata, extras)
    instructions = non_null_bytes(body.instructions)
    if instructions is not None and not instructions.startswith(b'"'):
        extras["/instructions"] = instructions
    fields = {**(get_raw_members(body) or {}), **(unread.rest() if unread is not None else {})}
    extras.update({pointer: raw for pointer, raw in fields.items() if raw != b"null"})
    return Request(
        **REQUEST_FIELDS.read(body),
        model=body.model or call.model,
        messages=messages,
        tools=read_tools(tools, "/tools") if tools is not None else (),
        tool_choice=choice,
        sampling=read_sampling(body),
        thinking=thinking,
        output=output,
        verbosity=verbosity,
        stream=bool(body.stream) or call.stream,
        references=tuple(
            Reference(where) for name in _STORED_MEMBERS if (where := _find_reference(name, extras)) is not None
        ),
        user=user,
        metadata=metadata,
        extras=build_extras(extras),
        spelling=frozenset(spelling),
    )


def _find_reference(name: str, extras: dict[str, bytes]) -> str | None:
    """Return the pointer of the id in a member that refers to stored data; None if it has no id."""
    raw = extras.get(f"/{name}", b"null")
    if json.first_byte(raw) == b'"':
        return f"/{name}"
    item_id = json.decode_object(raw).get("id", b"null") if json.first_byte(raw) == b"{" else b"null"
    return f"/{name}/id" if json.first_byte(item_id) == b'"' else None


def _read_messages(body: ResponsesRequest, spelling: set[str], first: int) -> tuple[Message, ...]:
    messages: list[Message] = []
    instructions = non_null_bytes(body.instructions)
    if instructions is not None and instructions.startswith(b'"'):
        text = Text(where="/instructions", text=json.decode(instructions))
        messages.append(Message(where="/instructions", spelling=INSTRUCTIONS, role="system", parts=(text,)))
    if non_null_bytes(body.input) is None:
        spelling.add(NO_INPUT)
        return tuple(messages)
    match json.first_byte(body.input):
        case b'"':
            text = Text(where="/input", text=json.decode(body.input))
            messages.append(Message(where="/input", spelling=STRING_INPUT, role="user", parts=(text,)))
        case b"[":
            messages.extend(read_items(body.input, first))
        case _:
            raise json.Malformed("input must be a string or a list of items", "/input")
    return tuple(messages)
