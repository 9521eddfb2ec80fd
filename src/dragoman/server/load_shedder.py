"""Rejects requests that the gateway is too busy for, at the least cost: nothing of them is parsed, recorded or logged.

They are counted like all others, and one line in the log for each second says how many there were.
"""

import asyncio
import logging

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.gateway.record import Record, generate_id
from dragoman.http.admission import Load
from dragoman.http.message import Request
from dragoman.http.rejection import RejectionResponse
from dragoman.server.handlers import RETRY_AFTER, build_error
from dragoman.server.metrics import QUIET_OPERATIONS, Metrics
from dragoman.server.routes import Paths

_LOG = logging.getLogger("dragoman.server.load_shedder")
_SECONDS = 1.0
"""Seconds that one line in the log is about."""
_NO_ID = "ex_" + "0" * 32


class _Template(Struct, frozen=True):
    """A response but for the id of the exchange."""

    reason: str
    status: int
    headers: dict[str, str]
    id_headers: tuple[str, ...]
    body: bytes


class LoadShedder:
    """Rejects requests while the server is full."""

    def __init__(self, paths: Paths, load: Load, metrics: Metrics) -> None:
        self._paths = paths
        self._load = load
        self._metrics = metrics
        self._templates: dict[tuple[str, str], _Template] = {}
        self._count = 0
        """Requests that were rejected since the last line in the log."""

    def build_rejection(self, request: Request) -> RejectionResponse | None:
        """Return the response that rejects a request; None if it must be handled even now."""
        path = self._paths.find(request.method, request.path, request.target.partition("?")[0])
        reason = self._load.find_exceeded()
        if path is None or path.operation in QUIET_OPERATIONS or not reason:
            return None
        dialect = path.dialect or self._paths.dialect_of(request.path, request.headers_by_name)
        key = path.operation, dialect
        template = self._templates.get(key)
        if template is None or template.reason != reason:
            template = self._templates[key] = _build_template(path.operation, dialect, reason)
        exchange_id = generate_id()
        headers = {**template.headers, **dict.fromkeys(template.id_headers, exchange_id)}
        self._metrics.count_rejected(path.operation, dialect, template.status)
        if not self._count:
            asyncio.get_running_loop().call_later(_SECONDS, self._log)
        self._count += 1
        body = template.body.replace(_NO_ID.encode(), exchange_id.encode())
        return RejectionResponse(template.status, tuple(headers.items()), body)

    def _log(self) -> None:
        count, self._count = self._count, 0
        _LOG.warning("%d requests were rejected within a second: the gateway is overloaded", count)


def _build_template(operation: str, dialect: str, reason: str) -> _Template:
    record = Record(id=_NO_ID, dialect=dialect, operation=operation)
    problem = Problem("overloaded", f"the gateway is overloaded: {reason}", retry_after=RETRY_AFTER)
    rejection = build_error(problem, record)
    headers = dict(rejection.headers)
    id_headers = tuple(name for name, value in headers.items() if value == _NO_ID)
    return _Template(reason, rejection.status, headers, id_headers, rejection.body)
