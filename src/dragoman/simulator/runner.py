"""Run a simulator on loopback for the duration of a `with` block."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from socket import socket
from typing import Any

from dragoman.http.server import Server, listen, run_in_thread
from dragoman.simulator.app import Simulator
from dragoman.simulator.state import Seen, Settings

_GRACE = 0.5


class Running:
    """A simulator that is listening."""

    def __init__(self, simulator: Simulator, server: Server) -> None:
        self.simulator = simulator
        self.host, self.port = server.address
        self.base_url = server.base_url
        """The URL it listens on; an OpenAI client needs `/v1` appended."""

    @property
    def requests(self) -> Sequence[Seen]:
        """All requests received, oldest first."""
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
    """Run a simulator, on a listening socket if one is given; `options` are the fields of `Settings`."""
    if settings is not None and options:
        raise TypeError(f"Pass either settings or keyword options ({', '.join(options)}), not both.")
    simulator = Simulator(settings or Settings(**options))
    async with listen(simulator.handle, sock or (host, port), grace=_GRACE) as server:
        yield Running(simulator, server)


def in_thread(settings: Settings | None = None, **options: Any) -> AbstractContextManager[Running]:
    """Run a simulator in a thread, for programs that do not use asyncio; takes the same arguments as `running`."""
    return run_in_thread(lambda: running(settings, **options), "dragoman simulator")
