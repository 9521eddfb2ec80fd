"""What the tools of the server stand on: models, tools, pages and conversations, handed in by whoever starts it."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from dragoman.agent import Carrier, Model
from dragoman.core.request import NativeTool
from dragoman.sessions.conversations import Conversations
from dragoman.tools import Executor
from dragoman.tools.web.documents import Document


class Settings(Struct, frozen=True, kw_only=True):
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

    settings: Settings
    model: Callable[[str], Model]
    """Returns the function that asks models for an owner."""
    search_tool: Callable[[str], NativeTool | None]
    """Returns what makes a model search the web; None for one that cannot."""
    executor: Executor
    """Runs the tools there are at the moment: external servers come and go."""
    read_page: Callable[[str, str], Awaitable[Document]]
    """Reads a page by its address for an owner, or raises `Refused`."""
    conversations: Conversations
    carrier: Carrier
    """Carries the runs of `query`."""
