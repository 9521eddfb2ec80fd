"""A client's request before it is translated: only what routing depends on is read."""

import re
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.http.message import Headers
from dragoman.wire import json
from dragoman.wire.json import Malformed
from dragoman.wire.splice import spliced

Framing = Literal["sse", "array"]
CONVERSATION_HEADERS = frozenset({"x-dragoman-conversation", "x-stainless-retry-count", "idempotency-key"})
"""Headers that say to which conversation a request belongs, or that it is a retry."""


class ClientRequest(Struct, frozen=True, kw_only=True):
    """A request for a response of a model."""

    dialect: str
    call: Call
    """The client's bytes, its name for the model, and whether it wants a stream."""
    native: Call | None = None
    """What is sent instead to an upstream of the same dialect, if that differs."""
    is_kept: bool = False
    """Its history comes from the store: calls and results are paired for every upstream."""
    framing: Framing = "sse"
    """How a stream is framed; only Gemini has a choice."""
    strict: bool = False
    owner: str = ""
    headers: Headers = ()
    """The client's headers that an upstream of the same dialect may see."""
    target: str = ""
    """The path and query that an upstream with the same path may see; empty without a query."""
    tools: str = ""
    """The server-side tools that its header names."""
    allowed: tuple[str, ...] = ()
    """Patterns of the server-side tools that it may use; empty for all."""


def malformed_body(error: Malformed) -> Problem:
    """Return the error for a body that cannot be parsed, with its pointer."""
    return Problem("invalid_request", error.message, where=error.where)


class _Head(Struct):
    """The members of a body that routing depends on."""

    model: str | None = None
    stream: bool | None = None


_HEAD = msgspec.json.Decoder(_Head)


def read_call(body: bytes, value: Any = None) -> Call:
    """Read the model and whether to stream from a body; `value` is the decoded body, if there is one."""
    members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    model, stream = members.get("model"), members.get("stream", False)
    if model and isinstance(model, str) and isinstance(stream, bool):
        return Call(body, model, stream)
    return _decode_call(body)


def _decode_call(body: bytes) -> Call:
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


_NESTED = re.compile(rb'"function"\s*:\s*\{')
_MEMBERS = ("tools", "tool_choice")


def flattened(call: Call) -> Call:
    """Return a request whose tools and choice stand as Responses has them; the same one if they do."""
    if _NESTED.search(call.body) is None:
        return call
    try:
        members = json.decode_object(call.body)
        body = call.body
        for name in _MEMBERS:
            raw = members.get(name)
            value = json.decode(raw) if raw is not None and _NESTED.search(bytes(raw)) is not None else None
            flat = _flat(value)
            if flat != value:
                body = spliced(body, name, json.encode(flat))
    except json.Malformed as error:
        raise malformed_body(error) from None
    return call if body == call.body else Call(body, call.model, call.stream)


def _flat(value: Any) -> Any:
    match value:
        case list():
            return [_flat(item) for item in cast("list[Any]", value)]
        case {"type": "function", "function": {**function}, **rest}:
            return {"type": "function", **rest, **function}
        case _:
            return value
