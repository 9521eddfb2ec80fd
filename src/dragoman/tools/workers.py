"""Run tools so that none can block another, coroutines as tasks and functions in threads; and log each call."""

import asyncio
import inspect
import logging
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from time import perf_counter
from typing import Any

from msgspec import Struct

from dragoman.core.parts import ToolCall
from dragoman.tasks import start_task
from dragoman.tools.handler import Handler, Invocation, enter

_GRACE = 1.0
"""Seconds a coroutine has to clean up after it was cancelled."""


class Ended(Struct, frozen=True):
    """How the run of a tool ended: with a value, or with what it raised."""

    value: Any = None
    error: BaseException | None = None


class OverdueError(Exception):
    """The time of a call is over."""


class StuckError(Exception):
    """Too many earlier calls of the tool have not ended."""


class WorkerPool:
    """The tasks and threads of one executor."""

    def __init__(self, most_stuck: int) -> None:
        self._most_stuck = most_stuck
        self._stuck: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._left: set[asyncio.Task[Ended]] = set()
        """Tasks that did not end when they were told to: the event loop itself keeps no hold of them."""

    def stuck(self, name: str) -> int:
        """Return how many calls of a tool were left behind and have not ended."""
        with self._lock:
            return self._stuck[name]

    async def run(self, handler: Handler, arguments: Any, current: Invocation, seconds: float | None) -> Ended:
        """Run a tool; what it raises is in what is returned."""
        if self.stuck(handler.name) >= self._most_stuck:
            raise StuckError
        task = start_task(self._ended(handler, arguments, current), f"tool {handler.name}")
        try:
            done, _ = await asyncio.wait({task}, timeout=seconds)
            if not done:
                raise OverdueError
        finally:
            if not task.done():
                await self._stop(handler.name, task)
        if task.cancelled():
            return Ended(error=asyncio.CancelledError())
        return task.result()

    async def _stop(self, name: str, task: asyncio.Task[Ended]) -> None:
        task.cancel()
        try:
            await asyncio.wait({task}, timeout=_GRACE)
        finally:
            if not task.done():
                self._count(name, 1)
                self._left.add(task)
                task.add_done_callback(lambda task: self._came_back(name, task))

    def _came_back(self, name: str, task: asyncio.Task[Ended]) -> None:
        self._left.discard(task)
        self._count(name, -1)

    def _count(self, name: str, change: int) -> None:
        with self._lock:
            self._stuck[name] += change
            if not self._stuck[name]:
                del self._stuck[name]

    async def _ended(self, handler: Handler, arguments: Any, current: Invocation) -> Ended:
        enter(current)
        try:
            if handler.is_async:
                return Ended(await handler.run(arguments))
            ended = await self._in_thread(handler, arguments)
            # A plain function may return a coroutine: a lambda around an async one does.
            return Ended(await ended.value) if inspect.isawaitable(ended.value) else ended
        except (Exception, SystemExit) as error:  # noqa: BLE001  whatever a tool raises is its result
            return Ended(error=error)

    async def _in_thread(self, handler: Handler, arguments: Any) -> Ended:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Ended] = loop.create_future()
        work = _Work(copy_context().run, handler.run, arguments)

        def body() -> None:
            ended = work.done()
            with self._lock:
                work.over = True
            if work.left:
                self._count(handler.name, -1)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_deliver, future, ended)

        threading.Thread(target=body, name=f"tool {handler.name}", daemon=True).start()
        try:
            return await future
        finally:
            with self._lock:
                work.left = not work.over
            if work.left:
                self._count(handler.name, 1)


class _Work:
    """What one thread does, and whether anybody still waits for it."""

    def __init__(self, within: Callable[..., Any], run: Callable[[Any], Any], arguments: Any) -> None:
        self._within, self._run, self._arguments = within, run, arguments
        self.over = False
        self.left = False

    def done(self) -> Ended:
        try:
            return Ended(self._within(self._run, self._arguments))
        except BaseException as error:  # noqa: BLE001  a thread has nobody else to tell
            return Ended(error=error)


def _deliver(future: "asyncio.Future[Ended]", ended: Ended) -> None:
    if not future.done():
        future.set_result(ended)


LOG = logging.getLogger("dragoman.tools")
_LONGEST_NAME = 128
_QUIET = frozenset({"succeeded", "failed", "unknown", "invalid", "cancelled"})
"""Ends that say nothing about the health of a tool."""


def _loggable(error: BaseException | None) -> BaseException | None:
    """Return an error whose words every log can write: some hold halves of characters, some raise another error."""
    try:
        str(error).encode()
    except UnicodeEncodeError:
        return RuntimeError(f"{type(error).__name__}: {str(error)!a}")
    except Exception:  # noqa: BLE001  it is a tool's own code
        return RuntimeError(type(error).__name__)
    return error


class CallRecord:
    """A call from its beginning to its end."""

    def __init__(self, call: ToolCall, handler: Handler | None) -> None:
        self.begin()
        # The name of a tool that does not exist is a model's word, and may be anything.
        self._name = handler.name if handler is not None else ascii(call.name[:_LONGEST_NAME])

    def begin(self) -> None:
        """Take the time from now: what a call waited for its turn says nothing about its tool."""
        self._began = perf_counter()

    def end(self, outcome: str, size: int = 0, error: BaseException | None = None, *, repeated: bool = False) -> float:
        """Leave the record, with the traceback of what the tool raised, and return the milliseconds the call took."""
        milliseconds = round((perf_counter() - self._began) * 1000, 3)
        LOG.log(
            logging.INFO if outcome in _QUIET else logging.WARNING,
            "tool %s: %s in %.1f ms, %d bytes",
            self._name,
            outcome,
            milliseconds,
            size,
            exc_info=_loggable(error),
            extra={
                "tool": self._name,
                "outcome": outcome,
                "milliseconds": milliseconds,
                "bytes": size,
                "repeated": repeated,
            },
        )
        return milliseconds
