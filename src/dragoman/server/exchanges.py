"""The recent exchanges that `/v1/exchanges/ID` shows, and the set of all observers of exchanges.

Workers ask each other for exchanges: each has a Unix socket in a directory that only its owner can enter. The only
request is for an exchange by its id and owner. A worker that does not respond counts as not having it.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from dragoman.config import Config
from dragoman.core.problems import Problem
from dragoman.gateway.record import Observer, Observers, Record
from dragoman.server.auth import Quotas
from dragoman.server.metrics import Metrics, SharedCounters
from dragoman.wire import json

_PEER_TIMEOUT = 1.0
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
                async with asyncio.timeout(_PEER_TIMEOUT):
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
        async with asyncio.timeout(_PEER_TIMEOUT):
            reader, writer = await asyncio.open_unix_connection(peer)
            try:
                writer.write(json.encode([name, owner]) + b"\n")
                return await reader.read()
            finally:
                writer.close()
    return b""


def _socket_path(directory: Path, worker: int) -> Path:
    return directory / f"worker-{worker}"


FindAtPeers = Callable[[str, str], Awaitable[bytes]]
"""Requests an exchange by its id and owner from the other workers; empty if none has it."""


class ExchangeHistory:
    """The most recent exchanges of this process."""

    def __init__(self, records: Iterable[Record], find_at_peers: FindAtPeers | None = None) -> None:
        self._records = records
        self._find_at_peers = find_at_peers

    def find(self, name: str, owner: str) -> bytes:
        """Return an exchange of this owner as JSON; empty if this process does not have it."""
        record = next((record for record in self._records if record.id == name and record.owner == owner), None)
        return b"" if record is None else _render_record(record)

    async def find_anywhere(self, name: str, owner: str) -> bytes:
        """Return an exchange of this owner as JSON, from this or another worker; raises a `Problem` if none has it."""
        found = self.find(name, owner)
        if not found and self._find_at_peers is not None:
            found = await self._find_at_peers(name, owner)
        if not found:
            raise Problem("not_found", f"exchange {name!r} not found", code="not_found")
        return found


def _render_record(record: Record) -> bytes:
    problem = record.problem
    shown: dict[str, Any] = {
        "id": record.id,
        "dialect": record.dialect,
        "model": record.model,
        "stream": record.stream,
        "upstream": record.upstream,
        "upstream_model": record.upstream_model,
        "tries": record.tries,
        "attempts": [
            {
                "upstream": attempt.upstream,
                "model": attempt.model,
                "seconds": attempt.seconds,
                "outcome": attempt.outcome,
                "cause": attempt.cause,
            }
            for attempt in record.attempts
        ],
        "status": record.status,
        "outcome": record.outcome,
        "began": record.began,
        "first_token_seconds": record.first_token_seconds,
        "seconds": record.seconds,
        "finish": record.finish,
        "usage": record.usage,
        "losses": record.all_losses,
        "problem": None if problem is None else {"kind": problem.kind, "message": problem.message},
    }
    return json.encode(shown)


class Observability:
    """Metrics, quotas, recent exchanges and all other observers of one worker."""

    def __init__(
        self, config: Config, observers: Iterable[Observer] = (), worker_context: WorkerContext | None = None
    ) -> None:
        counters, worker = (
            (SharedCounters(1, len(config.keys)), 0)
            if worker_context is None
            else (worker_context.counters, worker_context.worker)
        )
        self.metrics = Metrics(counters, worker, _find_model_names(config))
        self.quotas = Quotas(config, counters, worker)
        self.observers = Observers(on_begin=[self.metrics.on_begin], on_end=[self.metrics.on_end, *observers])
        self.exchanges = ExchangeHistory(
            self.observers.recent, None if worker_context is None else worker_context.peers.find_exchange
        )


def _find_model_names(config: Config) -> set[str]:
    """Return all configured model names without wildcards: aliases and their upstream models."""
    targets = {target.partition("/")[2] for targets in config.models.values() for target in targets}
    return {name for name in {*config.models, *targets} if "*" not in name}
