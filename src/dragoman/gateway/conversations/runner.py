"""Runs jobs in this process and records them in the store, where other processes can watch, message and cancel them.

A run is in the store before its id is returned, and sends a heartbeat every few seconds. Its output is written in
chunks, a few per second at most. Messages from other processes are polled only while runs are active here. If the store
is unavailable for a while, runs continue and their output is written later.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from time import monotonic
from typing import Any

import msgspec

from dragoman.agent import InProcess, Job, RunState, Status, WatchedRuntime, Work
from dragoman.sessions.runs import INTERRUPTED, RUNNING, RunMessage, Runs
from dragoman.sessions.values import Unavailable
from dragoman.tasks import TaskSet, start_task, stop_tasks

_LOG = logging.getLogger("dragoman.runs")
_CANCEL = "cancel"
"""The topic of a message that cancels a run; runs do not wait for this topic themselves."""
_HEARTBEAT_SECONDS = 5.0
_WRITE_SECONDS = 0.1
_POLL_SECONDS = 0.25
"""Seconds between polls for messages from other processes."""
_CANCEL_SECONDS = 5.0
"""Seconds to wait until a run in another process has ended after it was cancelled."""
_STATUSES: dict[str, Status] = {
    RUNNING: "running",
    INTERRUPTED: "interrupted",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


class _ActiveRun:
    """A run in this process."""

    def __init__(self, job: Job, runtime: WatchedRuntime, work: Work) -> None:
        self.job = job
        self.runtime = runtime
        self.task = start_task(self._run(work), f"run {job.run}")
        self.is_cancelled = False
        self.last_output = job.first_output
        self.unwritten: list[bytes] = []
        self.pending_chunk = b""
        """The chunk that is being written; it is written again if the write may have failed."""
        self.has_output = asyncio.Event()
        self.last_entry = 0
        self.entry_added = asyncio.Condition()
        """Notified when an entry was added to the store."""
        self.ended = asyncio.Event()

    async def _run(self, work: Work) -> bytes:
        return await work(self.job, self.runtime)

    def cancel(self) -> None:
        """Stop the run on request."""
        self.is_cancelled = True
        self.task.cancel()

    def read_outcome(self) -> tuple[str, bytes]:
        """Return the status at the end of the work, and its result."""
        if self.task.cancelled():
            return "cancelled" if self.is_cancelled else INTERRUPTED, b""
        error = self.task.exception()
        if error is None:
            return "completed", self.task.result()
        _LOG.error("run %s failed", self.job.run, exc_info=error)
        return "failed", b""


class LocalJobRunner:
    """A `JobRunner` that runs jobs in this process. `runtime` creates the runtime of a run from its name."""

    def __init__(self, runs: Runs, runtime: Callable[[str], WatchedRuntime] = InProcess) -> None:
        self._runs = runs
        self._runtime_factory = runtime
        self._works_by_kind: dict[str, Work] = {}
        self._active_runs: dict[tuple[str, str], _ActiveRun] = {}
        self._supervisors = TaskSet()
        self._listener: asyncio.Task[None] | None = None

    def runtime(self, run: str) -> WatchedRuntime:
        """Return a runtime for a run that is not recorded and ends with its caller."""
        return self._runtime_factory(run)

    def serve(self, kind: str, work: Work) -> None:
        """Register the function that does the work of a kind."""
        self._works_by_kind[kind] = work

    async def start(self, job: Job) -> None:
        """Start a run."""
        await self._runs.begin(job.owner, job.run, "", job.first_output, replaces_ended=True)
        active_run = _ActiveRun(job, self._runtime_factory(job.run), self._works_by_kind[job.kind])
        self._active_runs[job.owner, job.run] = active_run
        self._supervisors.start(self._supervise(active_run), f"supervise run {job.run}")
        if self._listener is None:
            self._listener = start_task(self._poll_messages(), "poll messages from other processes")
        # Let the work start: work that has not started could be cancelled before it can clean up.
        await asyncio.sleep(0)

    async def tell(self, owner: str, run: str, topic: str, value: Any) -> None:
        """Send a value for a topic that a run waits for."""
        active_run = self._active_runs.get((owner, run))
        if active_run is not None:
            active_run.runtime.tell(topic, value)
        else:
            await self._runs.send_message(RunMessage(owner, run, topic, msgspec.json.encode(value)))

    async def cancel(self, owner: str, run: str) -> None:
        """Stop a run; return when it has ended, or after a timeout if it is in another process."""
        active_run = self._active_runs.get((owner, run))
        if active_run is not None:
            active_run.cancel()
            await active_run.ended.wait()
            return
        stored = await self._runs.find_status(owner, run)
        if stored is None or stored.status != RUNNING:
            return
        await self._runs.send_message(RunMessage(owner, run, _CANCEL, b"null"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CANCEL_SECONDS):
                while stored is not None and stored.status == RUNNING:
                    await asyncio.sleep(_POLL_SECONDS)
                    stored = await self._runs.find_status(owner, run)

    async def state(self, owner: str, run: str) -> RunState | None:
        """Return the state of a run; None if it does not exist."""
        stored = await self._runs.find_status(owner, run)
        if stored is None:
            return None
        active_run = self._active_runs.get((owner, run))
        # If this process could not write heartbeats for a while, the store says interrupted, but the run is active.
        status = RUNNING if active_run is not None and stored.status == INTERRUPTED else stored.status
        last_output = stored.last if active_run is None else active_run.last_output
        return RunState(
            status=_STATUSES[status], last_output=last_output, outcome=stored.summary, created=stored.created
        )

    async def watch(self, owner: str, run: str) -> AsyncGenerator[bytes]:
        """Yield the output of a run, including what is still to come."""
        last_index = 0
        while True:
            stored = await self._runs.find_status(owner, run)
            for index, body in await self._runs.list_entries(owner, run, last_index):
                yield body
                last_index = index
            if stored is None or stored.status != RUNNING:
                return
            active_run = self._active_runs.get((owner, run))
            if active_run is None:
                await asyncio.sleep(_POLL_SECONDS)
                continue
            async with active_run.entry_added:
                if active_run.last_entry <= last_index and not active_run.ended.is_set():
                    await active_run.entry_added.wait()

    async def close(self) -> None:
        """Stop all runs in this process; they are recorded as interrupted."""
        for active_run in self._active_runs.values():
            active_run.task.cancel()
        await self._supervisors.join()
        if self._listener is not None:
            await stop_tasks(self._listener)

    async def _supervise(self, active_run: _ActiveRun) -> None:
        """Record a run until it has ended."""
        collector = start_task(_collect_output(active_run), "collect the output of a run")
        writer = start_task(self._write_continuously(active_run), "write the output of a run")
        await asyncio.wait([active_run.task])
        active_run.runtime.close()
        await collector
        await stop_tasks(writer)
        job = active_run.job
        with contextlib.suppress(Unavailable):
            await self._write_output(active_run)
            await self._runs.end(job.owner, job.run, *active_run.read_outcome())
        del self._active_runs[job.owner, job.run]
        active_run.ended.set()
        async with active_run.entry_added:
            active_run.entry_added.notify_all()

    async def _write_continuously(self, active_run: _ActiveRun) -> None:
        """Write the output of a run and its heartbeats."""
        job, last_heartbeat = active_run.job, monotonic()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_HEARTBEAT_SECONDS):
                    await active_run.has_output.wait()
            with contextlib.suppress(Unavailable):
                await self._write_output(active_run)
                if monotonic() - last_heartbeat >= _HEARTBEAT_SECONDS:
                    await self._runs.update_heartbeat(job.owner, job.run)
                    last_heartbeat = monotonic()
            await asyncio.sleep(_WRITE_SECONDS)

    async def _write_output(self, active_run: _ActiveRun) -> None:
        active_run.has_output.clear()
        job = active_run.job
        while active_run.unwritten or active_run.pending_chunk:
            if not active_run.pending_chunk:
                active_run.pending_chunk, active_run.unwritten = b"".join(active_run.unwritten), []
            await self._runs.add_entry(job.owner, job.run, active_run.last_entry + 1, active_run.pending_chunk)
            active_run.pending_chunk = b""
            async with active_run.entry_added:
                active_run.last_entry += 1
                active_run.entry_added.notify_all()

    async def _poll_messages(self) -> None:
        """Deliver messages from other processes to the runs in this one."""
        while self._active_runs:
            await asyncio.sleep(_POLL_SECONDS)
            with contextlib.suppress(Unavailable):
                for message in await self._runs.list_messages():
                    active_run = self._active_runs.get((message.owner, message.run))
                    if active_run is None:
                        continue
                    if message.topic == _CANCEL:
                        active_run.cancel()
                    else:
                        active_run.runtime.tell(message.topic, msgspec.json.decode(message.body))
        self._listener = None


async def _collect_output(active_run: _ActiveRun) -> None:
    async for chunk in active_run.runtime.watch():
        active_run.last_output = chunk
        active_run.unwritten.append(chunk)
        active_run.has_output.set()
