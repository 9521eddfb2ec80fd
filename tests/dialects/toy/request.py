"""Parse a request and its tools."""

from msgspec import Raw

from dialects.toy.fields import SAMPLING_FIELDS, read_choice
from dialects.toy.parts import read_line
from dialects.toy.wire import ToyRequest, ToyTool, extras_of
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, Sampling, Tool
from dragoman.dialects.record import Call, ReadTools, Tools
from dragoman.wire import json
from dragoman.wire.shape import ABSENT, Shape

_REQUEST: Shape[ToyRequest] = Shape(ToyRequest)
_TOOL: Shape[ToyTool] = Shape(ToyTool)


def read_tools(raw: bytes, where: str) -> Tools:
    """Parse the array of tools whose pointer is `where`."""
    return tuple(_read_tool(tool, f"{where}/{index}") for index, tool in enumerate(json.decode_array(raw)))


def _read_tool(raw: Raw, where: str) -> Tool:
    shape, unread = _TOOL.read_at(raw, where)
    parameters = None if shape.takes is ABSENT else bytes(shape.takes)
    extras = extras_of(unread)
    return Tool(where=where, extras=extras, name=shape.tool, description=shape.about, parameters=parameters)


def parse_request(call: Call, /, *, first: int = 0, read_tools: ReadTools = read_tools) -> Request:
    """Parse a request; the lines are numbered from `first`, for those before were removed."""
    try:
        shape, unread = _REQUEST.read(call.body)
        declared = () if shape.tools is ABSENT else read_tools(bytes(shape.tools), "/tools")
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    if unread is not None:
        unread.renumber("lines", first)
    messages: list[Message] = []
    for index, line in enumerate(shape.lines, first):
        where = f"/lines/{index}"
        role, part = read_line(line, where, unread)
        messages.append(Message(where=where, role=role, parts=(part,)))
    return Request(
        model=shape.model or call.model,
        messages=tuple(messages),
        tools=declared,
        tool_choice=read_choice(shape),
        sampling=Sampling(**SAMPLING_FIELDS.read(shape)),
        stream=shape.stream,
        extras=extras_of(unread.rest() if unread is not None else None),
    )
