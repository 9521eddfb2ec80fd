"""Limits of a run, its statistics, the reason why it ended, and how to stop it from outside.

None means no limit. Limits are checked between turns, except the time, which ends a run wherever it is.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

from msgspec import Struct

from dragoman.core.response import Usage

StopReason = Literal[
    "finished",
    "client_calls",
    "turns",
    "calls",
    "seconds",
    "tokens",
    "cost",
    "repetition",
    "cancelled",
    "failed",
]
"""Why a run ended. "finished" is the model's own end; "client_calls" leaves calls to whoever asked."""


class Limits(Struct, frozen=True, kw_only=True):
    """How far a run may go."""

    turns: int = 10
    """Turns of the model with tools; after them it is asked once more, without."""
    seconds: float | None = None
    """From the first question to the end, waiting for approvals included."""
    tokens: int | None = None
    """Input and output of all turns together."""
    cost: float | None = None
    """In the currency of the agent's `price`."""
    calls: int | None = None
    """Calls that are run; what is called beyond them is not, and the model is asked once more, for an answer."""
    repairs: int | None = 3
    """How often in a row a model may mend the arguments of a tool; after that the tool is not run any more."""
    identical: int | None = 3
    """How often the same call may bring the same result; after that it is not run until something else is tried."""
    approval: float = 300.0
    """Seconds to wait for somebody's word; no answer is a no. 0 where there is nobody to ask."""


class Statistics(Struct, frozen=True, kw_only=True):
    """How far a run went."""

    turns: int = 0
    calls: int = 0
    """Calls that were answered, whether they were run or refused."""
    failed: int = 0
    usage: Usage = Usage()
    """Of all turns together."""
    cost: float | None = None
    """None where no price is known."""
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return (self.usage.input or 0) + (self.usage.output or 0)


def add_usage(one: Usage | None, other: Usage | None) -> Usage:
    """Return what two turns used together; what neither reported stays unreported."""
    if one is None or other is None:
        return one or other or Usage()
    return Usage(
        input=_add_counts(one.input, other.input),
        output=_add_counts(one.output, other.output),
        cached=_add_counts(one.cached, other.cached),
        cache_written=_add_counts(one.cache_written, other.cache_written),
        reasoning=_add_counts(one.reasoning, other.reasoning),
    )


def _add_counts(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)


CancelMode = Literal["now", "after_turn"]


class StoppedError(Exception):
    """The run was stopped where it was."""


class Control:
    """One run's stop button."""

    def __init__(self) -> None:
        self.cancelled: CancelMode | None = None
        self._scope: asyncio.Timeout | None = None

    def cancel(self, when: CancelMode = "now") -> None:
        """Stop the run; "now" also where "after_turn" was said before."""
        if self.cancelled != "now":
            self.cancelled = when
        if self.cancelled == "now" and self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def enforce_deadline(self, seconds: float | None) -> AsyncGenerator[None]:
        """Run what is inside until it is over, time is up or the button is pressed: then `StoppedError`."""
        try:
            async with asyncio.timeout(0 if self.cancelled == "now" else seconds) as self._scope:
                yield
        except TimeoutError:
            if self._scope is None or not self._scope.expired():
                raise
            raise StoppedError from None
        finally:
            self._scope = None
