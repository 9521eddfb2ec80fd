"""The configuration of an agent, shared by all of its runs."""

from collections.abc import Callable

from msgspec import Struct

from dragoman.agent.approvals import Approve
from dragoman.agent.history import Compaction
from dragoman.agent.limits import Limits
from dragoman.agent.model import Model
from dragoman.agent.steps import Recorder
from dragoman.core.response import Usage
from dragoman.http.addresses import Destination
from dragoman.tools import Executor

Price = Callable[[str, Usage], float | None]
"""Returns the cost of a model turn; None if it is unknown."""


class AgentConfig(Struct, frozen=True, kw_only=True):
    """A model, tools, and their limits."""

    model: Model
    executor: Executor
    limits: Limits = Limits()
    approve: Approve | None = None
    """The approval policy; without one every call is allowed, except where egress needs approval."""
    destinations: tuple[Destination, ...] = ()
    """Destinations to which data may be sent even after untrusted content was read."""
    price: Price | None = None
    compaction: Compaction | None = None
    recorder: Recorder | None = None
