"""When to try again, and how long to wait before.

Only what may pass is tried again, never once the client has seen a byte, and never more often than a share of all
requests: an upstream that is down must not get more of them for it. What another upstream may do better is asked there.
"""

import random

from msgspec import Struct

from dragoman.core.problems import Kind, Problem

_PASSING: frozenset[Kind] = frozenset(
    {"rate_limit", "overloaded", "timeout", "internal", "malformed_reply", "unreachable"}
)
_LASTING = frozenset({"insufficient_quota", "credentials", "untrusted"})
"""Codes of problems of one upstream that waiting does not mend, but another upstream may not have."""
_ACCOUNT: frozenset[Kind] = frozenset({"billing", "not_found"})
_ELSEWHERE: frozenset[Kind] = _PASSING.union(_ACCOUNT)
"""An account that is empty, or a model that is not there, is one upstream's trouble."""
_HOPELESS = frozenset({"conversation_diverged"})
"""Codes of problems that come again however often the same is sent, though SDKs would try it."""
_CHANGED = frozenset({"conversation_changed", "conversation_locked"})
"""Whoever asks again goes on from what the conversation is by then."""
_LONGEST_FOR_CLIENTS = 60.0


class Patience(Struct, frozen=True, kw_only=True):
    """How often and how long one request is tried again."""

    retries: int = 2
    first_wait: float = 0.5
    longest_wait: float = 8.0
    longest_asked: float = 20.0
    """Seconds an upstream may ask us to wait; a client is told of more than that."""


class Budget:
    """The share of requests that may be tried again: some at once, then one in five."""

    def __init__(self, share: float = 0.2, most: float = 20.0) -> None:
        self._share = share
        self._most = most
        self._left = most

    def earn(self) -> None:
        """Note a request."""
        self._left = min(self._most, self._left + self._share)

    def spend(self) -> bool:
        """Tell whether one may be tried again."""
        if self._left < 1:
            return False
        self._left -= 1
        return True


def may_pass_later(problem: Problem) -> bool:
    """Tell whether the same request may do better at the same upstream, later."""
    return problem.kind in _PASSING and problem.code not in _LASTING


def may_pass_elsewhere(problem: Problem) -> bool:
    """Tell whether the same request may do better at another upstream, at once."""
    return problem.kind in _ELSEWHERE or problem.code in _LASTING


def client_may_retry(problem: Problem, tries: int) -> bool:
    """Tell whether the client's own tries make sense once ours are spent: they would multiply."""
    if problem.code in _CHANGED or not tries:
        return problem.code not in _HOPELESS
    return tries < 2 and may_pass_later(problem) and (problem.retry_after or 0.0) <= _LONGEST_FOR_CLIENTS


def wait_before(problem: Problem, tried: int, patience: Patience) -> float | None:
    """Return the seconds to wait before the next try, None for no more tries; `tried` counts those that were made."""
    if tried > patience.retries or not may_pass_later(problem):
        return None
    if problem.retry_after is not None:
        return problem.retry_after if problem.retry_after <= patience.longest_asked else None
    longest = min(patience.longest_wait, patience.first_wait * 2 ** (tried - 1))
    return longest * random.uniform(0.75, 1.0)  # noqa: S311  spreads load, hides nothing
