"""Parse and build a whole reply."""

from typing import Any

from dialects.toy.parts import read_line, write_part
from dialects.toy.wire import NAME, ToyReply, ToyTokens, extras_of
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, FinishReason, Response, Usage
from dragoman.core.value import own_extras
from dragoman.wire import json
from dragoman.wire.shape import Shape
from dragoman.wire.splice import graft

_REPLY: Shape[ToyReply] = Shape(ToyReply)
_REASONS: dict[str, FinishReason] = {"done": "stop", "limit": "length", "calls": "tool_calls"}
_ENDS = {reason: word for word, reason in _REASONS.items()}
ENDS = frozenset(_REASONS)


def finish_of(word: str) -> Finish:
    """Return why the model stopped; an unknown word is `other`."""
    return Finish(_REASONS.get(word, "other"), word)


def end_of(finish: Finish) -> str:
    """Return Toy's word for the end of a reply."""
    return _ENDS.get(finish.reason, "done")


def parse_response(body: bytes) -> Response:
    """Parse a whole reply."""
    try:
        shape, unread = _REPLY.read(body)
    except json.Malformed as error:
        raise Problem("malformed_reply", error.message, where=error.where) from None
    parts = tuple(read_line(line, f"/lines/{index}", unread)[1] for index, line in enumerate(shape.lines))
    usage = None if shape.tokens is None else Usage(input=shape.tokens.read, output=shape.tokens.written)
    extras = extras_of(unread.rest() if unread is not None else None)
    return Response(
        id=shape.id, model=shape.model, parts=parts, finish=finish_of(shape.end), usage=usage, extras=extras
    )


def build_response(response: Response, _request: Request | None) -> bytes:
    """Write a whole reply that was adapted to Toy."""
    lines = [line for part in response.parts if (line := write_part(part, "assistant")) is not None]
    reply = ToyReply(response.id, response.model, lines, end_of(response.finish), tokens_of(response.usage))
    return graft(json.encode(reply), own_extras(response, NAME) or {})


def tokens_of(usage: Usage | None) -> Any:
    """Return the counts of a reply."""
    return None if usage is None else ToyTokens(usage.input or 0, usage.output or 0)
