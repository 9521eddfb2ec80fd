"""Count every exchange, in memory that all workers of a gateway share.

Counting is a few additions; the library that renders the text for Prometheus is loaded on the first request for it. A
label is never a name that a client alone chose: a model is counted by its configured name, or by the upstream's once
that has answered, and by no more than a fixed number of such names. Each process writes rows of its own and reads those
of all. Counts outlive their process: its successor continues them. The number of rows is fixed; what finds no row is
counted in the last one.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator
from mmap import mmap

from msgspec import Struct

from dragoman.gateway.record import Record
from dragoman.wire import json

_NUMBER = 8
_NAME = 256
"""Bytes that a row's name may take, as JSON with its length before it."""
_LENGTH = 2
OTHER = "other"

Key = tuple[str, ...]


class Sheet:
    """The rows of one process."""

    def __init__(self, memory: memoryview, width: int, words: int) -> None:
        self._memory = memory
        self._stride = _NAME + width * _NUMBER
        self._last = len(memory) // self._stride - 1
        self._rest: Key = (OTHER,) * words
        self._numbers: memoryview[float] = memory.cast("d")
        self._rows = {name: self._numbers_of(at) for at, name in enumerate(self._names()) if name is not None}

    @staticmethod
    def size(width: int, rows: int) -> int:
        """Return the bytes that a sheet needs."""
        return (_NAME + width * _NUMBER) * rows

    def row(self, key: Key) -> "memoryview[float]":
        """Return the numbers of a key; a new row is added if there is room."""
        found = self._rows.get(key)
        return self._add(key) if found is None else found

    def rows(self) -> Iterator[tuple[Key, list[float]]]:
        """Return every row with its numbers, also when another process writes them."""
        for at, name in enumerate(self._names()):
            if name is not None:
                yield name, list(self._numbers_of(at))

    def _add(self, key: Key) -> "memoryview[float]":
        name = json.encode(key)
        at = self._last
        if key != self._rest:
            at = len(self._rows) - (self._rest in self._rows)
            if at >= self._last or len(name) > _NAME - _LENGTH:
                return self.row(self._rest)
        start = at * self._stride
        self._memory[start + _LENGTH : start + _LENGTH + len(name)] = name
        # The length last: another process sees a whole name or none.
        self._memory[start : start + _LENGTH] = len(name).to_bytes(_LENGTH, "little")
        numbers = self._rows[key] = self._numbers_of(at)
        return numbers

    def _names(self) -> Iterator[Key | None]:
        for at in range(self._last + 1):
            start = at * self._stride
            length = int.from_bytes(self._memory[start : start + _LENGTH], "little")
            name = self._memory[start + _LENGTH : start + _LENGTH + length]
            yield tuple(json.decode(bytes(name))) if length else None

    def _numbers_of(self, at: int) -> "memoryview[float]":
        first = (at * self._stride + _NAME) // _NUMBER
        return self._numbers[first : first + (self._stride - _NAME) // _NUMBER]


def shared(size: int) -> mmap:
    """Return memory that this process and those it forks see."""
    return mmap(-1, size)


BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
"""Upper ends of the classes that times are counted in, in seconds; what is longer has a class of its own."""
TOKENS = ("input", "output", "cached", "cache_written", "reasoning")
LOSSES = ("dropped", "approximated")
CLASSES = len(BOUNDS) + 1
FIRST_AT = CLASSES + 1
"""Where the classes of the first token begin: behind those of the whole answer, and their sum."""
TOKENS_AT = 2 * FIRST_AT
LOSSES_AT = TOKENS_AT + len(TOKENS)
RETRIES_AT = LOSSES_AT + len(LOSSES)
_MODEL_WIDTH = RETRIES_AT + 1
_MODEL_ROWS = 256
_REQUEST_ROWS = 1024
_REQUEST_WORDS = 6
_MODEL_WORDS = 2


class Share(Struct, frozen=True):
    """What one worker counts."""

    requests: Sheet
    """One number a row: how many. By operation, dialect, model, upstream, status and outcome."""
    models: Sheet
    """By model and upstream, all that is counted of answers."""
    open: "memoryview[float]"
    """How many requests are open: in all, and then by key."""


class Board:
    """The shares of all workers."""

    def __init__(self, workers: int = 1, keys: int = 0) -> None:
        self.workers = workers
        self._requests = Sheet.size(1, _REQUEST_ROWS)
        self._models = Sheet.size(_MODEL_WIDTH, _MODEL_ROWS)
        self._size = self._requests + self._models + (1 + keys) * 8
        self._memory = memoryview(shared(self._size * workers))

    def share(self, worker: int) -> Share:
        """Return the share of a worker as it is now; what one before it has counted is in it."""
        part = self._memory[worker * self._size : (worker + 1) * self._size]
        requests, rest = part[: self._requests], part[self._requests :]
        return Share(
            Sheet(requests, 1, _REQUEST_WORDS),
            Sheet(rest[: self._models], _MODEL_WIDTH, _MODEL_WORDS),
            rest[self._models :].cast("d"),
        )

    def shares(self) -> tuple[Share, ...]:
        """Return the shares of all workers."""
        return tuple(self.share(worker) for worker in range(self.workers))

    def forget_open(self, worker: int) -> None:
        """A worker is gone, and with it all that it had open."""
        share = self.share(worker).open
        for at in range(len(share)):
            share[at] = 0.0


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
        self._open = self._share.open
        self._rows: dict[tuple[str, str, str, str, int, str], tuple[memoryview[float], memoryview[float] | None]] = {}
        """The row of a request and, if an upstream was called, of its model, by all that tells requests apart."""

    def begun(self, record: Record) -> None:
        """Count a request that is open."""
        if record.operation not in QUIET:
            self._open[0] += 1

    def ended(self, record: Record) -> None:
        """Count an exchange that is over."""
        operation, upstream = record.operation, record.upstream
        model = record.model if record.model in self._named else self._name(record)
        key = (operation, record.dialect, model, upstream, record.status, record.outcome)
        rows = self._rows.get(key)
        if rows is None:
            words = (operation or UNKNOWN, record.dialect, model, upstream, str(record.status), record.outcome)
            numbers = self._share.models.row((model, upstream)) if upstream else None
            rows = self._rows[key] = (self._share.requests.row(words), numbers)
        requests, numbers = rows
        requests[0] += 1
        if operation not in QUIET:
            self._open[0] -= 1
        if numbers is not None:
            _count(record, numbers)

    def _name(self, record: Record) -> str:
        """Return the label of a model that is not configured by the name that the client used."""
        model = record.upstream_model
        if model in self._named or model in self._learned:
            return model
        if model and record.outcome == "answered" and len(self._learned) < _MOST_LEARNED:
            self._learned.add(model)
            return model
        return UNKNOWN if record.model else ""

    def text(self) -> tuple[str, bytes]:
        """Return what all workers have counted, and the type of that text."""
        from dragoman.server.exposition import exposed  # noqa: PLC0415  slow to load, and not needed before

        return exposed(self._board)


def _count(record: Record, numbers: "memoryview[float]") -> None:
    """Add an exchange to the numbers of its model and upstream."""
    seconds, first, usage = record.seconds or 0.0, record.first, record.usage
    numbers[bisect_left(BOUNDS, seconds)] += 1
    numbers[CLASSES] += seconds
    if record.stream and first is not None:
        numbers[FIRST_AT + bisect_left(BOUNDS, first)] += 1
        numbers[FIRST_AT + CLASSES] += first
    if usage is not None:
        numbers[TOKENS_AT] += usage.input or 0
        numbers[TOKENS_AT + 1] += usage.output or 0
        if usage.cached or usage.cache_written or usage.reasoning:
            for at, tokens in enumerate((usage.cached, usage.cache_written, usage.reasoning), TOKENS_AT + 2):
                numbers[at] += tokens or 0
    if record.losses or record.reply_losses:
        kinds = [loss.kind for loss in (*record.losses, *record.reply_losses)]
        dropped = kinds.count("dropped")
        numbers[LOSSES_AT] += dropped
        numbers[LOSSES_AT + 1] += len(kinds) - dropped
    if record.tries > 1:
        numbers[RETRIES_AT] += record.tries - 1
