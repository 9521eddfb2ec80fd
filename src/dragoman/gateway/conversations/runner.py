"""Carries runs in this process, and writes them down where other processes see them and can speak to them.

Rules: a run is in the store before anybody hears of it, and says every few seconds that it is alive. What it emits is
written in pieces, a few a second at most. What others say to it is looked for only while something is carried here. A
store that cannot be asked for a while ends nothing: what is to be written waits.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from time import monotonic
from typing import Any

import msgspec

from dragoman.agent import InProcess, Order, RunState, Status, WatchedRuntime, Work
from dragoman.sessions.runs import INTERRUPTED, RUNNING, RunMessage, Runs
from dragoman.sessions.values import Unavailable
from dragoman.tasks import TaskSet, start_task, stop_tasks

_LOG = logging.getLogger("dragoman.runs")
_CANCEL = "cancel"
"""What is said to a run that is to stop; nobody waits for that topic."""
_HEARTBEAT_SECONDS = 5.0
_WRITE_SECONDS = 0.1
_POLL_SECONDS = 0.25
"""Seconds after which it is looked again for what another process has to say."""
_CANCEL_SECONDS = 5.0
"""Seconds in which a run that is cancelled elsewhere should be over."""
_STATUSES: dict[str, Status] = {
    RUNNING: "running",
    INTERRUPTED: "interrupted",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


class _ActiveRun:
    """A run that is carried here."""

    def __init__(self, order: Order, runtime: WatchedRuntime, work: Work) -> None:
        self.order = order
        self.runtime = runtime
        self.task = start_task(self._run(work), f"run {order.run}")
        self.is_cancelled = False
        self.last_output = order.first_output
        self.unwritten: list[bytes] = []
        self.pending_chunk = b""
        """What is being written: the same again, if nobody can tell whether it was."""
        self.has_output = asyncio.Event()
        self.last_entry = 0
        self.entry_added = asyncio.Condition()
        """Is told when there is something more in the store."""
        self.ended = asyncio.Event()

    async def _run(self, work: Work) -> bytes:
        return await work(self.order, self.runtime)

    def cancel(self) -> None:
        """Stop, because somebody wants that."""
        self.is_cancelled = True
        self.task.cancel()

    def read_outcome(self) -> tuple[str, bytes]:
        """Return how the work ended, and what came of it."""
        if self.task.cancelled():
            return "cancelled" if self.is_cancelled else INTERRUPTED, b""
        error = self.task.exception()
        if error is None:
            return "completed", self.task.result()
        _LOG.error("the run %s failed", self.order.run, exc_info=error)
        return "failed", b""


class Carrying:
    """A `Carrier`. `runtime` makes what a run stands on, of its name."""

    def __init__(self, runs: Runs, runtime: Callable[[str], WatchedRuntime] = InProcess) -> None:
        self._runs = runs
        self._runtime_factory = runtime
        self._works_by_kind: dict[str, Work] = {}
        self._active_runs: dict[tuple[str, str], _ActiveRun] = {}
        self._supervisors = TaskSet()
        self._listener: asyncio.Task[None] | None = None

    def runtime(self, run: str) -> WatchedRuntime:
        """Return what a run stands on that ends with whoever watches it."""
        return self._runtime_factory(run)

    def serve(self, kind: str, work: Work) -> None:
        """Say who does the work of a kind."""
        self._works_by_kind[kind] = work

    async def start(self, order: Order) -> None:
        """Start a run."""
        await self._runs.begin(order.owner, order.run, "", order.first_output, replaces_ended=True)
        carried = _ActiveRun(order, self._runtime_factory(order.run), self._works_by_kind[order.kind])
        self._active_runs[order.owner, order.run] = carried
        self._supervisors.start(self._supervise(carried), f"attend to the run {order.run}")
        if self._listener is None:
            self._listener = start_task(self._poll_messages(), "listen to other processes")
        # Work that has not begun could be stopped without a chance to end what it stands for.
        await asyncio.sleep(0)

    async def tell(self, owner: str, run: str, topic: str, value: Any) -> None:
        """Answer what a run waits for."""
        carried = self._active_runs.get((owner, run))
        if carried is not None:
            carried.runtime.tell(topic, value)
        else:
            await self._runs.send_message(RunMessage(owner, run, topic, msgspec.json.encode(value)))

    async def cancel(self, owner: str, run: str) -> None:
        """Stop a run."""
        carried = self._active_runs.get((owner, run))
        if carried is not None:
            carried.cancel()
            await carried.ended.wait()
            return
        seen = await self._runs.find_status(owner, run)
        if seen is None or seen.status != RUNNING:
            return
        await self._runs.send_message(RunMessage(owner, run, _CANCEL, b"null"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CANCEL_SECONDS):
                while seen is not None and seen.status == RUNNING:
                    await asyncio.sleep(_POLL_SECONDS)
                    seen = await self._runs.find_status(owner, run)

    async def state(self, owner: str, run: str) -> RunState | None:
        """Tell how far a run is."""
        seen = await self._runs.find_status(owner, run)
        if seen is None:
            return None
        carried = self._active_runs.get((owner, run))
        # A process that could not write for a while knows better than the store that its run goes on.
        status = RUNNING if carried is not None and seen.status == INTERRUPTED else seen.status
        told = seen.last if carried is None else carried.last_output
        return RunState(status=_STATUSES[status], last_output=told, outcome=seen.summary, created=seen.created)

    async def watch(self, owner: str, run: str) -> AsyncGenerator[bytes]:
        """Iterate what a run emitted and will emit."""
        place = 0
        while True:
            seen = await self._runs.find_status(owner, run)
            for at, body in await self._runs.list_entries(owner, run, place):
                yield body
                place = at
            if seen is None or seen.status != RUNNING:
                return
            carried = self._active_runs.get((owner, run))
            if carried is None:
                await asyncio.sleep(_POLL_SECONDS)
                continue
            async with carried.entry_added:
                if carried.last_entry <= place and not carried.ended.is_set():
                    await carried.entry_added.wait()

    async def close(self) -> None:
        """Stop what is carried here; it was interrupted."""
        for carried in self._active_runs.values():
            carried.task.cancel()
        await self._supervisors.join()
        if self._listener is not None:
            await stop_tasks(self._listener)

    async def _supervise(self, active_run: _ActiveRun) -> None:
        """Look after a run until it is over."""
        hearing = start_task(_collect_output(active_run), "collect what a run emits")
        writing = start_task(self._write_continuously(active_run), "write what a run emits")
        await asyncio.wait([active_run.task])
        active_run.runtime.close()
        await hearing
        await stop_tasks(writing)
        order = active_run.order
        with contextlib.suppress(Unavailable):
            await self._write_output(active_run)
            await self._runs.end(order.owner, order.run, *active_run.read_outcome())
        del self._active_runs[order.owner, order.run]
        active_run.ended.set()
        async with active_run.entry_added:
            active_run.entry_added.notify_all()

    async def _write_continuously(self, active_run: _ActiveRun) -> None:
        """Write what a run emits, and that it is alive."""
        order, heard = active_run.order, monotonic()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_HEARTBEAT_SECONDS):
                    await active_run.has_output.wait()
            with contextlib.suppress(Unavailable):
                await self._write_output(active_run)
                if monotonic() - heard >= _HEARTBEAT_SECONDS:
                    await self._runs.update_heartbeat(order.owner, order.run)
                    heard = monotonic()
            await asyncio.sleep(_WRITE_SECONDS)

    async def _write_output(self, active_run: _ActiveRun) -> None:
        active_run.has_output.clear()
        order = active_run.order
        while active_run.unwritten or active_run.pending_chunk:
            if not active_run.pending_chunk:
                active_run.pending_chunk, active_run.unwritten = b"".join(active_run.unwritten), []
            await self._runs.add_entry(order.owner, order.run, active_run.last_entry + 1, active_run.pending_chunk)
            active_run.pending_chunk = b""
            async with active_run.entry_added:
                active_run.last_entry += 1
                active_run.entry_added.notify_all()

    async def _poll_messages(self) -> None:
        """Pass on what other processes say to runs that are carried here."""
        while self._active_runs:
            await asyncio.sleep(_POLL_SECONDS)
            with contextlib.suppress(Unavailable):
                for said in await self._runs.list_messages():
                    carried = self._active_runs.get((said.owner, said.run))
                    if carried is None:
                        continue
                    if said.topic == _CANCEL:
                        carried.cancel()
                    else:
                        carried.runtime.tell(said.topic, msgspec.json.decode(said.body))
        self._listener = None


async def _collect_output(active_run: _ActiveRun) -> None:
    async for piece in active_run.runtime.watch():
        active_run.last_output = piece
        active_run.unwritten.append(piece)
        active_run.has_output.set()
