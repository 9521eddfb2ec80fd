"""Write what was counted as Prometheus reads it. The only file that knows Prometheus' library."""

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
    """Return the type and the text of all that was counted."""
    registry = CollectorRegistry()
    registry.register(_CounterCollector(counters))
    return CONTENT_TYPE_PLAIN_0_0_4, generate_latest(registry)


class _CounterCollector(Collector):
    def __init__(self, counters: SharedCounters) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        shares = self._counters.all_counters()
        requests = CounterMetricFamily("dragoman_requests", "Requests that are over.", labels=_REQUEST_LABELS)
        for key, numbers in _sum_rows([share.requests for share in shares]).items():
            requests.add_metric(key, numbers[0])
        yield requests
        models = _sum_rows([share.models for share in shares])
        yield _build_histogram("dragoman_request_seconds", "Seconds until an answer was whole.", models, 0)
        yield _build_histogram(
            "dragoman_first_token_seconds", "Seconds until a stream said something.", models, FIRST_TOKEN_OFFSET
        )
        yield _build_counter("dragoman_tokens", "Tokens, as upstreams count them.", models, TOKENS, TOKENS_OFFSET)
        yield _build_counter("dragoman_losses", "Things that could not be said.", models, LOSSES, LOSSES_OFFSET)
        retries = CounterMetricFamily("dragoman_retries", "Tries after the first.", labels=_MODEL_LABELS)
        for key, numbers in models.items():
            retries.add_metric(key, numbers[RETRIES_OFFSET])
        yield retries
        yield GaugeMetricFamily(
            "dragoman_open_requests", "Requests under way.", value=sum(share.open_requests[0] for share in shares)
        )
        yield GaugeMetricFamily("dragoman_workers", "Processes that serve.", value=len(shares))
        built = GaugeMetricFamily("dragoman_build_info", "The version that runs.", labels=("version",))
        built.add_metric((__version__,), 1)
        yield built


def _sum_rows(tables: Sequence[CounterTable]) -> _Rows:
    rows: _Rows = {}
    for sheet in tables:
        for key, numbers in sheet.iter_rows():
            known = rows.get(key)
            rows[key] = numbers if known is None else [a + b for a, b in zip(known, numbers, strict=True)]
    return rows


def _build_histogram(name: str, description: str, models: _Rows, offset: int) -> Metric:
    family = HistogramMetricFamily(name, description, labels=_MODEL_LABELS)
    for key, numbers in models.items():
        counted = list(accumulate(numbers[offset : offset + BUCKET_COUNT]))
        if counted[-1]:
            family.add_metric(key, list(zip(_BUCKETS, counted, strict=True)), numbers[offset + BUCKET_COUNT])
    return family


def _build_counter(name: str, description: str, models: _Rows, kinds: Sequence[str], offset: int) -> Metric:
    family = CounterMetricFamily(name, description, labels=(*_MODEL_LABELS, "kind"))
    for key, numbers in models.items():
        for kind, counted in zip(kinds, numbers[offset : offset + len(kinds)], strict=True):
            family.add_metric((*key, kind), counted)
    return family
