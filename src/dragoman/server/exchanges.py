"""Show clients what happened to their last requests; all observers of exchanges together."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from dragoman.config import Config
from dragoman.core.problems import Problem
from dragoman.gateway.record import Observer, Observers, Record
from dragoman.server.auth import Quotas
from dragoman.server.metrics import Board, Metrics
from dragoman.server.process.peers import Seat
from dragoman.wire import json

Elsewhere = Callable[[str, str], Awaitable[bytes]]
"""Asks the other workers for an exchange by its id and owner; nothing if none has it."""


class Exchanges:
    """The last exchanges of this process."""

    def __init__(self, records: Iterable[Record], elsewhere: Elsewhere | None = None) -> None:
        self._records = records
        self._elsewhere = elsewhere

    def find(self, name: str, owner: str) -> bytes:
        """Return what happened to an exchange of this owner; nothing if it is not here."""
        record = next((record for record in self._records if record.id == name and record.owner == owner), None)
        return b"" if record is None else _shown(record)

    async def show(self, name: str, owner: str) -> bytes:
        """Return what happened to an exchange of this owner, here or at another worker."""
        found = self.find(name, owner)
        if not found and self._elsewhere is not None:
            found = await self._elsewhere(name, owner)
        if not found:
            raise Problem("not_found", f"there is no exchange {name!r}", code="not_found")
        return found


def _shown(record: Record) -> bytes:
    problem = record.problem
    shown: dict[str, Any] = {
        "id": record.id,
        "dialect": record.dialect,
        "model": record.model,
        "stream": record.stream,
        "upstream": record.upstream,
        "upstream_model": record.upstream_model,
        "tries": record.tries,
        "status": record.status,
        "outcome": record.outcome,
        "began": record.began,
        "first_token_seconds": record.first,
        "seconds": record.seconds,
        "finish": record.finish,
        "usage": record.usage,
        "losses": record.all_losses,
        "problem": None if problem is None else {"kind": problem.kind, "message": problem.message},
    }
    return json.encode(shown)


class Watch:
    """The metrics, the open requests of each key, the last exchanges, and all other observers."""

    def __init__(self, config: Config, observers: Iterable[Observer] = (), seat: Seat | None = None) -> None:
        board, worker = (Board(1, len(config.keys)), 0) if seat is None else (seat.board, seat.worker)
        self.metrics = Metrics(board, worker, _names(config))
        self.quotas = Quotas(config, board, worker)
        self.observers = Observers(begun=[self.metrics.begun], ended=[self.metrics.ended, *observers])
        self.exchanges = Exchanges(self.observers.recent, None if seat is None else seat.siblings.ask)


def _names(config: Config) -> set[str]:
    """Return the names of models that the configuration says in full, ours and those of upstreams."""
    targets = {target.partition("/")[2] for targets in config.models.values() for target in targets}
    return {name for name in {*config.models, *targets} if "*" not in name}
