"""Stopping a run from outside: at once, after the turn, or because its time is over."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

When = Literal["now", "after_turn"]


class StoppedError(Exception):
    """The run was stopped where it was."""


class Control:
    """One run's stop button."""

    def __init__(self) -> None:
        self.cancelled: When | None = None
        self._scope: asyncio.Timeout | None = None

    def cancel(self, when: When = "now") -> None:
        """Stop the run; "now" also where "after_turn" was said before."""
        if self.cancelled != "now":
            self.cancelled = when
        if self.cancelled == "now" and self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def limited(self, seconds: float | None) -> AsyncGenerator[None]:
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
