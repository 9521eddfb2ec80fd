"""Where jobs lie: those that run here in memory, and all of them among the runs of the session store.

Rules: every process of a gateway finds every task of its owner. One whose maker shows no sign of life any more is told
as failed. A task that is cancelled in another process stops here at the next sign of life.
"""

import asyncio
import contextlib
from time import time

import msgspec

from dragoman.mcp.server.job import ENDED, Job, Told, now
from dragoman.sessions.runs import INTERRUPTED, RUNNING, KeptRun, Runs
from dragoman.sessions.values import Unavailable

TTL = 86_400.0
"""Seconds a task can be asked for."""
_BETWEEN_SIGNS = 5.0
_PREFIX = "task-"
_INTERNAL = -32603


class Shelf:
    """Keeps jobs."""

    def __init__(self, runs: Runs | None = None, *, ttl: float = TTL) -> None:
        self.ttl = ttl
        self._runs = runs
        self._jobs: dict[str, Job] = {}
        self._signs: dict[str, asyncio.Task[None]] = {}

    async def add(self, job: Job) -> None:
        """Keep a job that begins."""
        if self._runs is not None:
            await self._runs.begin(job.owner, _PREFIX + job.id, "", msgspec.json.encode(job.told))
            self._signs[job.id] = asyncio.create_task(self._live(job, self._runs))
        self._jobs[job.id] = job

    async def settle(self, job: Job) -> None:
        """Keep how a job ended."""
        signs = self._signs.pop(job.id, None)
        if signs is not None:
            signs.cancel()
        if self._runs is None:
            self._forget_old()
            return
        with contextlib.suppress(Unavailable):
            await self._runs.end(job.owner, _PREFIX + job.id, job.status, msgspec.json.encode(job.told))
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
        kept = None if self._runs is None else await self._runs.find(owner, _PREFIX + name)
        told = None if kept is None else _as_it_is(kept)
        return told if kept is not None and time() - kept.created <= self.ttl else None

    async def cancel(self, owner: str, name: str) -> None:
        """Stop a task, wherever it runs; one that has ended stays as it is."""
        job = self.running(owner, name)
        if job is not None:
            job.end("cancelled")
            if job.task is not None:
                job.task.cancel()
            return
        told = await self.find(owner, name)
        if self._runs is not None and told is not None and told.status not in ENDED:
            told.status, told.last_updated_at = "cancelled", now()
            await self._runs.end(owner, _PREFIX + name, "cancelled", msgspec.json.encode(told))

    async def close(self) -> None:
        """Stop what runs; it is told as failed, for nobody cancelled it."""
        jobs = [job for job in self._jobs.values() if not job.has_ended]
        for job in jobs:
            job.end("failed", error={"code": _INTERNAL, "message": "the process that worked on this task was stopped"})
        tasks = [job.task for job in jobs if job.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _live(self, job: Job, runs: Runs) -> None:
        while True:
            await asyncio.sleep(_BETWEEN_SIGNS)
            with contextlib.suppress(Unavailable):
                await runs.live(job.owner, _PREFIX + job.id)
                kept = await runs.find(job.owner, _PREFIX + job.id)
                if kept is not None and kept.status in ENDED and job.task is not None:
                    job.task.cancel()

    def _forget_old(self) -> None:
        """Without a store, jobs that have ended are kept here as long as they were promised to be."""
        for job in [job for job in self._jobs.values() if job.has_ended and job.age > self.ttl]:
            del self._jobs[job.id]


def _as_it_is(kept: KeptRun) -> Told:
    begun = kept.status in {RUNNING, INTERRUPTED}
    told = msgspec.json.decode(kept.entries[0] if begun else kept.summary, type=Told)
    if kept.status == INTERRUPTED:
        told.status = "failed"
        told.error = {"code": _INTERNAL, "message": "the process that worked on this task is gone"}
    return told
