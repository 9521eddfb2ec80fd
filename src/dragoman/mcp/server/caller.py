"""Who calls a tool: the key that was let in, and what it may do."""

from collections.abc import Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from msgspec import Struct

STATE = "dragoman.caller"
"""Where the bridge leaves the caller, in the scope of a request."""


def _anything(_model: str) -> bool:
    return True


class Caller(Struct, frozen=True, kw_only=True):
    """Whose call it is."""

    owner: str = "local"
    allows: Callable[[str], bool] = _anything
    """Tells whether the caller may ask for a model."""


LOCAL = Caller()
"""Who started the process speaks for itself."""


def caller_of(ctx: ServerRequestContext[Any, Any]) -> Caller:
    """Return whose call a request is; on a pipe it is whoever started the process."""
    return LOCAL if ctx.request is None else ctx.request.scope.get(STATE, LOCAL)
