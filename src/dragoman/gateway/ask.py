"""What a client asks, before anything of it is translated: only what the way to an upstream depends on is read."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.http.message import Headers
from dragoman.wire.json import Malformed

Framing = Literal["sse", "array"]


class Ask(Struct, frozen=True, kw_only=True):
    """A request for an answer."""

    dialect: str
    call: Call
    """The client's bytes, its name for the model, and whether it wants a stream."""
    native: Call | None = None
    """What an upstream of the same dialect is sent instead, where that is not the same."""
    is_kept: bool = False
    """Its history is ours: what is not in order there is ours to mend, whoever it goes to."""
    framing: Framing = "sse"
    """How a stream is framed; only Gemini has a choice."""
    strict: bool = False
    owner: str = ""
    headers: Headers = ()
    """The client's headers that an upstream of the same dialect may see."""
    target: str = ""
    """The path and query that an upstream with the same path may see; empty without a query."""
    tools: str = ""
    """The tools of ours that its header asks for."""
    allowed: tuple[str, ...] = ()
    """Patterns of the tools that it may ask for; empty for all."""


def unreadable(error: Malformed) -> Problem:
    """Say of a body that it cannot be read, and where."""
    return Problem("invalid_request", error.message, where=error.where)


class _Head(Struct):
    """The members of a body that choose the way; a body may have any others."""

    model: str | None = None
    stream: bool | None = None


_HEAD = msgspec.json.Decoder(_Head)


def named_in(body: bytes, value: Any = None) -> Call:
    """Read a body that names its model and whether it is to be streamed; `value` is the body, if it was decoded."""
    match value:
        case {"model": str(model), "stream": bool(stream)} if model:
            return Call(body, model, stream)
        case {"model": str(model)} if model and "stream" not in value:
            return Call(body, model)
        case _:
            return _named_in(body)


def _named_in(body: bytes) -> Call:
    try:
        head = _HEAD.decode(body)
    except msgspec.ValidationError as error:
        words, _, where = str(error).partition(" - at `$")
        pointer = where.rstrip("`").replace(".", "/")
        raise Problem("invalid_request", f"{words} at {pointer or 'the root'}", where=pointer) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem("invalid_request", f"the body is no JSON: {error}") from None
    if not head.model:
        raise Problem("invalid_request", "you must provide a model parameter", where="/model")
    return Call(body, head.model, bool(head.stream))
