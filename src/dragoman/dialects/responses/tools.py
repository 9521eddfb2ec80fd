"""Tools and the choice among them.

Rules: the tools of a namespace group are flattened, each with the group's name; the first of a group has the word
"group" in its spelling and the group's own fields in its extras below /namespace, so that writing restores the group.
A tool's spelling says what its writer left out ("no strict", "no parameters"): Responses reads a missing `strict` as
"try", so for everybody else's tools it is always written.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Raw, structs
from msgspec.json import Decoder

from dragoman.core.parts import Opaque
from dragoman.core.problems import Problem
from dragoman.core.request import Message, NativeTool, Tool, ToolChoice
from dragoman.core.value import Extras, own_extras
from dragoman.dialects.responses.parts import extras_of
from dragoman.dialects.responses.wire import (
    NAME,
    AllowedTools,
    AnyTool,
    Choice,
    CustomTool,
    NamedCustomTool,
    NamedTool,
    NamespaceTool,
    WireFunctionTool,
    decode_known,
)
from dragoman.wire import json
from dragoman.wire.shape import ABSENT, Shape, present
from dragoman.wire.unread import Unknown, Unread

GROUP = "group"
_GROUP_FIELDS = "/namespace"
_NO_STRICT = "no strict"
_NO_PARAMETERS = "no parameters"
_EMPTY_DESCRIPTION = "empty description"
_TEXT_FORMAT = "text format"
_MODES: dict[bytes, Literal["auto", "none", "required"]] = {
    b'"auto"': "auto",
    b'"none"': "none",
    b'"required"': "required",
}
_NO_ARGUMENTS = Raw(b'{"type":"object","properties":{}}')

_FAST: Decoder[list[AnyTool]] = Decoder(list[AnyTool])
_TOOL: Shape[AnyTool] = Shape(AnyTool)
_CHOICE: Shape[Choice] = Shape(Choice)


def declared_tools(messages: Iterable[Message]) -> tuple[Tool | NativeTool, ...]:
    """Read the tools that items in the middle of a conversation declare."""
    tools: list[Tool | NativeTool] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, Opaque) and part.declares and part.dialect == NAME:
                tools.extend(_read_declared(part))
    return tuple(tools)


def _read_declared(item: Opaque) -> tuple[Tool | NativeTool, ...]:
    raw = present(json.decode_object(item.raw).get("tools"))
    if raw is None:
        return ()
    place = f"{item.where}/tools"
    try:
        return read_tools(raw, place)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where or place) from None


def read_tools(raw: bytes, place: str) -> tuple[Tool | NativeTool, ...]:
    """Read the `tools` member of a request, or of an item that declares some."""
    tools: list[Tool | NativeTool] = []
    known = decode_known(_FAST, raw)
    if known is None:
        for index, one in enumerate(json.decode_array(raw)):
            where = f"{place}/{index}"
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
        tools.extend(_read_tool(wire, f"{place}/{index}", bytes(raws[index]) if raws else b"", None))
    return tuple(tools)


def _read_tool(wire: AnyTool, where: str, raw: bytes, unread: Unread | None) -> list[Tool | NativeTool]:
    match wire:
        case NamespaceTool():
            return list(_read_group(wire, where, unread)) or [NativeTool(where=where, dialect=NAME, raw=raw)]
        case Unknown():
            return [NativeTool(where=where, dialect=NAME, raw=bytes(wire.raw))]
        case _:
            return [_read_own(wire, where, unread.rest() if unread else None)]


def _read_own(
    wire: WireFunctionTool | CustomTool,
    where: str,
    fields: dict[str, bytes] | None,
    namespace: str = "",
    word: str = "",
) -> Tool:
    words = [word] if word else []
    if wire.description == "":
        words.append(_EMPTY_DESCRIPTION)
    grammar = parameters = strict = None
    if isinstance(wire, WireFunctionTool):
        strict = wire.strict
        if wire.defer_loading is not ABSENT:
            fields = {"/defer_loading": bytes(wire.defer_loading), **(fields or {})}
        parameters = present(wire.parameters)
        if strict is None:
            words.append(_NO_STRICT)
        if parameters is None:
            words.append(_NO_PARAMETERS)
    elif present(wire.format) is not None:
        match json.decode(wire.format):
            case {"type": "text", **more} if not more:
                words.append(_TEXT_FORMAT)
            case {"type": "grammar", "syntax": str(), "definition": str()}:
                grammar = bytes(wire.format)
            case _:
                fields = {**(fields or {}), "/format": bytes(wire.format)}
    return Tool(
        where=where,
        spelling=",".join(words),
        extras=extras_of(fields),
        name=wire.name,
        description=wire.description or "",
        parameters=parameters,
        strict=strict,
        form="json" if isinstance(wire, WireFunctionTool) else "text",
        grammar=grammar,
        namespace=namespace,
    )


def _read_group(group: NamespaceTool, where: str, unread: Unread | None) -> list[Tool]:
    """Flatten a group; what is not a tool of the caller's keeps its place in the extras of the first."""
    tools: list[Tool] = []
    kept: dict[str, bytes] = {}
    for index, wire in enumerate(group.tools):
        if isinstance(wire, Unknown):
            kept[f"{_GROUP_FIELDS}/tools/{index}"] = bytes(wire.raw)
            continue
        fields = unread.take(f"/tools/{index}") if unread else None
        word = "" if tools else GROUP
        tools.append(_read_own(wire, f"{where}/tools/{index}", fields, group.name, word))
    if not tools:
        return []
    if group.description == "":
        kept[f"{_GROUP_FIELDS}/description"] = b'""'
    if unread:
        kept.update({_GROUP_FIELDS + pointer: raw for pointer, raw in unread.rest().items()})
    first = tools[0]
    own = first.extras.fields if first.extras else {}
    described = group.description or ""
    tools[0] = structs.replace(first, extras=extras_of({**own, **kept}), namespace_description=described)
    return tools


def write_tools(tools: Sequence[Tool | NativeTool], *, explicit: bool = False) -> list[Any]:
    """Write tools; `explicit` also writes what their writer left out (a reply's echo has every field)."""
    written: list[Any] = []
    group: list[Tool] = []
    for tool in tools:
        same = (
            bool(group)
            and isinstance(tool, Tool)
            and tool.namespace == group[0].namespace
            and GROUP not in tool.spelling.split(",")
        )
        if group and not same:
            written.append(_write_group(group, explicit=explicit))
            group = []
        match tool:
            case NativeTool(dialect=dialect, raw=raw):
                if dialect == NAME:
                    written.append(Raw(raw))
            case Tool(namespace=namespace) if namespace:
                group.append(tool)
            case Tool():
                written.append(_write_tool(tool, explicit=explicit))
    if group:
        written.append(_write_group(group, explicit=explicit))
    return written


def _write_group(tools: list[Tool], *, explicit: bool) -> Any:
    wire: dict[str, Any] = {"type": "namespace", "name": tools[0].namespace}
    fields = own_extras(tools[0], NAME) or {}
    kept = {name[len(_GROUP_FIELDS) :]: raw for name, raw in fields.items() if name.startswith(_GROUP_FIELDS)}
    if tools[0].namespace_description:
        wire["description"] = tools[0].namespace_description
    elif explicit or GROUP not in tools[0].spelling.split(","):
        wire["description"] = ""
    wire["tools"] = [_write_tool(tool, explicit=explicit) for tool in tools]
    return Raw(json.graft(json.encode(wire), kept)) if kept else wire


def _write_tool(tool: Tool, *, explicit: bool) -> Any:
    words = tool.spelling.split(",") if tool.spelling else []
    wire: dict[str, Any] = {"type": "function" if tool.form == "json" else "custom", "name": tool.name}
    if tool.description or _EMPTY_DESCRIPTION in words:
        wire["description"] = tool.description
    if tool.form == "text":
        if tool.grammar is not None:
            wire["format"] = Raw(tool.grammar)
        elif _TEXT_FORMAT in words:
            wire["format"] = {"type": "text"}
    else:
        if tool.parameters is not None:
            wire["parameters"] = Raw(tool.parameters)
        elif explicit or _NO_PARAMETERS not in words:
            wire["parameters"] = _NO_ARGUMENTS
        if tool.strict is not None or explicit or _NO_STRICT not in words:
            wire["strict"] = bool(tool.strict)
    fields = own_extras(tool, NAME)
    if not fields:
        return wire
    own = {name: raw for name, raw in fields.items() if not name.startswith(_GROUP_FIELDS)}
    return Raw(json.graft(json.encode(wire), own))


def read_choice(choice: Raw | None, parallel: bool | None) -> ToolChoice | None:
    """Read `tool_choice` and `parallel_tool_calls`."""
    where = "/tool_choice"
    raw = present(choice)
    if raw is None:
        return None if parallel is None else ToolChoice(where=where, parallel=parallel)
    mode = _MODES.get(raw)
    if mode is not None:
        return ToolChoice(where=where, mode=mode, parallel=parallel)
    if json.first_byte(raw) != b"{":
        return _native_choice(raw, parallel)
    try:
        wire, unread = _CHOICE.read(raw)
    except json.Malformed as error:
        raise json.Malformed(error.message, where + error.where) from None
    fields = unread.rest() if unread else {}
    match wire:
        case Unknown():
            return _native_choice(raw, parallel)
        case NamedTool(name=name) | NamedCustomTool(name=name):
            return ToolChoice(where=where, extras=extras_of(fields), mode="required", names=(name,), parallel=parallel)
        case AllowedTools(mode=mode, tools=tools):
            for index, tool in enumerate(tools):
                if isinstance(tool, Unknown):
                    fields[f"/tools/{index}"] = bytes(tool.raw)
            return ToolChoice(
                where=where,
                spelling="allowed_tools",
                extras=extras_of(fields),
                mode=mode,
                names=tuple([tool.name for tool in tools if not isinstance(tool, Unknown)]),
                parallel=parallel,
                listed=True,
            )


def _native_choice(raw: bytes, parallel: bool | None) -> ToolChoice:
    """A choice of the vendor's own tools says nothing about the caller's: kept whole, under the empty pointer."""
    return ToolChoice(where="/tool_choice", extras=Extras(NAME, {"": raw}), parallel=parallel)


def write_choice(choice: ToolChoice, tools: Sequence[Tool | NativeTool]) -> Any:
    """Write `tool_choice`; None when nothing was said."""
    fields = own_extras(choice, NAME) or {}
    if "" in fields:
        return Raw(fields[""])
    if choice.mode is None:
        return None
    custom = {tool.name for tool in tools if isinstance(tool, Tool) and tool.form == "text"}
    named = [{"type": "custom" if name in custom else "function", "name": name} for name in choice.names]
    allowed = choice.spelling == "allowed_tools"
    if not named and not allowed:
        return choice.mode
    if len(named) == 1 and choice.mode == "required" and not allowed:
        wire: dict[str, Any] = named[0]
    elif choice.mode == "none":
        return "none"
    else:
        wire = {"type": "allowed_tools", "mode": choice.mode, "tools": named}
    return Raw(json.graft(json.encode(wire), fields)) if fields else wire
