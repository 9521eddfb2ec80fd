"""Where jobs lie: those that run here in memory, and all of them in the session store.

Rules: every process of a gateway finds every task of its owner. One whose maker shows no sign of life any more is told
as failed. A task that is cancelled in another process stops here at the next sign of life.
"""

import asyncio
import contextlib
from time import time

import msgspec

from dragoman.mcp.server.job import ENDED, Job, Told, now
from dragoman.sessions.store import Store
from dragoman.sessions.values import Turn, Unavailable

TTL = 86_400.0
"""Seconds a task can be asked for."""
_DIALECT = "mcp"
_BETWEEN_SIGNS = 5.0
_SILENT = 30.0
_PREFIX = "task-"
_INTERNAL = -32603


class Shelf:
    """Keeps jobs."""

    def __init__(self, store: Store | None = None, *, ttl: float = TTL) -> None:
        self.ttl = ttl
        self._store = store
        self._jobs: dict[str, Job] = {}
        self._turns: dict[str, Turn] = {}
        self._signs: dict[str, asyncio.Task[None]] = {}

    async def add(self, job: Job) -> None:
        """Keep a job that begins."""
        self._jobs[job.id] = job
        if self._store is None:
            return
        turn = Turn(
            owner=job.owner,
            dialect=_DIALECT,
            id=_PREFIX + job.id,
            reply=msgspec.json.encode(job.told),
            status="in_progress",
            created=int(time()),
            alive=int(time()),
        )
        await self._store.add(turn)
        self._turns[job.id] = turn
        self._signs[job.id] = asyncio.create_task(self._live(job, turn))

    async def settle(self, job: Job) -> None:
        """Keep how a job ended."""
        turn = self._turns.pop(job.id, None)
        signs = self._signs.pop(job.id, None)
        if signs is not None:
            signs.cancel()
        if self._store is None or turn is None:
            self._forget_old()
            return
        ended = msgspec.structs.replace(turn, reply=msgspec.json.encode(job.told), status=job.status)
        with contextlib.suppress(Unavailable):
            await self._store.finish(ended)
            # What is kept is told from there, so that memory does not grow with what has ended.
            self._jobs.pop(job.id, None)

    def running(self, owner: str, name: str) -> Job | None:
        """Find a job that runs here."""
        job = self._jobs.get(name)
        return job if job is not None and job.owner == owner else None

    async def find(self, owner: str, name: str) -> Told | None:
        """Find what is known of a task."""
        job = self.running(owner, name)
        if job is not None:
            return job.told
        turn = await self._kept(owner, name)
        return None if turn is None else _as_it_is(turn)

    async def cancel(self, owner: str, name: str) -> None:
        """Stop a task, wherever it runs; one that has ended stays as it is."""
        job = self.running(owner, name)
        if job is not None:
            job.end("cancelled")
            if job.task is not None:
                job.task.cancel()
            return
        turn = await self._kept(owner, name)
        if self._store is not None and turn is not None and turn.status == "in_progress":
            told = _read(turn)
            told.status, told.last_updated_at = "cancelled", now()
            await self._store.finish(msgspec.structs.replace(turn, reply=msgspec.json.encode(told), status="cancelled"))

    async def close(self) -> None:
        """Stop what runs; it is told as cancelled."""
        tasks = [job.task for job in self._jobs.values() if job.task is not None and not job.has_ended]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _kept(self, owner: str, name: str) -> Turn | None:
        turn = None if self._store is None else await self._store.turn(owner, _PREFIX + name)
        return turn if turn is not None and turn.dialect == _DIALECT else None

    async def _live(self, job: Job, turn: Turn) -> None:
        while self._store is not None:
            await asyncio.sleep(_BETWEEN_SIGNS)
            with contextlib.suppress(Unavailable):
                await self._store.live(turn)
                kept = await self._store.turn(turn.owner, turn.id)
                if kept is not None and kept.status in ENDED and job.task is not None:
                    job.task.cancel()

    def _forget_old(self) -> None:
        """Without a store, jobs that have ended are kept here as long as they were promised to be."""
        ended = [job for job in self._jobs.values() if job.has_ended and job.age > self.ttl]
        for job in ended:
            del self._jobs[job.id]


def _read(turn: Turn) -> Told:
    return msgspec.json.decode(turn.reply, type=Told)


def _as_it_is(turn: Turn) -> Told:
    told = _read(turn)
    if turn.status == "in_progress" and time() - turn.alive >= _SILENT:
        told.status = "failed"
        told.error = {"code": _INTERNAL, "message": "the process that worked on this task is gone"}
    return told
