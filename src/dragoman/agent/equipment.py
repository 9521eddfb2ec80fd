"""What an agent is made of: the same for all of its runs."""

from msgspec import Struct

from dragoman.agent.limits import Limits
from dragoman.agent.model import Model
from dragoman.tools import Executor


class Equipment(Struct, frozen=True, kw_only=True):
    """A model, tools, and how far they may go."""

    model: Model
    executor: Executor
    limits: Limits = Limits()
