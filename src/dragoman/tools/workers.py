"""Run tools isolated from each other, coroutines as tasks and plain functions in threads, and log each call."""

import asyncio
import inspect
import logging
import threading
from collections import Counter
from contextlib import suppress
from contextvars import copy_context
from time import perf_counter
from typing import Any

from dragoman.core.parts import ToolCall
from dragoman.guard import Attempt, attempt, attempt_async, start_thread
from dragoman.interpreter.schema.validation import MAX_TOOL_NAME_LENGTH
from dragoman.tasks import start_task
from dragoman.tools.handler import Handler, Invocation, enter_invocation

_GRACE = 1.0
"""Seconds that a cancelled coroutine has for its cleanup."""
LOG = logging.getLogger("dragoman.tools")
_NORMAL_OUTCOMES = frozenset({"succeeded", "failed", "unknown", "invalid", "cancelled"})
"""Outcomes that do not indicate a broken tool; they are logged at level INFO, others at WARNING."""


class CallTimeoutError(Exception):
    """The call exceeded its timeout."""


class StuckError(Exception):
    """Too many earlier calls of the tool still hang."""


class WorkerPool:
    """Runs the calls of one executor and counts those that did not end after a timeout."""

    def __init__(self, max_stuck: int) -> None:
        self._max_stuck = max_stuck
        self._stuck_counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._abandoned: set[asyncio.Task[Attempt]] = set()
        """Cancelled tasks that did not end; the event loop itself holds only weak references to tasks."""

    def count_stuck(self, name: str) -> int:
        """Return how many abandoned calls of a tool have not ended."""
        with self._lock:
            return self._stuck_counts[name]

    async def run(self, handler: Handler, arguments: Any, current: Invocation, seconds: float | None) -> Attempt:
        """Run a tool and return its value or its exception; raises `CallTimeoutError` or `StuckError`."""
        if self.count_stuck(handler.name) >= self._max_stuck:
            raise StuckError
        task = start_task(self._attempt(handler, arguments, current), f"tool {handler.name}")
        try:
            done, _ = await asyncio.wait({task}, timeout=seconds)
            if not done:
                raise CallTimeoutError
        finally:
            if not task.done():
                await self._stop(handler.name, task)
        if task.cancelled():
            return Attempt(error=asyncio.CancelledError())
        return task.result()

    async def _stop(self, name: str, task: asyncio.Task[Attempt]) -> None:
        task.cancel()
        try:
            await asyncio.wait({task}, timeout=_GRACE)
        finally:
            if not task.done():
                self._change_stuck(name, 1)
                self._abandoned.add(task)
                task.add_done_callback(lambda task: self._on_late_end(name, task))

    def _on_late_end(self, name: str, task: asyncio.Task[Attempt]) -> None:
        self._abandoned.discard(task)
        self._change_stuck(name, -1)

    def _change_stuck(self, name: str, change: int) -> None:
        with self._lock:
            self._stuck_counts[name] += change
            if not self._stuck_counts[name]:
                del self._stuck_counts[name]

    async def _attempt(self, handler: Handler, arguments: Any, current: Invocation) -> Attempt:
        enter_invocation(current)
        if handler.is_async:
            return await attempt_async(handler.run, arguments)
        ended = await self._run_in_thread(handler, arguments)
        # A plain function may return a coroutine, for example a lambda around an async function.
        return await attempt_async(lambda: ended.value) if inspect.isawaitable(ended.value) else ended

    async def _run_in_thread(self, handler: Handler, arguments: Any) -> Attempt:
        loop, ended, context = asyncio.get_running_loop(), asyncio.Event(), copy_context()
        work = start_thread(lambda: context.run(handler.run, arguments), f"tool {handler.name}")

        def wake(_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed and no task waits
                loop.call_soon_threadsafe(ended.set)

        work.add_done_callback(wake)
        try:
            await ended.wait()
        finally:
            if not work.done():
                self._change_stuck(handler.name, 1)
                work.add_done_callback(lambda _: self._change_stuck(handler.name, -1))
        error = work.exception()
        return Attempt(work.result()) if error is None else Attempt(error=error)


def _make_loggable(error: BaseException | None) -> BaseException | None:
    """Return an error that can be logged: the message of a tool's error may contain lone surrogates or raise itself."""
    written = attempt(lambda: str(error).encode())  # `__str__` is code of the tool
    if isinstance(written.error, UnicodeEncodeError):
        return RuntimeError(f"{type(error).__name__}: {str(error)!a}")
    if written.error is not None:
        return RuntimeError(type(error).__name__)
    return error


class CallRecord:
    """Measures one call and writes its log record."""

    def __init__(self, call: ToolCall, handler: Handler | None) -> None:
        self.begin()
        # The name of an unknown tool is written by the model and may contain anything.
        self._name = handler.name if handler is not None else ascii(call.name[:MAX_TOOL_NAME_LENGTH])

    def begin(self) -> None:
        """Restart the clock, so that the time a call waited for a slot does not count."""
        self._start_time = perf_counter()

    def end(self, outcome: str, size: int = 0, error: BaseException | None = None, *, repeated: bool = False) -> float:
        """Write the log record, with the traceback of an unexpected error, and return the duration in milliseconds."""
        milliseconds = round((perf_counter() - self._start_time) * 1000, 3)
        LOG.log(
            logging.INFO if outcome in _NORMAL_OUTCOMES else logging.WARNING,
            "tool %s: %s in %.1f ms, %d bytes",
            self._name,
            outcome,
            milliseconds,
            size,
            exc_info=_make_loggable(error),
            extra={
                "tool": self._name,
                "outcome": outcome,
                "milliseconds": milliseconds,
                "bytes": size,
                "repeated": repeated,
            },
        )
        return milliseconds
