"""Read and check a client's request before it is translated.

Only what routing depends on is read: the model and whether to stream. A body with a duplicate key is rejected. So are
tools that nobody could call, with all that is wrong with them at once, if the request is translated; a request that is
passed on in its own dialect is judged by the vendor itself, and only tools that cannot be read are rejected here.
"""

import asyncio
import re
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.dialects.record import Call, Dialect
from dragoman.gateway.errors import build_body_error, build_duplicate_key_error
from dragoman.http.message import Headers
from dragoman.interpreter.tool_choice import find_choice_faults
from dragoman.interpreter.tool_errors import build_problem, find_all_faults
from dragoman.interpreter.tools import are_valid, count_unproven_bytes
from dragoman.interpreter.tools_cache import NO_PROOFS, ToolSet
from dragoman.wire import json
from dragoman.wire.json import Malformed, decode_distinct
from dragoman.wire.splice import set_member

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


SMALL_BODY = 8 << 10
"""Bytes below which a body is searched whole for duplicate keys: looking up what is known of it would cost as much."""


def require_distinct_keys(body: bytes) -> Any:
    """Decode a body and return it; raise a `Problem` for a duplicate key: two parsers could read two values."""
    try:
        value, where = decode_distinct(body)
    except Malformed as error:
        raise build_body_error(error) from None
    if where is not None:
        raise build_duplicate_key_error(where)
    return value


class _RoutingFields(Struct):
    """The members of a body that routing depends on."""

    model: str | None = None
    stream: bool | None = None


_ROUTING_DECODER = msgspec.json.Decoder(_RoutingFields)


def read_call(body: bytes, value: Any = None) -> Call:
    """Read the model and whether to stream from a body; `value` is the decoded body, if there is one."""
    members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    model, stream = members.get("model"), members.get("stream", False)
    if model and isinstance(model, str) and isinstance(stream, bool):
        return Call(body, model, stream)
    return _decode_call(body)


def _decode_call(body: bytes) -> Call:
    try:
        head = _ROUTING_DECODER.decode(body)
    except msgspec.ValidationError as error:
        words, _, where = str(error).partition(" - at `$")
        pointer = where.rstrip("`").replace(".", "/")
        raise Problem("invalid_request", f"{words} at {pointer or 'the root'}", where=pointer) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem("invalid_request", f"the body is no JSON: {error}") from None
    if not head.model:
        raise Problem("invalid_request", "you must provide a model parameter", where="/model")
    return Call(body, head.model, bool(head.stream))


_NESTED_FUNCTION = re.compile(rb'"function"\s*:\s*\{')
_TOOL_MEMBERS = ("tools", "tool_choice")


def flatten_tools(call: Call) -> Call:
    """Return a request with tools and choice in the form of Responses, if they came in the form of Chat."""
    if _NESTED_FUNCTION.search(call.body) is None:
        return call
    try:
        members = json.decode_object(call.body)
        body = call.body
        for name in _TOOL_MEMBERS:
            raw = members.get(name)
            value = json.decode(raw) if raw is not None and _NESTED_FUNCTION.search(bytes(raw)) is not None else None
            flat = _flatten(value)
            if flat != value:
                body = set_member(body, name, json.encode(flat))
    except json.Malformed as error:
        raise build_body_error(error) from None
    return call if body == call.body else Call(body, call.model, call.stream)


def _flatten(value: Any) -> Any:
    match value:
        case list():
            return [_flatten(item) for item in cast("list[Any]", value)]
        case {"type": "function", "function": {**function}, **rest}:
            return {"type": "function", **rest, **function}
        case _:
            return value


_LARGE_SCHEMAS = 16 << 10
"""Bytes of schemas above which they are validated beside the event loop."""


def are_tools_validated(request: Request, tool_set: ToolSet | None) -> bool:
    """Tell whether the tools of a request were validated before, and its choice needs no look at them."""
    names = request.tool_choice.names if request.tool_choice is not None else ()
    return tool_set is not None and tool_set.is_valid and tool_set.tools is request.tools and not names


async def require_valid_tools(call: Call, dialect: Dialect, request: Request, tool_set: ToolSet | None = None) -> None:
    """Reject tools that nobody could call, in a request that is about to be translated."""
    tools = request.tools
    known = tool_set if tool_set is not None and tool_set.tools is tools else None
    valid = not tools or (known is not None and known.is_valid)
    if not valid:
        proofs = known.proofs if known is not None else NO_PROOFS
        beside = len(call.body) > _LARGE_SCHEMAS and count_unproven_bytes(tools, proofs) > _LARGE_SCHEMAS
        valid = await asyncio.to_thread(are_valid, tools, proofs) if beside else are_valid(tools, proofs)
        if known is not None:
            known.is_valid = valid
    faults = [] if valid else await asyncio.to_thread(find_all_faults, call, dialect)
    if request.tool_choice is not None and request.tool_choice.names:
        faults += find_choice_faults(request)
    if faults:
        raise build_problem(faults)
