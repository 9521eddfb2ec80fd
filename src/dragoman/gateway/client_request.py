"""Reads and checks a client's request before it is translated.

Only what routing needs is read: the model and whether to stream. A body with a duplicate key is rejected. If the
request is translated, invalid tools are rejected too, with all their errors at once. If it is passed through in its own
dialect, the vendor validates it, and only tools that cannot be parsed are rejected here.
"""

import asyncio
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from dragoman.core.losses import Loss, Strict
from dragoman.core.problems import Problem
from dragoman.core.request import AnyTool, Request, Tool
from dragoman.dialects.record import Call, Dialect
from dragoman.gateway.errors import build_body_error, build_duplicate_key_error
from dragoman.http.message import Headers
from dragoman.interpreter.tool_choice import find_choice_faults
from dragoman.interpreter.tool_errors import build_problem, find_all_faults
from dragoman.interpreter.tools import are_valid, count_unproven_bytes
from dragoman.interpreter.tools_cache import NO_PROOFS, ToolSet
from dragoman.wire.duplicates import search_objects
from dragoman.wire.json import Malformed, as_list, decode_distinct

Framing = Literal["sse", "array"]
CONVERSATION_HEADERS = frozenset({"x-dragoman-conversation", "x-stainless-retry-count", "idempotency-key"})
"""Headers that name the conversation of a request or mark it as a retry."""


class ClientRequest(Struct, frozen=True, kw_only=True):
    """A request for a model reply."""

    dialect: str
    call: Call
    """The client's body, its name for the model, and whether it wants a stream."""
    native: Call | None = None
    """The call for an upstream of the same dialect, if it differs."""
    has_stored_history: bool = False
    """Whether its history comes from the store; then calls and results are paired for every upstream."""
    framing: Framing = "sse"
    """How the events of a stream are framed; only Gemini has a choice."""
    strict: Strict = False
    losses: tuple[Loss, ...] = ()
    """The losses of converting a body that came in another format than its endpoint's."""
    owner: str = ""
    headers: Headers = ()
    """The client's headers to forward to an upstream of the same dialect."""
    target: str = ""
    """The path and query to forward to an upstream with the same path; empty without a query."""
    tools: str = ""
    """The server-side tools that its `x-dragoman-tools` header names."""
    allowed: tuple[str, ...] = ()
    """Patterns of the server-side tools that its API key may use; empty for all."""
    is_large: bool = False
    """Whether its body has so many values that another process handles it; see `large_bodies`."""


SMALL_BODY = 8 << 10
"""Bytes below which a body is searched whole for duplicate keys: a cache lookup would cost as much."""


def require_distinct_keys(body: bytes) -> Any:
    """Decode a body and return it; raise a `Problem` for a duplicate key, which two parsers could read differently."""
    try:
        value, is_distinct = decode_distinct(body)
        where = None if is_distinct else search_objects(body)
    except Malformed as error:
        raise build_body_error(error) from None
    if where is not None:
        raise build_duplicate_key_error(where)
    return value


def is_native(value: Any, dialect: Dialect) -> bool:
    """Return whether a decoded body has its dialect's history and tools, not those of the vendor's other API."""
    if not isinstance(value, dict) or dialect.history not in value:
        return False
    body = cast("dict[str, Any]", value)
    return "tools" not in body or not has_other_tools(body, dialect)


def has_other_tools(body: dict[str, Any], dialect: Dialect) -> bool:
    """Return whether a decoded body has functions, or a choice of one, in the format of the vendor's other API."""
    nested = dialect.nests_functions
    for tool in (*as_list(body.get("tools")), body.get("tool_choice")):
        match tool:
            case {"type": ("function" | "custom") as kind} if (kind in tool) is not nested:
                return True
            case _:
                pass
    return False


class _RoutingFields(Struct):
    """The fields of a body that routing needs."""

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
        message, _, where = str(error).partition(" - at `$")
        pointer = where.rstrip("`").replace(".", "/")
        raise Problem("invalid_request", f"{message} at {pointer or 'the root'}", where=pointer) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem("invalid_request", f"the body is not JSON: {error}") from None
    if not head.model:
        raise Problem("invalid_request", "you must provide a model parameter", where="/model")
    return Call(body, head.model, bool(head.stream))


_LARGE_SCHEMAS = 16 << 10
"""Bytes of schemas above which they are validated in a thread, off the event loop."""


_MOST_TOOLS = 10_000
_MOST_SCHEMA_OBJECTS = 100_000
"""Objects in the schemas of all tools of a request."""


def _require_few_schemas(tools: tuple[AnyTool, ...], dialect: Dialect) -> None:
    """Raise a `Problem` for more tools or larger schemas than any model takes."""
    where = dialect.pointers["tools"][0]
    if len(tools) > _MOST_TOOLS:
        raise Problem("invalid_request", f"there are {len(tools)} tools; the limit is {_MOST_TOOLS}", where=where)
    objects = sum((tool.parameters or b"").count(b"{") for tool in tools if isinstance(tool, Tool))
    if objects > _MOST_SCHEMA_OBJECTS:
        message = f"the schemas of the tools have {objects} objects; the limit is {_MOST_SCHEMA_OBJECTS}"
        raise Problem("invalid_request", message, where=where)


def are_tools_validated(request: Request, tool_set: ToolSet | None) -> bool:
    """Return whether the tools of a request were validated before, and its tool choice names none of them."""
    names = request.tool_choice.names if request.tool_choice is not None else ()
    return tool_set is not None and tool_set.is_valid and tool_set.tools is request.tools and not names


async def require_valid_tools(call: Call, dialect: Dialect, request: Request, tool_set: ToolSet | None = None) -> None:
    """Raise a `Problem` if a request to be translated has invalid tools or an invalid tool choice."""
    tools = request.tools
    cached = tool_set if tool_set is not None and tool_set.tools is tools else None
    is_valid = not tools or (cached is not None and cached.is_valid)
    if not is_valid:
        if len(call.body) > _LARGE_SCHEMAS:
            _require_few_schemas(tools, dialect)
        proofs = cached.proofs if cached is not None else NO_PROOFS
        in_thread = len(call.body) > _LARGE_SCHEMAS and count_unproven_bytes(tools, proofs) > _LARGE_SCHEMAS
        is_valid = await asyncio.to_thread(are_valid, tools, proofs) if in_thread else are_valid(tools, proofs)
        if cached is not None:
            cached.is_valid = is_valid
    faults = [] if is_valid else await asyncio.to_thread(find_all_faults, call, dialect)
    if request.tool_choice is not None and request.tool_choice.names:
        faults += find_choice_faults(request)
    if faults:
        raise build_problem(faults)
