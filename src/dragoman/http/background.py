"""Run a server in a thread of its own, beside a program that does not use asyncio."""

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def in_background(start: Callable[[], AbstractAsyncContextManager[T]], name: str) -> Generator[T]:
    """Keep what `start` opens open in a thread called `name`, as long as the block runs."""
    ready: Future[tuple[T, Callable[[], object]]] = Future()

    async def serve() -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        async with start() as opened:
            ready.set_result((opened, lambda: loop.call_soon_threadsafe(stopped.set)))
            await stopped.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001  raised in the thread that waits
            if not ready.done():
                ready.set_exception(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    opened, stop = ready.result()
    try:
        yield opened
    finally:
        stop()
        thread.join()
