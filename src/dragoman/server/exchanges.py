"""The recent exchanges that `/v1/exchanges/ID` shows, and the set of all observers of exchanges."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from dragoman.config import Config
from dragoman.core.problems import Problem
from dragoman.gateway.record import Observer, Observers, Record
from dragoman.server.auth import Quotas
from dragoman.server.metrics import Metrics, SharedCounters
from dragoman.server.peers import WorkerContext
from dragoman.wire import json

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
