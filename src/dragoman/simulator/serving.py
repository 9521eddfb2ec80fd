"""Run a simulator on loopback, for as long as a block of code runs."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from socket import socket
from typing import Any

from dragoman.http.server import Server, listen, run_in_thread
from dragoman.simulator.app import Simulator
from dragoman.simulator.state import Seen, Settings

_GRACE = 0.5


class Running:
    """A simulator that listens."""

    def __init__(self, simulator: Simulator, server: Server) -> None:
        self.simulator = simulator
        self.host, self.port = server.address
        self.base_url = server.base_url
        """Where it listens; an OpenAI client wants `/v1` behind it."""

    @property
    def requests(self) -> Sequence[Seen]:
        """Everything that has come in, oldest first."""
        return self.simulator.requests


@asynccontextmanager
async def running(
    settings: Settings | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    sock: socket | None = None,
    **options: Any,
) -> AsyncGenerator[Running]:
    """Run a simulator, on a socket that listens already if one is given; `options` are the members of `Settings`."""
    if settings is not None and options:
        raise TypeError(f"Pass either settings or keyword options ({', '.join(options)}), not both.")
    simulator = Simulator(settings or Settings(**options))
    async with listen(simulator.handle, sock or (host, port), grace=_GRACE) as server:
        yield Running(simulator, server)


def in_thread(settings: Settings | None = None, **options: Any) -> AbstractContextManager[Running]:
    """Run a simulator beside a program that does not use asyncio; it takes what `running` takes."""
    return run_in_thread(lambda: running(settings, **options), "dragoman simulator")
