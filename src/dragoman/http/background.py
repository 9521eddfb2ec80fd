"""Run a server in a thread of its own, beside a program that does not use asyncio."""

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def in_background(start: Callable[[], AbstractAsyncContextManager[T]], name: str) -> Generator[T]:
    """Keep what `start` opens open in a thread called `name`, as long as the block runs."""
    begun: list[T] = []
    failed: list[BaseException] = []
    ready = threading.Event()
    stop: list[Callable[[], object]] = []

    async def serve() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(ended.set))
        async with start() as opened:
            begun.append(opened)
            ready.set()
            await ended.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001  told to the thread that waits
            failed.append(error)
            ready.set()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    ready.wait()
    if not begun:
        raise failed[0]
    try:
        yield begun[0]
    finally:
        stop[0]()
        thread.join()
