"""What an agent is made of: the same for all of its runs."""

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
"""What a turn of a model costs; None if that is not known."""


class AgentConfig(Struct, frozen=True, kw_only=True):
    """A model, tools, and how far they may go."""

    model: Model
    executor: Executor
    limits: Limits = Limits()
    approve: Approve | None = None
    """The policy; without one everything is allowed but what `egress` objects to."""
    destinations: tuple[Destination, ...] = ()
    """Places to which data may go also after something untrusted was read."""
    price: Price | None = None
    compaction: Compaction | None = None
    recorder: Recorder | None = None
