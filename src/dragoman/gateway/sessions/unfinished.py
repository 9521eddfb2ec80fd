"""Turns that a process began and did not live to end: what was said and done in them is where the next one goes on.

Rules: while a turn runs, its run is written down under the state of the conversation that it goes on from. When the
conversation is kept, the run is forgotten: nothing stands there twice. Found again is only what was interrupted.
"""

import contextlib

from dragoman.core.request import Message, leading_systems
from dragoman.gateway.sessions.runs import RunBook, past_run
from dragoman.sessions.conversations import Opened
from dragoman.sessions.runs import INTERRUPTED, RUNNING, Runs
from dragoman.sessions.values import Unavailable


class Unfinished:
    """The run of one turn, from what was left before it to its own end."""

    def __init__(self, runs: Runs, opened: Opened) -> None:
        self._runs = runs
        self._owner = opened.kept.owner
        self._messages = opened.messages
        self.run = f"{opened.kept.id}@{opened.kept.revision}"
        self.recorder: RunBook | None = None
        """Writes the run down; None while another process may still be at the same place."""

    async def found(self) -> tuple[Message, ...]:
        """Return what was said so far, and what was said and done in an interrupted turn after that."""
        past = await past_run(self._runs, self._owner, self.run)
        if past is not None and past.status == RUNNING:
            return self._messages
        if past is not None:
            await self._runs.forget(self._owner, self.run)
        self.recorder = RunBook(self._runs, self._owner)
        if past is None or past.status != INTERRUPTED:
            return self._messages
        return past.history[leading_systems(past.history) :]

    async def close(self) -> None:
        """Forget the run: how it ended is known to whoever asked."""
        if self.recorder is not None:
            with contextlib.suppress(Unavailable):
                await self._runs.forget(self._owner, self.run)
