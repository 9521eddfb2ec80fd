"""Serve until told to stop, on a port or, for MCP, on standard input and output."""

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress

from dragoman.config import Config
from dragoman.server import log
from dragoman.server.agent_services import open_bench
from dragoman.server.endpoints.mcp import Door
from dragoman.server.exchanges import Watch
from dragoman.server.process.peers import Seat
from dragoman.server.serving import Running, running
from dragoman.tasks import start_task

_STOPS = (signal.SIGINT, signal.SIGTERM)
_SELDOM = (10_000, 20, 20)
"""After how many new objects the collector looks: what a request leaves behind is hardly ever in cycles."""


async def serve(
    config: Config,
    *,
    begun: Callable[[Running], None] | None = None,
    seat: Seat | None = None,
    parent: int | None = None,
) -> None:
    """Serve until a signal comes, or the parent that holds the other end of a pipe is gone."""
    with log.opened(config, None if seat is None else seat.worker) as lines:
        asyncio.get_running_loop().set_exception_handler(lines.loop_failed)
        async with running(config, observers=[lines.ended], seat=seat) as gateway:
            stopped = told_to_stop(parent)
            if begun is not None:
                begun(gateway)
            _settle()
            await stopped.wait()


def told_to_stop(parent: int | None = None, signals: Iterable[signal.Signals] = _STOPS) -> asyncio.Event:
    """Return what is set at a signal, or at the parent's end."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    with suppress(NotImplementedError):  # where a loop knows no signals, an interrupt is an exception
        for each in signals:
            loop.add_signal_handler(each, stopped.set)
    if parent is not None:

        def orphaned() -> None:
            loop.remove_reader(parent)
            stopped.set()

        loop.add_reader(parent, orphaned)
    return stopped


def _settle() -> None:
    """Let the collector pass by all that there is now: it stays as long as the server does."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_SELDOM)


async def serve_mcp(config: Config) -> None:
    """Serve until the input ends and all is answered, or a signal comes."""
    with log.opened(config, None) as lines:
        asyncio.get_running_loop().set_exception_handler(lines.loop_failed)
        async with open_bench(config, Watch(config, [lines.ended]).observers) as bench:
            door = Door(bench)
            serving = start_task((await door.opened()).pipe(), "mcp on standard input")
            stopped = start_task(told_to_stop().wait(), "wait for a signal")
            try:
                await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
            finally:
                await door.close()
        if not serving.done():
            # A thread of the SDK waits for a line that may never come, and nothing can wake it.
            os._exit(0)
        stopped.cancel()
        await serving
