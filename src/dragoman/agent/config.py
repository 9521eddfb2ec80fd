"""The configuration of an agent, shared by all of its runs, and approval policies: allow a call, deny it, or ask.

Rules: a policy is a function from an `ApprovalRequest` to a decision. "allow" means that the policy has no objection;
it is not a user's approval, and does not suffice where one is required (`egress_reason`). "ask" waits for the user's
answer; no answer means no.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, TypedDict

from msgspec import Struct

from dragoman.agent.history import Compaction
from dragoman.agent.hooks import Hooks
from dragoman.agent.limits import Limits
from dragoman.agent.model import Model
from dragoman.agent.runtime import WatchedRuntime
from dragoman.agent.steps import Recorder
from dragoman.core.parts import ToolCall
from dragoman.core.request import OutputFormat
from dragoman.core.response import Usage
from dragoman.http.addresses import Destination
from dragoman.tools import Executor, Handler

Decision = Literal["allow", "deny", "ask"]


class ApprovalRequest(Struct, frozen=True, kw_only=True):
    """A call that a model wants to be run."""

    run: str
    call: ToolCall
    handler: Handler
    egress_reason: str = ""
    """Why the call could leak data, as text for the user; "" if it could not."""


Approve = Callable[[ApprovalRequest], Decision | Awaitable[Decision]]


class Approvals:
    """A policy by tool name: the first pattern that matches (`*` is allowed), then side effects, then the others."""

    def __init__(
        self,
        tools: Mapping[str, Decision] | None = None,
        *,
        side_effects: Decision = "allow",
        others: Decision = "allow",
    ) -> None:
        self._tools: dict[str, Decision] = dict(tools or {})
        self._side_effects: Decision = side_effects
        self._others: Decision = others

    def __call__(self, request: ApprovalRequest) -> Decision:
        """Decide about a call."""
        for pattern, decision in self._tools.items():
            if fnmatchcase(request.handler.name, pattern):
                return decision
        return self._side_effects if request.handler.side_effects else self._others


def is_yes(answer: Any) -> bool:
    """Check whether an answer is an explicit yes; everything else is a no."""
    return answer is True or answer == "allow"


def topic_of(key: str) -> str:
    """Return the topic of the approval of a call, for `Runtime.wait`."""
    return f"approval:{key}"


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
    hooks: Hooks | None = None
    output_format: OutputFormat | None = None
    """The format of the answer, for requests that set none."""
    find_correction: Callable[[str], str] | None = None
    """Returns the message after which the model answers once more; "" if the answer is valid."""


class AgentSettings(TypedDict, total=False):
    """Keyword arguments of `Agent`; the fields of `AgentConfig` document them."""

    limits: Limits | None
    approve: Approve | None
    destinations: Iterable[str]
    price: Price | None
    compaction: Compaction | None
    recorder: Recorder | None
    hooks: Hooks | None
    runtime: Callable[[str], WatchedRuntime]
