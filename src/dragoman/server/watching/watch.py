"""Everything that looks on while requests are answered, put together."""

from collections.abc import Iterable

from dragoman.config import Config
from dragoman.gateway.observe import Observer, Observers
from dragoman.server.process.board import Board
from dragoman.server.process.seat import Seat
from dragoman.server.watching.exchanges import Exchanges
from dragoman.server.watching.metrics import Metrics
from dragoman.server.watching.quotas import Quotas


class Watch:
    """The last exchanges, the metrics, whose turn it is, and whoever else is told of exchanges."""

    def __init__(self, config: Config, observers: Iterable[Observer] = (), seat: Seat | None = None) -> None:
        board, worker = (Board(1, len(config.keys)), 0) if seat is None else (seat.board, seat.worker)
        self.exchanges = Exchanges(None if seat is None else seat.siblings.ask)
        self.metrics = Metrics(board, worker, _names(config))
        self.quotas = Quotas(config, board, worker)
        self.observers = Observers(
            begun=[self.metrics.begun], ended=[self.exchanges.add, self.metrics.ended, *observers]
        )


def _names(config: Config) -> set[str]:
    """Return the names of models that the configuration says in full, ours and those of upstreams."""
    targets = {target.partition("/")[2] for targets in config.models.values() for target in targets}
    return {name for name in {*config.models, *targets} if "*" not in name}
