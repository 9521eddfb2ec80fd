"""Tools and the choice among them.

Words of a tool's spelling: "custom" for a type that was written out, "description" for an empty one, "bare" for a tool
without a schema.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Raw
from msgspec.json import Decoder

from dragoman.core.request import NativeTool, Tool, ToolChoice
from dragoman.core.value import own_extras
from dragoman.dialects.messages.parts import cache_control, cache_mark, extras_of
from dragoman.dialects.messages.wire import ABSENT, NAME, ChoiceShape, ToolShape
from dragoman.wire.json import Malformed, decode_with, encode, graft
from dragoman.wire.shape import Shape, carried

_TOOLS: Decoder[list[Raw] | None] = Decoder(list[Raw] | None)
_TOOL: Shape[ToolShape] = Shape(ToolShape)
_CHOICE: Shape[ChoiceShape] = Shape(ChoiceShape)
_CHOICE_MODES: dict[str, Any] = {"auto": "auto", "any": "required", "tool": "required", "none": "none"}
_NO_PARAMETERS = Raw(b'{"type":"object","properties":{}}')


def read_tools(raw: bytes, where: str) -> tuple[Tool | NativeTool, ...]:
    """Parse the array of tools whose pointer is `where`."""
    try:
        tools = decode_with(_TOOLS, raw)
    except Malformed as error:
        raise Malformed(error.message, where + error.where) from None
    return tuple([_read_tool(tool, f"{where}/{index}") for index, tool in enumerate(tools or ())])


def _read_tool(raw: Raw, where: str) -> Tool | NativeTool:
    shape, fields = _TOOL.read_at(raw, where)
    if shape.type not in (None, "custom"):
        return NativeTool(where=where, dialect=NAME, raw=bytes(raw))
    if not shape.name:
        raise Malformed("a tool needs a name", where + "/name")
    fields.update(carried(shape) or {})
    spelling = "custom" if shape.type else ""
    if shape.description == "":
        spelling += " description"
    if shape.input_schema is ABSENT:
        spelling += " bare"
    return Tool(
        where=where,
        spelling=spelling,
        extras=extras_of(fields),
        name=shape.name,
        description=shape.description or "",
        parameters=None if shape.input_schema is ABSENT else bytes(shape.input_schema),
        strict=shape.strict,
        cache=cache_mark(shape.cache_control),
    )


def read_choice(raw: Raw, fields: dict[str, bytes]) -> ToolChoice | None:
    """Read how free the model is; a choice nobody knows goes to `fields` whole."""
    if raw is ABSENT or bytes(raw) == b"null":
        return None
    shape, below = _CHOICE.read_at(raw, "/tool_choice")
    if shape.type not in _CHOICE_MODES:
        fields["/tool_choice"] = bytes(raw)
        return None
    if shape.type == "tool" and not shape.name:
        raise Malformed("a forced tool needs a name", "/tool_choice/name")
    if shape.type != "tool" and shape.name is not None:
        below["/name"] = encode(shape.name)
    disabled = shape.disable_parallel_tool_use
    return ToolChoice(
        where="/tool_choice",
        extras=extras_of(below),
        mode=_CHOICE_MODES[shape.type],
        names=(shape.name,) if shape.name and shape.type == "tool" else (),
        parallel=None if disabled is None else not disabled,
    )


def write_tools(tools: Iterable[Tool | NativeTool]) -> list[Any]:
    """Write tools as items of the array `tools`."""
    return [_write_tool(tool) for tool in tools]


def _write_tool(tool: Tool | NativeTool) -> Any:
    if isinstance(tool, NativeTool):
        return Raw(tool.raw)
    shape = ToolShape(
        name=tool.name,
        type="custom" if "custom" in tool.spelling else None,
        description=tool.description or ("" if "description" in tool.spelling else None),
        input_schema=_write_schema(tool),
        strict=tool.strict,
        cache_control=cache_control(tool.cache),
    )
    fields = own_extras(tool, NAME)
    return Raw(graft(encode(shape), fields)) if fields else shape


def _write_schema(tool: Tool) -> Raw:
    if tool.parameters is not None:
        return Raw(tool.parameters)
    return ABSENT if "bare" in tool.spelling else _NO_PARAMETERS


def write_choice(choice: ToolChoice | None, *, tools: bool) -> Any:
    """Write how free the model is; None where nothing was said."""
    if choice is None:
        return None
    if choice.mode is None and (choice.parallel is not False or not tools):
        return None
    flag = None if choice.parallel is None else not choice.parallel
    match choice.mode:
        case "none":
            shape = ChoiceShape("none")
        case "required" if len(choice.names) == 1:
            shape = ChoiceShape("tool", choice.names[0], flag)
        case "required":
            shape = ChoiceShape("any", None, flag)
        case _:
            shape = ChoiceShape("auto", None, flag)
    fields = own_extras(choice, NAME)
    return Raw(graft(encode(shape), fields)) if fields else shape
