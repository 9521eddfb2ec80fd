"""Who may decide whether a call is run, and how: allow, deny, or ask somebody.

Rules: a policy is a function from a wish to a decision. "allow" says that the policy has nothing against it; it is not
the word of a person, and does not do where one is needed (`egress`). "ask" waits for that word; no answer is a no.
"""

from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

from msgspec import Struct

from dragoman.core.parts import ToolCall
from dragoman.tools import Handler

Decision = Literal["allow", "deny", "ask"]


class ApprovalRequest(Struct, frozen=True, kw_only=True):
    """A call that a model wants to be run."""

    run: str
    call: ToolCall
    handler: Handler
    egress_reason: str = ""
    """Why it could carry something out that must stay, in words for a person; "" if it could not."""


Approve = Callable[[ApprovalRequest], Decision | Awaitable[Decision]]


class Approvals:
    """A policy by names: the first pattern that fits (`*` is any letters), then what changes things, then the rest."""

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
    """Tell whether an answer is a clear yes; everything else is a no."""
    return answer is True or answer == "allow"


def topic_of(key: str) -> str:
    """Return what is waited for to approve a call."""
    return f"approval:{key}"
