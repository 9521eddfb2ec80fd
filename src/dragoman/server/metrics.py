"""Count every exchange, in memory that all workers of a gateway share.

Counting is a few additions; the Prometheus library is loaded on the first request for the metrics. A label is never a
name that only a client chose: the label of a model is its configured name, or the upstream's name for it after the
first answer, and the number of such names is limited. Each process writes its own rows and reads those of all. Counts
survive a worker: its replacement continues them. The number of rows is fixed; if none is free, the last row is used.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator
from mmap import mmap

from msgspec import Struct

from dragoman.gateway.record import Record
from dragoman.wire import json

_NUMBER_BYTES = 8
_KEY_BYTES = 256
"""Bytes reserved for the key of a row: its length, then the key as JSON."""
_LENGTH_BYTES = 2
OTHER = "other"

CounterKey = tuple[str, ...]


class CounterTable:
    """Rows of counters in shared memory, by key; written by one process."""

    def __init__(self, memory: memoryview, width: int, key_length: int) -> None:
        self._memory = memory
        self._stride = _KEY_BYTES + width * _NUMBER_BYTES
        self._last = len(memory) // self._stride - 1
        self._overflow_key: CounterKey = (OTHER,) * key_length
        self._numbers: memoryview[float] = memory.cast("d")
        self._rows = {key: self._row_numbers(at) for at, key in enumerate(self._iter_keys()) if key is not None}

    @staticmethod
    def byte_size(width: int, rows: int) -> int:
        """Return the size in bytes of a table."""
        return (_KEY_BYTES + width * _NUMBER_BYTES) * rows

    def find_row(self, key: CounterKey) -> "memoryview[float]":
        """Return the counters of a key; a new key gets a free row, or else the overflow row."""
        found = self._rows.get(key)
        return self._add_row(key) if found is None else found

    def iter_rows(self) -> Iterator[tuple[CounterKey, list[float]]]:
        """Yield each key with a copy of its counters; another process may be writing them."""
        for at, key in enumerate(self._iter_keys()):
            if key is not None:
                yield key, list(self._row_numbers(at))

    def _add_row(self, key: CounterKey) -> "memoryview[float]":
        encoded = json.encode(key)
        at = self._last
        if key != self._overflow_key:
            at = len(self._rows) - (self._overflow_key in self._rows)
            if at >= self._last or len(encoded) > _KEY_BYTES - _LENGTH_BYTES:
                return self.find_row(self._overflow_key)
        start = at * self._stride
        self._memory[start + _LENGTH_BYTES : start + _LENGTH_BYTES + len(encoded)] = encoded
        # The length is written last, so that other processes see a complete key or none.
        self._memory[start : start + _LENGTH_BYTES] = len(encoded).to_bytes(_LENGTH_BYTES, "little")
        numbers = self._rows[key] = self._row_numbers(at)
        return numbers

    def _iter_keys(self) -> Iterator[CounterKey | None]:
        for at in range(self._last + 1):
            start = at * self._stride
            length = int.from_bytes(self._memory[start : start + _LENGTH_BYTES], "little")
            encoded = self._memory[start + _LENGTH_BYTES : start + _LENGTH_BYTES + length]
            yield tuple(json.decode(bytes(encoded))) if length else None

    def _row_numbers(self, at: int) -> "memoryview[float]":
        first = (at * self._stride + _KEY_BYTES) // _NUMBER_BYTES
        return self._numbers[first : first + (self._stride - _KEY_BYTES) // _NUMBER_BYTES]


def allocate_shared(size: int) -> mmap:
    """Return memory that this process shares with its forks."""
    return mmap(-1, size)


BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
"""Upper bounds in seconds of the histogram buckets; one more bucket counts longer times."""
TOKENS = ("input", "output", "cached", "cache_written", "reasoning")
LOSSES = (
    ("dropped", "material"),
    ("dropped", "informational"),
    ("approximated", "material"),
    ("approximated", "informational"),
)
"""The kinds and grades of losses, each with its own counter."""
BUCKET_COUNT = len(BOUNDS) + 1
FIRST_TOKEN_OFFSET = BUCKET_COUNT + 1
"""Offset of the first-token histogram, after the buckets and the sum of the request histogram."""
TOKENS_OFFSET = 2 * FIRST_TOKEN_OFFSET
LOSSES_OFFSET = TOKENS_OFFSET + len(TOKENS)
RETRIES_OFFSET = LOSSES_OFFSET + len(LOSSES)
_MODEL_WIDTH = RETRIES_OFFSET + 1
_MODEL_ROWS = 256
_REQUEST_ROWS = 1024
_REQUEST_KEY_LENGTH = 6
_MODEL_KEY_LENGTH = 2
_ATTEMPT_ROWS = 512
_ATTEMPT_KEY_LENGTH = 2


class WorkerCounters(Struct, frozen=True):
    """The counters of one worker."""

    requests: CounterTable
    """The number of requests by operation, dialect, model, upstream, status and outcome."""
    models: CounterTable
    """Histograms, tokens, losses and retries by model and upstream."""
    attempts: CounterTable
    """Calls of upstreams by upstream and outcome: "answered", "left", or the cause of a failure."""
    open_requests: "memoryview[float]"
    """The number of open requests: first the total, then one for each API key."""


class SharedCounters:
    """The counters of all workers, in shared memory."""

    def __init__(self, workers: int = 1, keys: int = 0) -> None:
        self.workers = workers
        self._requests = CounterTable.byte_size(1, _REQUEST_ROWS)
        self._models = CounterTable.byte_size(_MODEL_WIDTH, _MODEL_ROWS)
        self._attempts = CounterTable.byte_size(1, _ATTEMPT_ROWS)
        self._size = self._requests + self._models + self._attempts + (1 + keys) * 8
        self._memory = memoryview(allocate_shared(self._size * workers))

    def worker_counters(self, worker: int) -> WorkerCounters:
        """Return the counters of a worker, including the counts of its predecessors."""
        section = self._memory[worker * self._size : (worker + 1) * self._size]
        requests, rest = section[: self._requests], section[self._requests :]
        return WorkerCounters(
            CounterTable(requests, 1, _REQUEST_KEY_LENGTH),
            CounterTable(rest[: self._models], _MODEL_WIDTH, _MODEL_KEY_LENGTH),
            CounterTable(rest[self._models : self._models + self._attempts], 1, _ATTEMPT_KEY_LENGTH),
            rest[self._models + self._attempts :].cast("d"),
        )

    def all_counters(self) -> tuple[WorkerCounters, ...]:
        """Return the counters of all workers."""
        return tuple(self.worker_counters(worker) for worker in range(self.workers))

    def reset_open(self, worker: int) -> None:
        """Set the open requests of a worker to zero, because it has exited."""
        open_requests = self.worker_counters(worker).open_requests
        for at in range(len(open_requests)):
            open_requests[at] = 0.0


QUIET_OPERATIONS = frozenset({"health", "ready", "metrics"})
"""Monitoring operations, which are not counted as open requests and not logged."""
UNKNOWN = "unknown"
_MAX_LEARNED = 100


class Metrics:
    """Observes exchanges and updates the counters of one worker."""

    def __init__(self, counters: SharedCounters | None = None, worker: int = 0, models: Collection[str] = ()) -> None:
        self.counters = counters or SharedCounters()
        self._own_counters = self.counters.worker_counters(worker)
        self._configured_models = frozenset(models)
        self._learned_models: set[str] = set()
        self._open = self._own_counters.open_requests
        self._rows: dict[tuple[str, str, str, str, int, str], tuple[memoryview[float], memoryview[float] | None]] = {}
        """Cache of the request row and, if an upstream was called, the model row, by the labels of a request."""
        self._attempt_rows: dict[tuple[str, str], memoryview[float]] = {}

    def on_begin(self, record: Record) -> None:
        """Count a new open request."""
        if record.operation not in QUIET_OPERATIONS:
            self._open[0] += 1

    def on_end(self, record: Record) -> None:
        """Count a completed exchange."""
        operation, upstream = record.operation, record.upstream
        model = record.model if record.model in self._configured_models else self._label_model(record)
        key = (operation, record.dialect, model, upstream, record.status, record.outcome)
        requests, numbers = self._rows.get(key) or self._add_rows(key)
        requests[0] += 1
        if operation not in QUIET_OPERATIONS:
            self._open[0] -= 1
        if numbers is not None:
            _add_to_row(record, numbers)
        for attempt in record.attempts:
            attempt_key = attempt.upstream, attempt.cause or attempt.outcome
            (self._attempt_rows.get(attempt_key) or self._add_attempt_row(attempt_key))[0] += 1

    def _add_attempt_row(self, key: tuple[str, str]) -> "memoryview[float]":
        row = self._attempt_rows[key] = self._own_counters.attempts.find_row(key)
        return row

    def count_rejected(self, operation: str, dialect: str, status: int) -> None:
        """Count a request that was rejected because the gateway is overloaded."""
        key = (operation, dialect, "", "", status, "refused")
        requests, _ = self._rows.get(key) or self._add_rows(key)
        requests[0] += 1

    def _add_rows(
        self, key: tuple[str, str, str, str, int, str]
    ) -> tuple["memoryview[float]", "memoryview[float] | None"]:
        operation, dialect, model, upstream, status, outcome = key
        labels = (operation or UNKNOWN, dialect, model, upstream, str(status), outcome)
        numbers = self._own_counters.models.find_row((model, upstream)) if upstream else None
        rows = self._rows[key] = (self._own_counters.requests.find_row(labels), numbers)
        return rows

    def _label_model(self, record: Record) -> str:
        """Return the label of a model whose requested name is not configured."""
        model = record.upstream_model
        if model in self._configured_models or model in self._learned_models:
            return model
        if model and record.outcome == "answered" and len(self._learned_models) < _MAX_LEARNED:
            self._learned_models.add(model)
            return model
        return UNKNOWN if record.model else ""


def _add_to_row(record: Record, numbers: "memoryview[float]") -> None:
    """Add an exchange to the counters of its model and upstream."""
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
        for loss in record.all_losses:
            numbers[LOSSES_OFFSET + LOSSES.index((loss.kind, loss.grade))] += 1
    if record.tries > 1:
        numbers[RETRIES_OFFSET] += record.tries - 1
