"""Render a request and its tools."""

from typing import Any

from msgspec import Raw

from dialects.toy.fields import SAMPLING_FIELDS
from dialects.toy.parts import write_part
from dialects.toy.wire import NAME, ToyTool
from dragoman.core.request import Message, NativeTool, Request, Tool
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.record import Call, Tools
from dragoman.wire import json
from dragoman.wire.shape import ABSENT
from dragoman.wire.splice import graft


def render_request(request: Request, _traits: Traits) -> Call:
    """Write a request that was adapted to Toy."""
    lines = json.decode_array(b"[" + request.written + b"]")
    lines += [line for message in request.messages for part in message.parts if (line := _write(part, message))]
    body: dict[str, Any] = {
        "model": request.model,
        "lines": lines,
        "tools": Raw(request.written_tools) if request.written_tools else write_tools(request.tools) or None,
        "pick": None if request.tool_choice is None else request.tool_choice.mode,
        **SAMPLING_FIELDS.write(request.sampling),
        "stream": request.stream or None,
    }
    written = json.encode({name: value for name, value in body.items() if value is not None})
    return Call(graft(written, own_extras(request, NAME) or {}), request.model, request.stream)


def _write(part: Any, message: Message) -> Raw | None:
    line = write_part(part, message.role)
    if line is None or isinstance(line, bytes):
        return None if line is None else Raw(line)
    return Raw(graft(json.encode(line), own_extras(part, NAME) or {}))


def write_tools(tools: Tools) -> list[Any]:
    """Write tools as items of the array in which a request has them."""
    return [_write_tool(tool) for tool in tools if not isinstance(tool, NativeTool)]


def _write_tool(tool: Tool) -> Raw:
    takes = ABSENT if tool.parameters is None else Raw(tool.parameters)
    return Raw(graft(json.encode(ToyTool(tool.name, tool.description, takes)), own_extras(tool, NAME) or {}))
