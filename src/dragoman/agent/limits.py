"""Limits of a run, its statistics, its stop reason, and how to cancel it.

None means no limit. Limits are checked between turns, except the time limit, which ends a run at any point.
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
"""Why a run ended: "finished" is the model's own decision; "client_calls" leaves calls to the client."""


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of a run."""

    turns: int = 10
    """Model turns with tools; after them the model is called once more, without tools."""
    seconds: float | None = None
    """The time limit of the whole run, including waits for approval."""
    tokens: int | None = None
    """Input and output tokens of all turns and summaries together."""
    cost: float | None = None
    """The cost limit, in the currency of the agent's `price`."""
    calls: int | None = None
    """Tool calls to run; further calls are refused, and the model is called once more for an answer."""
    repairs: int | None = 3
    """How often in a row a model may retry a tool with invalid arguments; after that the tool is not run any more."""
    identical: int | None = 3
    """How often the same call may return the same result; after that it is not run until another call is made."""
    approval: float = 300.0
    """Seconds to wait for an approval; no answer means no. Use 0 if there is no user to ask."""


class Statistics(Struct, frozen=True, kw_only=True):
    """What a run has used."""

    turns: int = 0
    calls: int = 0
    """Calls that have a result, whether they were run or refused."""
    failed: int = 0
    usage: Usage = Usage()
    """The usage of all turns and summaries together."""
    cost: float | None = None
    """The cost of all turns and summaries; None if no price is known."""
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return (self.usage.input or 0) + (self.usage.output or 0)


CancelMode = Literal["now", "after_turn"]


class StoppedError(Exception):
    """The run was stopped in the middle of a turn."""


class Control:
    """Cancels one run, and enforces its time limit."""

    def __init__(self) -> None:
        self.cancelled: CancelMode | None = None
        self._scope: asyncio.Timeout | None = None

    def cancel(self, when: CancelMode = "now") -> None:
        """Cancel the run; "now" also overrides an earlier "after_turn"."""
        if self.cancelled != "now":
            self.cancelled = when
        if self.cancelled == "now" and self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def enforce_deadline(self, seconds: float | None) -> AsyncGenerator[None]:
        """Run the block; raise `StoppedError` when the time is up or the run is cancelled with "now"."""
        try:
            async with asyncio.timeout(0 if self.cancelled == "now" else seconds) as self._scope:
                yield
        except TimeoutError:
            if self._scope is None or not self._scope.expired():
                raise
            raise StoppedError from None
        finally:
            self._scope = None
