"""HTTP server: listen on an address and call a handler for each request; can run in a thread, for synchronous code."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from dragoman.http.connection import ClientLimits, Connection, RejectionRenderer, RequestHandler

_BACKLOG = 2048
_MAX_PORT = 65_535


class Server:
    """A listening server."""

    def __init__(self, server: asyncio.Server, connections: set[Connection]) -> None:
        self._server = server
        self._connections = connections

    @property
    def address(self) -> tuple[str, int]:
        """The host and port that the server listens on."""
        host, port, *_ = self._server.sockets[0].getsockname()
        return host, port

    @property
    def base_url(self) -> str:
        """The URL of the server, without a path."""
        return url_of(self._server.sockets[0])

    async def close(self, grace: float = 5.0) -> None:
        """Stop accepting connections, wait up to `grace` seconds for open responses, then abort them."""
        self._server.close()
        for connection in list(self._connections):
            connection.close_when_idle()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._wait_closed()
        for connection in list(self._connections):
            connection.abort()

    async def _wait_closed(self) -> None:
        while self._connections:
            await asyncio.gather(*(connection.closed.wait() for connection in self._connections))


def url_of(sock: Any) -> str:
    """Return the URL of a listening socket, without a path."""
    host, port, *_ = sock.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@asynccontextmanager
async def listen(
    handler: RequestHandler,
    address: tuple[str, int] | socket.socket = ("127.0.0.1", 0),
    limits: ClientLimits | None = None,
    *,
    rejection_renderer: RejectionRenderer | None = None,
    grace: float = 5.0,
) -> AsyncGenerator[Server]:
    """Listen while the block runs, on a host and port (0 for any free port) or on an open socket.

    `rejection_renderer` renders errors for invalid requests. Open responses have `grace` seconds when the block ends.
    """
    connections: set[Connection] = set()
    loop = asyncio.get_running_loop()

    connect = partial(Connection, handler, limits or ClientLimits(), connections, rejection_renderer)
    if isinstance(address, socket.socket):
        listener = await loop.create_server(connect, sock=address, backlog=_BACKLOG)
    else:
        host, port = address
        if not 0 <= port <= _MAX_PORT:
            # uvloop would use another port without an error.
            raise ValueError(f"port must be a number from 0 to {_MAX_PORT}, not {port}")
        family = socket.AF_UNSPEC if ":" in host else socket.AF_INET
        listener = await loop.create_server(connect, host, port, family=family, backlog=_BACKLOG)
    server = Server(listener, connections)
    try:
        yield server
    finally:
        await server.close(grace)


T = TypeVar("T")


@contextmanager
def run_in_thread(start: Callable[[], AbstractAsyncContextManager[T]], name: str) -> Generator[T]:
    """Run the context manager of `start` in an event loop in a thread called `name`, while the block runs."""
    ready: Future[tuple[T, Callable[[], object]]] = Future()
    """The value of the context manager, and a function that closes it."""

    async def serve() -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        async with start() as opened:
            ready.set_result((opened, lambda: loop.call_soon_threadsafe(stopped.set)))
            await stopped.wait()

    with ThreadPoolExecutor(1, thread_name_prefix=name) as executor:
        served = executor.submit(asyncio.run, serve())
        either: list[Future[Any]] = [ready, served]
        wait(either, return_when=FIRST_COMPLETED)
        if not ready.done():
            served.result()  # raises the error of `start`
        opened, stop = ready.result()
        try:
            yield opened
        finally:
            stop()


def choose_runner() -> Any:
    """Return `uvloop.run` if uvloop is installed, else `asyncio.run`."""
    try:
        import uvloop  # noqa: PLC0415  an optional dependency
    except ImportError:
        return asyncio.run
    return uvloop.run
