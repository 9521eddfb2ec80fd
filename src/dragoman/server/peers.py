"""Communication between workers: one Unix socket each, in a directory that only its owner can enter.

The only request is for an exchange by its id and owner. A worker that does not respond counts as not having it.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec import Struct

from dragoman.server.metrics import SharedCounters
from dragoman.wire import json

_TIMEOUT = 1.0


FindExchange = Callable[[str, str], bytes]


class Peers:
    """The socket of this worker, and the sockets of the other workers."""

    def __init__(self, directory: Path, worker: int, workers: int) -> None:
        self._own = _socket_path(directory, worker)
        self._others = [_socket_path(directory, other) for other in range(workers) if other != worker]

    @asynccontextmanager
    async def serve(self, find: FindExchange) -> AsyncGenerator[None]:
        """Answer requests of other workers while the block runs; `find` looks up an exchange."""

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, TimeoutError, ValueError):
                async with asyncio.timeout(_TIMEOUT):
                    name, owner = json.decode(await reader.readline())
                    writer.write(find(name, owner))
                    await writer.drain()
            writer.close()

        self._own.unlink(missing_ok=True)  # a crashed predecessor may have left it
        server = await asyncio.start_unix_server(answer, self._own)
        try:
            yield
        finally:
            server.close()

    async def find_exchange(self, name: str, owner: str) -> bytes:
        """Return an exchange from any other worker; empty if none has it."""
        answers = await asyncio.gather(*(_ask_peer(other, name, owner) for other in self._others))
        return next((answer for answer in answers if answer), b"")


class WorkerContext(Struct, frozen=True, kw_only=True):
    """What the parent process gives to a worker."""

    worker: int
    counters: SharedCounters
    socket: socket.socket
    """A socket that is already listening."""
    peers: Peers


async def _ask_peer(peer: Path, name: str, owner: str) -> bytes:
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_TIMEOUT):
            reader, writer = await asyncio.open_unix_connection(peer)
            try:
                writer.write(json.encode([name, owner]) + b"\n")
                return await reader.read()
            finally:
                writer.close()
    return b""


def _socket_path(directory: Path, worker: int) -> Path:
    return directory / f"worker-{worker}"
