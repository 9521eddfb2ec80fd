"""The event loop in a thread of its own: the terminal has the main thread, where lines are edited and signals come.

Rules: what is opened lives in one task from beginning to end, because not everything may be closed by another one.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from threading import Thread
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Stage(Generic[T]):
    """Keeps something open, and does what is asked of it."""

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._opening = opening
        self._opened: Future[T] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._task: asyncio.Task[Any] | None = None
        self._last: Future[Any] | None = None
        # A tool that hangs in a thread must not keep the program.
        self._thread = Thread(target=lambda: asyncio.run(self._live()), name="chat", daemon=True)

    def open(self) -> T:
        """Open it, and return it when it is there."""
        self._thread.start()
        return self._opened.result()

    async def _live(self) -> None:
        self._loop, self._over, self._task = asyncio.get_running_loop(), asyncio.Event(), asyncio.current_task()
        try:
            async with self._opening() as opened:
                self._opened.set_result(opened)
                await self._over.wait()
        except BaseException as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)

    def start(self, work: Coroutine[Any, Any, R]) -> "Future[R]":
        """Begin something there."""
        if self._loop is None:
            raise RuntimeError("nothing is open")
        self._last = future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future

    def soon(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Do something there that takes no time."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work, *arguments)

    def close(self, patience: float) -> bool:
        """Close it; tell whether that was done in time."""
        if self._last is not None:
            self._last.cancel()
        if self._over is not None and self._task is not None:
            self.soon(self._over.set if self._opened.done() else self._task.cancel)
            self._thread.join(patience)
        return not self._thread.is_alive()
