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

_NUMBER_BYTES = 8
_KEY_BYTES = 256
"""Bytes that a row's name may take, as JSON with its length before it."""
_LENGTH_BYTES = 2
OTHER = "other"

CounterKey = tuple[str, ...]


class CounterTable:
    """The rows of one process."""

    def __init__(self, memory: memoryview, width: int, key_length: int) -> None:
        self._memory = memory
        self._stride = _KEY_BYTES + width * _NUMBER_BYTES
        self._last = len(memory) // self._stride - 1
        self._overflow_key: CounterKey = (OTHER,) * key_length
        self._numbers: memoryview[float] = memory.cast("d")
        self._rows = {name: self._row_numbers(at) for at, name in enumerate(self._iter_keys()) if name is not None}

    @staticmethod
    def byte_size(width: int, rows: int) -> int:
        """Return the bytes that a sheet needs."""
        return (_KEY_BYTES + width * _NUMBER_BYTES) * rows

    def find_row(self, key: CounterKey) -> "memoryview[float]":
        """Return the numbers of a key; a new row is added if there is room."""
        found = self._rows.get(key)
        return self._add_row(key) if found is None else found

    def iter_rows(self) -> Iterator[tuple[CounterKey, list[float]]]:
        """Return every row with its numbers, also when another process writes them."""
        for at, name in enumerate(self._iter_keys()):
            if name is not None:
                yield name, list(self._row_numbers(at))

    def _add_row(self, key: CounterKey) -> "memoryview[float]":
        name = json.encode(key)
        at = self._last
        if key != self._overflow_key:
            at = len(self._rows) - (self._overflow_key in self._rows)
            if at >= self._last or len(name) > _KEY_BYTES - _LENGTH_BYTES:
                return self.find_row(self._overflow_key)
        start = at * self._stride
        self._memory[start + _LENGTH_BYTES : start + _LENGTH_BYTES + len(name)] = name
        # The length last: another process sees a whole name or none.
        self._memory[start : start + _LENGTH_BYTES] = len(name).to_bytes(_LENGTH_BYTES, "little")
        numbers = self._rows[key] = self._row_numbers(at)
        return numbers

    def _iter_keys(self) -> Iterator[CounterKey | None]:
        for at in range(self._last + 1):
            start = at * self._stride
            length = int.from_bytes(self._memory[start : start + _LENGTH_BYTES], "little")
            name = self._memory[start + _LENGTH_BYTES : start + _LENGTH_BYTES + length]
            yield tuple(json.decode(bytes(name))) if length else None

    def _row_numbers(self, at: int) -> "memoryview[float]":
        first = (at * self._stride + _KEY_BYTES) // _NUMBER_BYTES
        return self._numbers[first : first + (self._stride - _KEY_BYTES) // _NUMBER_BYTES]


def allocate_shared(size: int) -> mmap:
    """Return memory that this process and those it forks see."""
    return mmap(-1, size)


BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
"""Upper ends of the classes that times are counted in, in seconds; what is longer has a class of its own."""
TOKENS = ("input", "output", "cached", "cache_written", "reasoning")
LOSSES = ("dropped", "approximated")
BUCKET_COUNT = len(BOUNDS) + 1
FIRST_TOKEN_OFFSET = BUCKET_COUNT + 1
"""Where the classes of the first token begin: behind those of the whole answer, and their sum."""
TOKENS_OFFSET = 2 * FIRST_TOKEN_OFFSET
LOSSES_OFFSET = TOKENS_OFFSET + len(TOKENS)
RETRIES_OFFSET = LOSSES_OFFSET + len(LOSSES)
_MODEL_WIDTH = RETRIES_OFFSET + 1
_MODEL_ROWS = 256
_REQUEST_ROWS = 1024
_REQUEST_KEY_LENGTH = 6
_MODEL_KEY_LENGTH = 2


class WorkerCounters(Struct, frozen=True):
    """What one worker counts."""

    requests: CounterTable
    """One number a row: how many. By operation, dialect, model, upstream, status and outcome."""
    models: CounterTable
    """By model and upstream, all that is counted of answers."""
    open_requests: "memoryview[float]"
    """How many requests are open: in all, and then by key."""


class SharedCounters:
    """The shares of all workers."""

    def __init__(self, workers: int = 1, keys: int = 0) -> None:
        self.workers = workers
        self._requests = CounterTable.byte_size(1, _REQUEST_ROWS)
        self._models = CounterTable.byte_size(_MODEL_WIDTH, _MODEL_ROWS)
        self._size = self._requests + self._models + (1 + keys) * 8
        self._memory = memoryview(allocate_shared(self._size * workers))

    def worker_counters(self, worker: int) -> WorkerCounters:
        """Return the share of a worker as it is now; what one before it has counted is in it."""
        part = self._memory[worker * self._size : (worker + 1) * self._size]
        requests, rest = part[: self._requests], part[self._requests :]
        return WorkerCounters(
            CounterTable(requests, 1, _REQUEST_KEY_LENGTH),
            CounterTable(rest[: self._models], _MODEL_WIDTH, _MODEL_KEY_LENGTH),
            rest[self._models :].cast("d"),
        )

    def all_counters(self) -> tuple[WorkerCounters, ...]:
        """Return the shares of all workers."""
        return tuple(self.worker_counters(worker) for worker in range(self.workers))

    def reset_open(self, worker: int) -> None:
        """A worker is gone, and with it all that it had open."""
        share = self.worker_counters(worker).open_requests
        for at in range(len(share)):
            share[at] = 0.0


QUIET_OPERATIONS = frozenset({"health", "metrics"})
"""Operations by which others look after us: they are no work."""
UNKNOWN = "unknown"
_MAX_LEARNED = 100


class Metrics:
    """Counts the exchanges of one worker."""

    def __init__(self, counters: SharedCounters | None = None, worker: int = 0, models: Collection[str] = ()) -> None:
        self.counters = counters or SharedCounters()
        self._own_counters = self.counters.worker_counters(worker)
        self._configured_models = frozenset(models)
        self._learned_models: set[str] = set()
        self._open = self._own_counters.open_requests
        self._rows: dict[tuple[str, str, str, str, int, str], tuple[memoryview[float], memoryview[float] | None]] = {}
        """The row of a request and, if an upstream was called, of its model, by all that tells requests apart."""

    def on_begin(self, record: Record) -> None:
        """Count a request that is open."""
        if record.operation not in QUIET_OPERATIONS:
            self._open[0] += 1

    def on_end(self, record: Record) -> None:
        """Count an exchange that is over."""
        operation, upstream = record.operation, record.upstream
        model = record.model if record.model in self._configured_models else self._label_model(record)
        key = (operation, record.dialect, model, upstream, record.status, record.outcome)
        rows = self._rows.get(key)
        if rows is None:
            words = (operation or UNKNOWN, record.dialect, model, upstream, str(record.status), record.outcome)
            numbers = self._own_counters.models.find_row((model, upstream)) if upstream else None
            rows = self._rows[key] = (self._own_counters.requests.find_row(words), numbers)
        requests, numbers = rows
        requests[0] += 1
        if operation not in QUIET_OPERATIONS:
            self._open[0] -= 1
        if numbers is not None:
            _add_to_row(record, numbers)

    def _label_model(self, record: Record) -> str:
        """Return the label of a model that is not configured by the name that the client used."""
        model = record.upstream_model
        if model in self._configured_models or model in self._learned_models:
            return model
        if model and record.outcome == "answered" and len(self._learned_models) < _MAX_LEARNED:
            self._learned_models.add(model)
            return model
        return UNKNOWN if record.model else ""


def _add_to_row(record: Record, numbers: "memoryview[float]") -> None:
    """Add an exchange to the numbers of its model and upstream."""
    seconds, first, usage = record.seconds or 0.0, record.first_token_seconds, record.usage
    numbers[bisect_left(BOUNDS, seconds)] += 1
    numbers[BUCKET_COUNT] += seconds
    if record.stream and first is not None:
        numbers[FIRST_TOKEN_OFFSET + bisect_left(BOUNDS, first)] += 1
        numbers[FIRST_TOKEN_OFFSET + BUCKET_COUNT] += first
    if usage is not None:
        numbers[TOKENS_OFFSET] += usage.input or 0
        numbers[TOKENS_OFFSET + 1] += usage.output or 0
        if usage.cached or usage.cache_written or usage.reasoning:
            for at, tokens in enumerate((usage.cached, usage.cache_written, usage.reasoning), TOKENS_OFFSET + 2):
                numbers[at] += tokens or 0
    if record.losses or record.reply_losses:
        kinds = [loss.kind for loss in (*record.losses, *record.reply_losses)]
        dropped = kinds.count("dropped")
        numbers[LOSSES_OFFSET] += dropped
        numbers[LOSSES_OFFSET + 1] += len(kinds) - dropped
    if record.tries > 1:
        numbers[RETRIES_OFFSET] += record.tries - 1
