"""Parse and render a request."""

from typing import Any

from msgspec import Raw

from dialects.toy import tools
from dialects.toy.parts import read_line, write_part
from dialects.toy.wire import NAME, RequestShape, extras_of
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, Sampling, ToolChoice
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.record import Call, ReadTools
from dragoman.wire import json
from dragoman.wire.shape import ABSENT, Shape

_REQUEST: Shape[RequestShape] = Shape(RequestShape)


def parse_request(call: Call, /, *, first: int = 0, read_tools: ReadTools = tools.read_tools) -> Request:
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
        tool_choice=None if shape.pick is None else ToolChoice(mode=shape.pick),
        sampling=Sampling(temperature=shape.heat, max_tokens=shape.limit),
        stream=shape.stream,
        extras=extras_of(unread.rest() if unread is not None else None),
    )


def render_request(request: Request, _traits: Traits) -> Call:
    """Write a request that was adapted to Toy."""
    lines = json.decode_array(b"[" + request.written + b"]")
    lines += [line for message in request.messages for part in message.parts if (line := _write(part, message))]
    body: dict[str, Any] = {
        "model": request.model,
        "lines": lines,
        "tools": Raw(request.written_tools) if request.written_tools else tools.write_tools(request.tools) or None,
        "pick": None if request.tool_choice is None else request.tool_choice.mode,
        "limit": request.sampling.max_tokens,
        "heat": request.sampling.temperature,
        "stream": request.stream or None,
    }
    written = json.encode({name: value for name, value in body.items() if value is not None})
    return Call(json.graft(written, own_extras(request, NAME) or {}), request.model, request.stream)


def _write(part: Any, message: Message) -> Raw | None:
    line = write_part(part, message.role)
    if line is None or isinstance(line, bytes):
        return None if line is None else Raw(line)
    return Raw(json.graft(json.encode(line), own_extras(part, NAME) or {}))
