"""What the tools of the server need: models, tools, pages and conversations; and who calls them with which key."""

from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from msgspec import Struct

from dragoman.agent import Carrier, Model
from dragoman.core.request import NativeTool
from dragoman.sessions.conversations import Conversations
from dragoman.tools import Executor
from dragoman.tools.web.documents import WebDocument

CALLER_KEY = "dragoman.caller"
"""Where the bridge leaves the caller, in the scope of a request."""


def _allow_any_model(_model: str) -> bool:
    return True


class ToolCaller(Struct, frozen=True, kw_only=True):
    """Whose call it is."""

    owner: str = "local"
    allows: Callable[[str], bool] = _allow_any_model
    """Tells whether the caller may ask for a model."""


LOCAL_CALLER = ToolCaller()
"""Who started the process speaks for itself."""


def caller_of(ctx: ServerRequestContext[Any, Any]) -> ToolCaller:
    """Return whose call a request is; on a pipe it is whoever started the process."""
    return LOCAL_CALLER if ctx.request is None else ctx.request.scope.get(CALLER_KEY, LOCAL_CALLER)


class ServiceSettings(Struct, frozen=True, kw_only=True):
    """How calls are answered that say nothing else."""

    model: str
    """Asked unless a call names another; "" where none is configured."""
    search_model: str = ""
    """Asked to search; "" for `model`."""
    system: str = ""
    max_turns: int = 10
    seconds: float = 600.0
    """For one `query`, waiting for tools included."""
    destinations: tuple[str, ...] = ()
    """Hosts to which something may be sent also after what anybody may have written was read."""


class Service(Struct, frozen=True, kw_only=True):
    """What the tools stand on."""

    settings: ServiceSettings
    model: Callable[[str], Model]
    """Returns the function that asks models for an owner."""
    search_tool: Callable[[str], NativeTool | None]
    """Returns what makes a model search the web; None for one that cannot."""
    executor: Executor
    """Runs the tools there are at the moment: external servers come and go."""
    read_page: Callable[[str, str], Awaitable[WebDocument]]
    """Reads a page by its address for an owner, or raises `Refused`."""
    conversations: Conversations
    carrier: Carrier
    """Carries the runs of `query`."""
