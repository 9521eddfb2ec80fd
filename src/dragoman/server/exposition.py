"""Write what was counted as Prometheus reads it. The only file that knows Prometheus' library."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from dragoman import __version__
from dragoman.server.metrics import (
    BOUNDS,
    CLASSES,
    FIRST_AT,
    LOSSES,
    LOSSES_AT,
    RETRIES_AT,
    TOKENS,
    TOKENS_AT,
    Board,
    Key,
    Sheet,
)

_PLACE = ("model", "upstream")
_REQUEST = ("operation", "dialect", "model", "upstream", "status", "outcome")
_CEILINGS = (*(str(bound) for bound in BOUNDS), "+Inf")
_Rows = dict[Key, list[float]]


def exposed(board: Board) -> tuple[str, bytes]:
    """Return the type and the text of all that was counted."""
    registry = CollectorRegistry()
    registry.register(_Counted(board))
    return CONTENT_TYPE_PLAIN_0_0_4, generate_latest(registry)


class _Counted(Collector):
    def __init__(self, board: Board) -> None:
        self._board = board

    def collect(self) -> Iterator[Metric]:
        shares = self._board.shares()
        requests = CounterMetricFamily("dragoman_requests", "Requests that are over.", labels=_REQUEST)
        for key, numbers in _summed([share.requests for share in shares]).items():
            requests.add_metric(key, numbers[0])
        yield requests
        models = _summed([share.models for share in shares])
        yield _times("dragoman_request_seconds", "Seconds until an answer was whole.", models, 0)
        yield _times("dragoman_first_token_seconds", "Seconds until a stream said something.", models, FIRST_AT)
        yield _kinds("dragoman_tokens", "Tokens, as upstreams count them.", models, TOKENS, TOKENS_AT)
        yield _kinds("dragoman_losses", "Things that could not be said.", models, LOSSES, LOSSES_AT)
        retries = CounterMetricFamily("dragoman_retries", "Tries after the first.", labels=_PLACE)
        for key, numbers in models.items():
            retries.add_metric(key, numbers[RETRIES_AT])
        yield retries
        yield GaugeMetricFamily(
            "dragoman_open_requests", "Requests under way.", value=sum(share.open[0] for share in shares)
        )
        yield GaugeMetricFamily("dragoman_workers", "Processes that serve.", value=len(shares))
        built = GaugeMetricFamily("dragoman_build_info", "The version that runs.", labels=("version",))
        built.add_metric((__version__,), 1)
        yield built


def _summed(sheets: Sequence[Sheet]) -> _Rows:
    rows: _Rows = {}
    for sheet in sheets:
        for key, numbers in sheet.rows():
            known = rows.get(key)
            rows[key] = numbers if known is None else [a + b for a, b in zip(known, numbers, strict=True)]
    return rows


def _times(name: str, words: str, models: _Rows, at: int) -> Metric:
    family = HistogramMetricFamily(name, words, labels=_PLACE)
    for key, numbers in models.items():
        counted = list(accumulate(numbers[at : at + CLASSES]))
        if counted[-1]:
            family.add_metric(key, list(zip(_CEILINGS, counted, strict=True)), numbers[at + CLASSES])
    return family


def _kinds(name: str, words: str, models: _Rows, kinds: Sequence[str], at: int) -> Metric:
    family = CounterMetricFamily(name, words, labels=(*_PLACE, "kind"))
    for key, numbers in models.items():
        for kind, counted in zip(kinds, numbers[at : at + len(kinds)], strict=True):
            family.add_metric((*key, kind), counted)
    return family
