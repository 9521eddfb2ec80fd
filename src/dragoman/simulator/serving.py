"""Run a simulator on loopback, for as long as a block of code runs."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from dragoman.http.server import listening
from dragoman.simulator.app import Seen, Simulator
from dragoman.simulator.settings import Settings

_GRACE = 0.5


class Running:
    """A simulator that listens."""

    def __init__(self, simulator: Simulator, host: str, port: int) -> None:
        self.simulator = simulator
        self.host = host
        self.port = port

    @property
    def base_url(self) -> str:
        """Where it listens; an OpenAI client wants `/v1` behind it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def requests(self) -> Sequence[Seen]:
        """Everything that has come in, oldest first."""
        return self.simulator.requests


@asynccontextmanager
async def running(
    settings: Settings | None = None, *, host: str = "127.0.0.1", port: int = 0, **options: Any
) -> AsyncGenerator[Running]:
    """Run a simulator; `options` are the members of `Settings`."""
    if settings is not None and options:
        raise TypeError(f"told twice how to behave: by settings, and by {', '.join(options)}")
    simulator = Simulator(settings or Settings(**options))
    async with listening(simulator.handle, host, port, grace=_GRACE) as server:
        yield Running(simulator, *server.address)


@contextmanager
def in_thread(settings: Settings | None = None, **options: Any) -> Generator[Running]:
    """Run a simulator beside a program that does not use asyncio; it takes what `running` takes."""
    begun: list[Running | BaseException] = []
    ready = threading.Event()
    stop: list[Callable[[], object]] = []

    async def serve() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(ended.set))
        async with running(settings, **options) as simulator:
            begun.append(simulator)
            ready.set()
            await ended.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001  told to the thread that waits
            begun.append(error)
            ready.set()

    thread = threading.Thread(target=run, name="dragoman simulator", daemon=True)
    thread.start()
    ready.wait()
    first = begun[0]
    if isinstance(first, BaseException):
        raise first
    try:
        yield first
    finally:
        stop[0]()
        thread.join()
