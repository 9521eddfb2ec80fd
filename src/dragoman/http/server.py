"""HTTP server: listen on an address and call a handler for each request; can run in a thread, for synchronous code."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct

from dragoman.http.admission import RequestPolicy
from dragoman.http.connection import Connection, RequestHandler
from dragoman.tasks import TaskSet

_BACKLOG = 2048
_ACCEPT_PAUSE = 0.5
"""Seconds without accepting connections after the process has run out of file descriptors."""
_LAST_SECONDS = 2.0
"""Seconds in which responses that fail at the end may send their errors."""
_MAX_PORT = 65_535
_UNSENT = (socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 16 << 10) if hasattr(socket, "TCP_NOTSENT_LOWAT") else None
"""Limits what the system buffers for a client that stalls: it would be megabytes. What is on its way is not limited."""


class Ending(Struct, frozen=True, kw_only=True):
    """How a server stops."""

    grace: float = 5.0
    """Seconds that open responses have."""
    drain: float = 0.0
    """Seconds before that in which connections are accepted although `Load.is_stopping` is set."""
    on_grace_end: Callable[[], None] | None = None
    """Lets the responses that are still open fail; they have two more seconds to send that."""


class Server:
    """A listening server.

    It accepts all waiting connections at once: uvloop would accept one per turn of the event loop, so that under load
    clients would wait in the kernel, where they cannot be rejected.
    """

    def __init__(self, listener: socket.socket, handler: RequestHandler, policy: RequestPolicy) -> None:
        listener.setblocking(False)  # noqa: FBT003
        self._listener = listener
        self._address = listener.getsockname()
        self.base_url = url_of(listener)
        """The URL of the server, without a path."""
        self.connections: set[Connection] = set()
        self._policy = policy
        self._connect = partial(Connection, handler, policy, self.connections)
        self._loop = asyncio.get_running_loop()
        self._connecting = TaskSet()
        self._retry: asyncio.TimerHandle | None = None
        self._start()

    def _start(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        """Accept the waiting connections; pause if the process has no file descriptor left."""
        for _ in range(_BACKLOG):
            try:
                sock, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._loop.remove_reader(self._listener)
                self._retry = self._loop.call_later(_ACCEPT_PAUSE, self._start)
                report = {"message": "cannot accept a connection", "exception": error}
                self._loop.call_exception_handler(report)
                return
            sock.setblocking(False)  # noqa: FBT003
            if _UNSENT is not None:
                sock.setsockopt(*_UNSENT)
            self._connecting.start(self._loop.connect_accepted_socket(self._connect, sock), "connection")

    @property
    def address(self) -> tuple[str, int]:
        """The host and port that the server listens on."""
        host, port, *_ = self._address
        return host, port

    async def close(self, ending: Ending) -> None:
        """Stop accepting connections, wait for open responses, then let those that are left fail, then abort them."""
        self._policy.load.is_stopping = True
        if ending.drain:
            await asyncio.sleep(ending.drain)
        self._loop.remove_reader(self._listener)
        if self._retry is not None:
            self._retry.cancel()
        self._listener.close()
        await self._connecting.join()
        for connection in list(self.connections):
            connection.close_when_idle()
        await self._wait_closed(ending.grace)
        if self.connections and ending.on_grace_end is not None:
            ending.on_grace_end()
            await self._wait_closed(_LAST_SECONDS)
        for connection in list(self.connections):
            connection.abort()

    async def _wait_closed(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.connections:
                    await asyncio.gather(*(connection.closed.wait() for connection in self.connections))


def url_of(sock: Any) -> str:
    """Return the URL of a listening socket, without a path."""
    host, port, *_ = sock.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@asynccontextmanager
async def listen(
    handler: RequestHandler,
    address: tuple[str, int] | socket.socket = ("127.0.0.1", 0),
    *,
    policy: RequestPolicy | None = None,
    grace: float = 5.0,
    ending: Ending | None = None,
) -> AsyncGenerator[Server]:
    """Listen while the block runs, on a host and port (0 for any free port) or on an open socket.

    `policy` decides which requests are accepted. Open responses have `grace` seconds when the block ends,
    unless `ending` determines how the server stops.
    """
    listener = address if isinstance(address, socket.socket) else await _open_listener(*address)
    server = Server(listener, handler, policy or RequestPolicy())
    try:
        yield server
    finally:
        await server.close(ending or Ending(grace=grace))


async def _open_listener(host: str, port: int) -> socket.socket:
    """Listen on a host and port."""
    if not 0 <= port <= _MAX_PORT:
        raise ValueError(f"port must be a number from 0 to {_MAX_PORT}, not {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(found[0][4])
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from None
    return listener


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
