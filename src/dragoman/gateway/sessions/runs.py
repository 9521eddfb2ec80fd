"""Runs of agents in the session store: written while they happen, and read as histories that can be gone on from.

While a run goes on, its process says every few seconds that it is alive, so that others can tell a long run from one
whose process is gone. A store that cannot be asked for a while does not end a run: what was not written yet is written
with what comes next.
"""

import asyncio
import contextlib

from msgspec import Struct

from dragoman.agent import RunEnded, closed
from dragoman.core.preserved import preserved, restored
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.gateway.sessions.keeping import unavailable
from dragoman.sessions.runs import Runs
from dragoman.sessions.values import Conflict, Unavailable
from dragoman.wire import json

_BETWEEN_SIGNS = 5.0


class PastRun(Struct, frozen=True, kw_only=True):
    """A run as it can be looked at afterwards, or from elsewhere."""

    id: str
    status: str
    """`running`, `interrupted`, or why it ended."""
    history: tuple[Message, ...]
    """All that was said; every call in it has its result."""
    summary: bytes
    """Its statistics as a JSON object, if it is over."""


class _Page(Struct):
    """One run while it is written."""

    signs: asyncio.Task[None]
    place: int = 0
    unwritten: list[tuple[int, bytes]] = []
    replaces: bool = False
    """The first of what is unwritten takes the place of everything before it."""


class RunBook:
    """Writes down the runs of one owner. It is an agent's `Recorder`.

    With `anew` a run takes the place of one of its name that is over, or was interrupted.
    """

    def __init__(self, runs: Runs, owner: str, between_signs: float = _BETWEEN_SIGNS, *, anew: bool = False) -> None:
        self._runs = runs
        self._owner = owner
        self._between_signs = between_signs
        self._anew = anew
        self._pages: dict[str, _Page] = {}

    async def begin(self, run: str, request: Request) -> None:
        """Begin a page; a `Problem` if there is one of that name, or no store to write in."""
        # Before it is written: what is cancelled meanwhile may have been written all the same, and is ended then.
        self._pages[run] = _Page(asyncio.create_task(self._live(run)))
        try:
            await self._runs.begin(self._owner, run, request.model, preserved(request.messages), anew=self._anew)
        except (Conflict, Unavailable) as error:
            self._pages.pop(run).signs.cancel()
            taken = Problem("conflict", f"there is a run {run!r} already")
            raise (taken if isinstance(error, Conflict) else unavailable()) from None

    async def add(self, run: str, messages: tuple[Message, ...]) -> None:
        """Write what was said."""
        if messages:
            await self._write(run, messages)

    async def replace(self, run: str, messages: tuple[Message, ...]) -> None:
        """Write a history that takes the place of the one before."""
        page = self._pages[run]
        page.unwritten, page.replaces = [], True
        await self._write(run, messages)

    async def end(self, ended: RunEnded) -> None:
        """Close the page."""
        page = self._pages.pop(ended.run, None)
        if page is None:
            return  # it could not be begun
        page.signs.cancel()
        with contextlib.suppress(Unavailable):
            await self._flush(ended.run, page)
            await self._runs.end(self._owner, ended.run, ended.stop, _summary(ended))

    async def _write(self, run: str, messages: tuple[Message, ...]) -> None:
        page = self._pages[run]
        page.place += 1
        page.unwritten.append((page.place, preserved(messages)))
        with contextlib.suppress(Unavailable):
            await self._flush(run, page)

    async def _flush(self, run: str, page: _Page) -> None:
        while page.unwritten:
            place, body = page.unwritten[0]
            write = self._runs.replace if page.replaces else self._runs.add
            await write(self._owner, run, place, body)
            page.replaces = False
            page.unwritten = [entry for entry in page.unwritten if entry[0] > place]

    async def _live(self, run: str) -> None:
        while True:
            await asyncio.sleep(self._between_signs)
            with contextlib.suppress(Unavailable):
                await self._runs.live(self._owner, run)


async def past_run(runs: Runs, owner: str, name: str) -> PastRun | None:
    """Look a run up; of one that was interrupted, calls without a result have one that says so."""
    kept = await runs.find(owner, name)
    if kept is None:
        return None
    messages = tuple(message for body in kept.entries for message in restored(body))
    return PastRun(id=kept.id, status=kept.status, history=closed(messages), summary=kept.summary)


def _summary(ended: RunEnded) -> bytes:
    statistics = ended.statistics
    return json.encode(
        {
            "turns": statistics.turns,
            "calls": statistics.calls,
            "failed": statistics.failed,
            "input": statistics.usage.input,
            "output": statistics.usage.output,
            "cost": statistics.cost,
            "seconds": statistics.seconds,
            "untrusted": ended.untrusted,
        }
    )
