"""Render the counters in Prometheus' text format. The only module that imports `prometheus_client`."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from dragoman import __version__
from dragoman.server.metrics import (
    BOUNDS,
    BUCKET_COUNT,
    FIRST_TOKEN_OFFSET,
    LOSSES,
    LOSSES_OFFSET,
    RETRIES_OFFSET,
    TOKENS,
    TOKENS_OFFSET,
    CounterKey,
    CounterTable,
    SharedCounters,
)

_MODEL_LABELS = ("model", "upstream")
_REQUEST_LABELS = ("operation", "dialect", "model", "upstream", "status", "outcome")
_BUCKETS = (*(str(bound) for bound in BOUNDS), "+Inf")
_Rows = dict[CounterKey, list[float]]


def render_metrics(counters: SharedCounters) -> tuple[str, bytes]:
    """Return the content type and the text of all metrics."""
    registry = CollectorRegistry()
    registry.register(_CounterCollector(counters))
    return CONTENT_TYPE_PLAIN_0_0_4, generate_latest(registry)


class _CounterCollector(Collector):
    def __init__(self, counters: SharedCounters) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        workers = self._counters.all_counters()
        requests = CounterMetricFamily("dragoman_requests", "Completed requests.", labels=_REQUEST_LABELS)
        for key, numbers in _sum_rows([worker.requests for worker in workers]).items():
            requests.add_metric(key, numbers[0])
        yield requests
        models = _sum_rows([worker.models for worker in workers])
        yield _build_histogram("dragoman_request_seconds", "Seconds until the response was complete.", models, 0)
        yield _build_histogram(
            "dragoman_first_token_seconds", "Seconds until the first token of a stream.", models, FIRST_TOKEN_OFFSET
        )
        tokens = CounterMetricFamily(
            "dragoman_tokens", "Tokens as reported by upstreams.", labels=(*_MODEL_LABELS, "kind")
        )
        yield _fill_counter(tokens, models, [(kind,) for kind in TOKENS], TOKENS_OFFSET)
        losses = CounterMetricFamily(
            "dragoman_losses", "Losses of translations, by kind and grade.", labels=(*_MODEL_LABELS, "kind", "grade")
        )
        yield _fill_counter(losses, models, LOSSES, LOSSES_OFFSET)
        retries = CounterMetricFamily(
            "dragoman_retries",
            "Retries and fallbacks: upstream calls after the first of an exchange.",
            labels=_MODEL_LABELS,
        )
        for key, numbers in models.items():
            retries.add_metric(key, numbers[RETRIES_OFFSET])
        yield retries
        attempts = CounterMetricFamily(
            "dragoman_attempts",
            "Calls of upstreams: answered, left by the client, or the cause of the failure.",
            labels=("upstream", "outcome"),
        )
        for key, numbers in _sum_rows([worker.attempts for worker in workers]).items():
            attempts.add_metric(key, numbers[0])
        yield attempts
        yield GaugeMetricFamily(
            "dragoman_open_requests", "Open requests.", value=sum(worker.open_requests[0] for worker in workers)
        )
        yield GaugeMetricFamily("dragoman_workers", "Worker processes.", value=len(workers))
        build_info = GaugeMetricFamily("dragoman_build_info", "The running version.", labels=("version",))
        build_info.add_metric((__version__,), 1)
        yield build_info


def _sum_rows(tables: Sequence[CounterTable]) -> _Rows:
    rows: _Rows = {}
    for table in tables:
        for key, numbers in table.iter_rows():
            previous = rows.get(key)
            rows[key] = numbers if previous is None else [a + b for a, b in zip(previous, numbers, strict=True)]
    return rows


def _build_histogram(name: str, description: str, models: _Rows, offset: int) -> Metric:
    family = HistogramMetricFamily(name, description, labels=_MODEL_LABELS)
    for key, numbers in models.items():
        counts = list(accumulate(numbers[offset : offset + BUCKET_COUNT]))
        if counts[-1]:
            family.add_metric(key, list(zip(_BUCKETS, counts, strict=True)), numbers[offset + BUCKET_COUNT])
    return family


def _fill_counter(
    family: CounterMetricFamily, models: _Rows, labels: Sequence[tuple[str, ...]], offset: int
) -> CounterMetricFamily:
    """Add the counters from `offset` on, one for each of `labels`, and return the family."""
    for key, numbers in models.items():
        for values, count in zip(labels, numbers[offset : offset + len(labels)], strict=True):
            family.add_metric((*key, *values), count)
    return family
