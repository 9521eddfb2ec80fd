"""Decides whether a request needs the other API of a vendor, because the model takes its tools only there."""

from functools import cache

from msgspec import structs

from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.core.request import Request, Tool
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call, Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.ledger import open_request_ledger
from dragoman.interpreter.parameters import find_effort
from dragoman.wire.json import Malformed, decode_object, encode
from dragoman.wire.lookup import to_snake_case


def needs_other_api(request: Request, traits: Traits) -> bool:
    """Return whether a model takes the tools of a request, or its reasoning together with them, only in another API."""
    if traits.tools_elsewhere:
        return any(isinstance(tool, Tool) for tool in request.tools)
    if not traits.tools_need_no_effort or not request.tools:
        return False
    if request.thinking is None:
        return traits.tools_need_stated_effort
    return find_effort(request.thinking) != "none"


def call_needs_other_api(call: Call, dialect: Dialect, traits: Traits) -> bool:
    """Return the same for a request that is not parsed yet; its history is not read."""
    if not (traits.tools_elsewhere or traits.tools_need_stated_effort) and not any(
        name in call.body for name in _list_thinking_fields(dialect.name)
    ):
        return False
    unwrapped = dialect.unwrap(call) if dialect.unwrap is not None else None
    call = unwrapped[0] if unwrapped is not None else call
    try:
        body = encode({**decode_object(call.body), dialect.history: []})
        return needs_other_api(dialect.parse_request(structs.replace(call, body=body)), traits)
    except (Malformed, Problem):
        return False  # its translation reports what is wrong with it


@cache
def _list_thinking_fields(dialect: str) -> tuple[bytes, ...]:
    """Return the names of the fields with thinking settings, as a body has them."""
    pointers = (found for field, found in dialect_named(dialect).pointers.items() if field.startswith("thinking."))
    leaves = {pointer.rpartition("/")[2] for found in pointers for pointer in found}
    return tuple(b'"%b"' % name.encode() for leaf in leaves for name in {leaf, to_snake_case(leaf)})


def report_other_api(body: bytes, dialect: Dialect, traits: Traits, name: str) -> Loss:
    """Return the informational loss of a request that is sent in the other API, whose dialect is `name`."""
    ledger = open_request_ledger(dialect, body)
    where = ledger.find_pointer("thinking.effort")
    if traits.tools_elsewhere or not ledger.has(where):
        where = ledger.find_pointer("tools")
    reason = f"sent in the upstream's {name} API: this model takes tools with reasoning only there"
    return Loss(where, reason, "approximated", "informational")
