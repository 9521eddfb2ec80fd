"""Which upstream a request is sent to next, and after which wait.

Only errors that may pass are retried, never once the client has received a byte, and never more often than a share of
all requests: an upstream that is down must not get more requests for it. An error that another upstream may not have is
retried there at once.
"""

import asyncio
import random
from collections.abc import Sequence

from msgspec import Struct

from dragoman.core.problems import Kind, Problem
from dragoman.gateway.record import Record
from dragoman.gateway.router import Target

_TRANSIENT: frozenset[Kind] = frozenset(
    {"rate_limit", "overloaded", "timeout", "internal", "malformed_reply", "unreachable"}
)
_PERMANENT = frozenset({"insufficient_quota", "credentials", "untrusted"})
"""Codes of errors that waiting does not end, but that another upstream may not have."""
_ACCOUNT_ERRORS: frozenset[Kind] = frozenset({"billing", "not_found"})
_RETRY_ELSEWHERE: frozenset[Kind] = _TRANSIENT.union(_ACCOUNT_ERRORS)
"""An account without credit and a model that does not exist are errors of one upstream."""
_FINAL = frozenset({"conversation_diverged"})
"""Codes of errors that come again however often the same request is sent, though SDKs would retry it."""
_CONVERSATION_CHANGED = frozenset({"conversation_changed", "conversation_locked"})
"""A client that retries continues from what the conversation is by then."""
_MAX_CLIENT_WAIT = 60.0


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How often one request is retried, and the waits between."""

    retries: int = 2
    first_wait: float = 0.5
    longest_wait: float = 8.0
    longest_asked: float = 20.0
    """The longest wait in seconds that an upstream may ask for; a longer one is reported to the client."""


class RetryBudget:
    """The share of requests that may be retried: some at once, then one in five."""

    def __init__(self, share: float = 0.2, capacity: float = 20.0) -> None:
        self._share = share
        self._capacity = capacity
        self._left = capacity
        self.requests = 0
        """Requests since the last retry; whoever begins one counts it here."""

    def spend(self) -> bool:
        """Take one retry from the budget; return False if none is left."""
        self._left = min(self._capacity, self._left + self.requests * self._share)
        self.requests = 0
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Retries:
    """The attempts at a request after the first: each target in turn, then all again while policy and budget allow."""

    def __init__(self, targets: Sequence[Target], policy: RetryPolicy, budget: RetryBudget, record: Record) -> None:
        self._targets = targets
        self._policy = policy
        self._budget = budget
        self._record = record
        self._rounds = 1
        self._index = 0

    async def next_target(self, problem: Problem) -> Target:
        """Return the next target, after a wait if there must be one; raise the error if it is final."""
        if self._index + 1 < len(self._targets) and may_succeed_elsewhere(problem):
            self._index += 1
        else:
            wait = retry_delay(problem, self._rounds, self._policy)
            if wait is None:
                raise problem
            if not self._budget.spend():
                self._record.is_retry_budget_spent = True
                raise problem
            await asyncio.sleep(wait)
            self._rounds += 1
            self._index = 0
        return self._targets[self._index]


def may_succeed_later(problem: Problem) -> bool:
    """Tell whether the same request may succeed at the same upstream later."""
    return problem.kind in _TRANSIENT and problem.code not in _PERMANENT


def may_succeed_elsewhere(problem: Problem) -> bool:
    """Tell whether the same request may succeed at another upstream now."""
    return problem.kind in _RETRY_ELSEWHERE or problem.code in _PERMANENT


def client_may_retry(problem: Problem, tries: int) -> bool:
    """Tell whether the client should retry after we have: its retries multiply ours."""
    if problem.code in _CONVERSATION_CHANGED or not tries:
        return problem.code not in _FINAL
    return tries < 2 and may_succeed_later(problem) and (problem.retry_after or 0.0) <= _MAX_CLIENT_WAIT


def retry_delay(problem: Problem, rounds: int, policy: RetryPolicy) -> float | None:
    """Return the seconds to wait before the next round, or None if there is none; `rounds` counts those made."""
    if rounds > policy.retries or not may_succeed_later(problem):
        return None
    if problem.retry_after is not None:
        return problem.retry_after if problem.retry_after <= policy.longest_asked else None
    longest = min(policy.longest_wait, policy.first_wait * 2 ** (rounds - 1))
    return longest * random.uniform(0.75, 1.0)  # noqa: S311  spreads load, hides nothing
