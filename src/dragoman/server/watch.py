"""Everything that looks on while requests are answered, put together."""

from collections.abc import Iterable

from dragoman.config import Config
from dragoman.gateway.observe import Observer, Observers
from dragoman.server.kept import Kept
from dragoman.server.metrics import Metrics
from dragoman.server.seat import Seat


class Watch:
    """The last exchanges, the metrics, and whoever else is told of exchanges."""

    def __init__(self, config: Config, observers: Iterable[Observer] = (), seat: Seat | None = None) -> None:
        alone = seat is None
        self.kept = Kept(None if alone else seat.siblings.ask)
        self.metrics = Metrics(None if alone else seat.board, 0 if alone else seat.worker, _names(config))
        self.observers = Observers(begun=[self.metrics.begun], ended=[self.kept.add, self.metrics.ended, *observers])


def _names(config: Config) -> set[str]:
    """Return the names of models that the configuration says in full, ours and those of upstreams."""
    targets = {target.partition("/")[2] for targets in config.models.values() for target in targets}
    return {name for name in {*config.models, *targets} if "*" not in name}
