"""Decides whether, when and at which upstream a failed request is retried.

Only transient errors are retried, never after the client has received a byte, and only a share of all requests: an
upstream that is down must not get extra load. If another upstream may not have the error, it is tried at once.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from dragoman.core.problems import Kind, Problem
from dragoman.gateway.context import CallContext
from dragoman.gateway.record import Record
from dragoman.gateway.router import Target

T = TypeVar("T")
_TRANSIENT: frozenset[Kind] = frozenset(
    {"rate_limit", "overloaded", "timeout", "internal", "malformed_reply", "unreachable"}
)
_PERMANENT = frozenset({"insufficient_quota", "credentials", "untrusted"})
"""Codes of errors that waiting does not fix, but that another upstream may not have."""
_ACCOUNT_ERRORS: frozenset[Kind] = frozenset({"billing", "not_found"})
_RETRY_ELSEWHERE: frozenset[Kind] = _TRANSIENT.union(_ACCOUNT_ERRORS)
"""An account without credit or a model that does not exist is an error of one upstream only."""
_FINAL = frozenset({"conversation_diverged"})
"""Codes of errors that come back however often the same request is sent, although SDKs would retry it."""
_CONVERSATION_CHANGED = frozenset({"conversation_changed", "conversation_locked"})
"""A client that retries after these continues from the new state of the conversation."""
_MAX_CLIENT_WAIT = 60.0


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How often a request is retried, and the delays between attempts."""

    retries: int = 2
    first_wait: float = 0.5
    longest_wait: float = 8.0
    longest_asked: float = 20.0
    """The longest `Retry-After` in seconds that is waited for; after a longer one the client gets the error."""


class RetryBudget:
    """The share of requests that may be retried: a burst of `capacity`, then one in five."""

    def __init__(self, share: float = 0.2, capacity: float = 20.0) -> None:
        self._share = share
        self._capacity = capacity
        self._left = capacity
        self.requests = 0
        """Requests since the last retry; the caller increments it for each request."""

    def spend(self) -> bool:
        """Take one retry from the budget; return False if it is empty."""
        self._left = min(self._capacity, self._left + self.requests * self._share)
        self.requests = 0
        if self._left < 1:
            return False
        self._left -= 1
        return True


class RetryLoop:
    """Calls targets until one succeeds. All requests share the budget."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._budget = RetryBudget()

    async def run(
        self, targets: Sequence[Target], attempt: Callable[[Target], Awaitable[T]], context: CallContext
    ) -> T:
        """Return the result of the first attempt that succeeds; raise the error if it is final.

        An error is also final if the client has received a part of the response.
        """
        target, retries = targets[0], None
        self._budget.requests += 1
        while True:
            try:
                return await attempt(target)
            except Problem as problem:
                context.record.note_attempt_end("failed", problem)
                if context.has_started:
                    raise
                retries = retries or Retries(targets, self._policy, self._budget, context.record)
                target = await retries.next_target(problem)


class Retries:
    """The attempts after the first: each target in turn, then all again while policy and budget allow."""

    def __init__(self, targets: Sequence[Target], policy: RetryPolicy, budget: RetryBudget, record: Record) -> None:
        self._targets = targets
        self._policy = policy
        self._budget = budget
        self._record = record
        self._rounds = 1
        self._index = 0

    async def next_target(self, problem: Problem) -> Target:
        """Return the next target, after a delay if one is needed; raise the error if it is final."""
        if self._index + 1 < len(self._targets) and may_succeed_elsewhere(problem):
            self._index += 1
        else:
            delay = retry_delay(problem, self._rounds, self._policy)
            if delay is None:
                raise problem
            if not self._budget.spend():
                self._record.is_retry_budget_spent = True
                raise problem
            await asyncio.sleep(delay)
            self._rounds += 1
            self._index = 0
        return self._targets[self._index]


def may_succeed_later(problem: Problem) -> bool:
    """Return whether the same request may succeed at the same upstream later."""
    return problem.kind in _TRANSIENT and problem.code not in _PERMANENT


def may_succeed_elsewhere(problem: Problem) -> bool:
    """Return whether the same request may succeed at another upstream now."""
    return problem.kind in _RETRY_ELSEWHERE or problem.code in _PERMANENT


def client_may_retry(problem: Problem, tries: int) -> bool:
    """Return whether the client should retry too: its retries multiply those of the gateway."""
    if problem.code in _CONVERSATION_CHANGED or not tries:
        return problem.code not in _FINAL
    return tries < 2 and may_succeed_later(problem) and (problem.retry_after or 0.0) <= _MAX_CLIENT_WAIT


def retry_delay(problem: Problem, rounds: int, policy: RetryPolicy) -> float | None:
    """Return the seconds to wait before the next attempt, or None if the error is final; `rounds` counts those made."""
    if rounds > policy.retries or not may_succeed_later(problem):
        return None
    if problem.retry_after is not None:
        return problem.retry_after if problem.retry_after <= policy.longest_asked else None
    longest = min(policy.longest_wait, policy.first_wait * 2 ** (rounds - 1))
    return longest * random.uniform(0.75, 1.0)  # noqa: S311  jitter, not a secret
