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
_BETWEEN_SIGNS = 5.0
_BETWEEN_WRITES = 0.1
_BETWEEN_LOOKS = 0.25
"""Seconds after which it is looked again for what another process has to say."""
_PATIENCE = 5.0
"""Seconds in which a run that is cancelled elsewhere should be over."""
_STATUSES: dict[str, Status] = {
    RUNNING: "running",
    INTERRUPTED: "interrupted",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


class _Carried:
    """A run that is carried here."""

    def __init__(self, order: Order, runtime: WatchedRuntime, work: Work) -> None:
        self.order = order
        self.runtime = runtime
        self.work = start_task(self._run(work), f"run {order.run}")
        self.is_cancelled = False
        self.told = order.first_output
        self.unwritten: list[bytes] = []
        self.piece = b""
        """What is being written: the same again, if nobody can tell whether it was."""
        self.emitted = asyncio.Event()
        self.place = 0
        self.written = asyncio.Condition()
        """Is told when there is something more in the store."""
        self.over = asyncio.Event()

    async def _run(self, work: Work) -> bytes:
        return await work(self.order, self.runtime)

    def cancel(self) -> None:
        """Stop, because somebody wants that."""
        self.is_cancelled = True
        self.work.cancel()

    def end(self) -> tuple[str, bytes]:
        """Return how the work ended, and what came of it."""
        if self.work.cancelled():
            return "cancelled" if self.is_cancelled else INTERRUPTED, b""
        error = self.work.exception()
        if error is None:
            return "completed", self.work.result()
        _LOG.error("the run %s failed", self.order.run, exc_info=error)
        return "failed", b""


class Carrying:
    """A `Carrier`. `runtime` makes what a run stands on, of its name."""

    def __init__(self, runs: Runs, runtime: Callable[[str], WatchedRuntime] = InProcess) -> None:
        self._runs = runs
        self._made = runtime
        self._works: dict[str, Work] = {}
        self._carried: dict[tuple[str, str], _Carried] = {}
        self._attending = TaskSet()
        self._listening: asyncio.Task[None] | None = None

    def runtime(self, run: str) -> WatchedRuntime:
        """Return what a run stands on that ends with whoever watches it."""
        return self._made(run)

    def serve(self, kind: str, work: Work) -> None:
        """Say who does the work of a kind."""
        self._works[kind] = work

    async def start(self, order: Order) -> None:
        """Start a run."""
        await self._runs.begin(order.owner, order.run, "", order.first_output, anew=True)
        carried = _Carried(order, self._made(order.run), self._works[order.kind])
        self._carried[order.owner, order.run] = carried
        self._attending.start(self._attend(carried), f"attend to the run {order.run}")
        if self._listening is None:
            self._listening = start_task(self._listen(), "listen to other processes")
        # Work that has not begun could be stopped without a chance to end what it stands for.
        await asyncio.sleep(0)

    async def tell(self, owner: str, run: str, topic: str, value: Any) -> None:
        """Answer what a run waits for."""
        carried = self._carried.get((owner, run))
        if carried is not None:
            carried.runtime.tell(topic, value)
        else:
            await self._runs.say(RunMessage(owner, run, topic, msgspec.json.encode(value)))

    async def cancel(self, owner: str, run: str) -> None:
        """Stop a run."""
        carried = self._carried.get((owner, run))
        if carried is not None:
            carried.cancel()
            await carried.over.wait()
            return
        seen = await self._runs.see(owner, run)
        if seen is None or seen.status != RUNNING:
            return
        await self._runs.say(RunMessage(owner, run, _CANCEL, b"null"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                while seen is not None and seen.status == RUNNING:
                    await asyncio.sleep(_BETWEEN_LOOKS)
                    seen = await self._runs.see(owner, run)

    async def state(self, owner: str, run: str) -> RunState | None:
        """Tell how far a run is."""
        seen = await self._runs.see(owner, run)
        if seen is None:
            return None
        carried = self._carried.get((owner, run))
        # A process that could not write for a while knows better than the store that its run goes on.
        status = RUNNING if carried is not None and seen.status == INTERRUPTED else seen.status
        told = seen.last if carried is None else carried.told
        return RunState(status=_STATUSES[status], last_output=told, outcome=seen.summary, created=seen.created)

    async def watch(self, owner: str, run: str) -> AsyncGenerator[bytes]:
        """Iterate what a run emitted and will emit."""
        place = 0
        while True:
            seen = await self._runs.see(owner, run)
            for at, body in await self._runs.entries(owner, run, place):
                yield body
                place = at
            if seen is None or seen.status != RUNNING:
                return
            carried = self._carried.get((owner, run))
            if carried is None:
                await asyncio.sleep(_BETWEEN_LOOKS)
                continue
            async with carried.written:
                if carried.place <= place and not carried.over.is_set():
                    await carried.written.wait()

    async def close(self) -> None:
        """Stop what is carried here; it was interrupted."""
        for carried in self._carried.values():
            carried.work.cancel()
        await self._attending.join()
        if self._listening is not None:
            await stop_tasks(self._listening)

    async def _attend(self, carried: _Carried) -> None:
        """Look after a run until it is over."""
        hearing = start_task(_hear(carried), "collect what a run emits")
        writing = start_task(self._write_on(carried), "write what a run emits")
        await asyncio.wait([carried.work])
        carried.runtime.close()
        await hearing
        await stop_tasks(writing)
        order = carried.order
        with contextlib.suppress(Unavailable):
            await self._write(carried)
            await self._runs.end(order.owner, order.run, *carried.end())
        del self._carried[order.owner, order.run]
        carried.over.set()
        async with carried.written:
            carried.written.notify_all()

    async def _write_on(self, carried: _Carried) -> None:
        """Write what a run emits, and that it is alive."""
        order, heard = carried.order, monotonic()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_BETWEEN_SIGNS):
                    await carried.emitted.wait()
            with contextlib.suppress(Unavailable):
                await self._write(carried)
                if monotonic() - heard >= _BETWEEN_SIGNS:
                    await self._runs.live(order.owner, order.run)
                    heard = monotonic()
            await asyncio.sleep(_BETWEEN_WRITES)

    async def _write(self, carried: _Carried) -> None:
        carried.emitted.clear()
        order = carried.order
        while carried.unwritten or carried.piece:
            if not carried.piece:
                carried.piece, carried.unwritten = b"".join(carried.unwritten), []
            await self._runs.add(order.owner, order.run, carried.place + 1, carried.piece)
            carried.piece = b""
            async with carried.written:
                carried.place += 1
                carried.written.notify_all()

    async def _listen(self) -> None:
        """Pass on what other processes say to runs that are carried here."""
        while self._carried:
            await asyncio.sleep(_BETWEEN_LOOKS)
            with contextlib.suppress(Unavailable):
                for said in await self._runs.heard():
                    carried = self._carried.get((said.owner, said.run))
                    if carried is None:
                        continue
                    if said.topic == _CANCEL:
                        carried.cancel()
                    else:
                        carried.runtime.tell(said.topic, msgspec.json.decode(said.body))
        self._listening = None


async def _hear(carried: _Carried) -> None:
    async for piece in carried.runtime.watch():
        carried.told = piece
        carried.unwritten.append(piece)
        carried.emitted.set()
