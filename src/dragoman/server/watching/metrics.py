"""What is counted of every exchange, and the text in which Prometheus reads it.

Counting is a few additions in memory; the library that writes the text is loaded when somebody asks for it. A label is
never what a client chose alone: a model is told by its configured name, or by the upstream's once that has answered for
it, and by no more than a fixed number of such names.
"""

from bisect import bisect_left
from collections.abc import Collection

from dragoman.core.response import Usage
from dragoman.gateway.record import Record
from dragoman.server.process.board import BOUNDS, CLASSES, FIRST_AT, LOSSES, LOSSES_AT, RETRIES_AT, TOKENS_AT, Board

QUIET = frozenset({"health", "metrics"})
"""Operations by which others look after us: they are no work."""
UNKNOWN = "unknown"
_MOST_LEARNED = 100


class Metrics:
    """Counts the exchanges of one worker."""

    def __init__(self, board: Board | None = None, worker: int = 0, models: Collection[str] = ()) -> None:
        self._board = board or Board()
        self._share = self._board.share(worker)
        self._named = frozenset(models)
        self._learned: set[str] = set()
        self._requests: dict[tuple[str, str, str, str, int, str], int] = {}
        self._models: dict[tuple[str, str], int] = {}

    def begun(self, record: Record) -> None:
        """Note a request that is open."""
        if record.operation not in QUIET:
            self._share.open[0] += 1

    def ended(self, record: Record) -> None:
        """Count an exchange that is over."""
        model, upstream = self._name(record), record.upstream
        key = (record.operation, record.dialect, model, upstream, record.status, record.outcome)
        row = self._requests.get(key)
        if row is None:
            words = (record.operation or UNKNOWN, record.dialect, model, upstream, str(record.status), record.outcome)
            row = self._requests[key] = self._share.requests.row(words)
        self._share.requests.numbers[row] += 1
        if record.operation not in QUIET:
            self._share.open[0] -= 1
        if upstream:
            self._count(record, model, upstream)

    def _count(self, record: Record, model: str, upstream: str) -> None:
        row = self._models.get((model, upstream))
        if row is None:
            row = self._models[model, upstream] = self._share.models.row((model, upstream))
        numbers = self._share.models.numbers
        seconds = record.seconds or 0.0
        numbers[row + bisect_left(BOUNDS, seconds)] += 1
        numbers[row + CLASSES] += seconds
        if record.stream and record.first is not None:
            numbers[row + FIRST_AT + bisect_left(BOUNDS, record.first)] += 1
            numbers[row + FIRST_AT + CLASSES] += record.first
        usage = record.usage
        if usage is not None:
            numbers[row + TOKENS_AT] += usage.input or 0
            numbers[row + TOKENS_AT + 1] += usage.output or 0
            if usage.cached or usage.cache_written or usage.reasoning:
                for at, tokens in enumerate(_finer(usage), row + TOKENS_AT + 2):
                    numbers[at] += tokens or 0
        if record.losses or record.reply_losses:
            kinds = [loss.kind for loss in record.all_losses]
            for at, kind in enumerate(LOSSES, row + LOSSES_AT):
                numbers[at] += kinds.count(kind)
        if record.tries > 1:
            numbers[row + RETRIES_AT] += record.tries - 1

    def _name(self, record: Record) -> str:
        """Return what a model is called in a label."""
        if record.model in self._named:
            return record.model
        model = record.upstream_model
        if model in self._named or model in self._learned:
            return model
        if model and record.outcome == "answered" and len(self._learned) < _MOST_LEARNED:
            self._learned.add(model)
            return model
        return UNKNOWN if record.model else ""

    def text(self) -> tuple[str, bytes]:
        """Return what all workers have counted, and the type of that text."""
        from dragoman.server.watching.exposition import exposed  # noqa: PLC0415  slow to load, and not needed before

        return exposed(self._board)


def _finer(usage: Usage) -> tuple[int | None, ...]:
    return usage.cached, usage.cache_written, usage.reasoning
