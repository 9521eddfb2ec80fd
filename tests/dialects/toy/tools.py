"""Read and write the array of tools."""

from typing import Any

from msgspec import Raw

from dialects.toy.wire import ToolShape, extras_of
from dragoman.core.request import NativeTool, Tool
from dragoman.core.value import own_extras
from dragoman.dialects.record import Tools
from dragoman.wire import json
from dragoman.wire.shape import ABSENT, Shape

_TOOL: Shape[ToolShape] = Shape(ToolShape)


def read_tools(raw: bytes, where: str) -> Tools:
    """Parse the array of tools whose pointer is `where`."""
    return tuple(_read_tool(tool, f"{where}/{index}") for index, tool in enumerate(json.decode_array(raw)))


def _read_tool(raw: Raw, where: str) -> Tool:
    shape, unread = _TOOL.read_at(raw, where)
    parameters = None if shape.takes is ABSENT else bytes(shape.takes)
    extras = extras_of(unread)
    return Tool(where=where, extras=extras, name=shape.tool, description=shape.about, parameters=parameters)


def write_tools(tools: Tools) -> list[Any]:
    """Write tools as items of the array in which a request has them."""
    return [_write_tool(tool) for tool in tools if not isinstance(tool, NativeTool)]


def _write_tool(tool: Tool) -> Raw:
    takes = ABSENT if tool.parameters is None else Raw(tool.parameters)
    return Raw(json.graft(json.encode(ToolShape(tool.name, tool.description, takes)), own_extras(tool, "toy") or {}))
