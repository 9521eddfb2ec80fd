"""The record of one exchange, its observers, and the response headers that report it to the client.

Observers are called synchronously and must be fast. An exception in one goes to the event loop's exception handler; the
request continues.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from random import randbytes
from time import monotonic, time
from typing import Literal

from msgspec import Struct, field

from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.core.response import Usage
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.loss_report import format_losses

Outcome = Literal["open", "answered", "refused", "failed", "left"]
"""`refused` before an upstream was called, `failed` after that, `left` if the client disconnected."""
EXCHANGE_HEADER = "x-dragoman-exchange"
"""In responses the id of the exchange; in requests of the gateway to its own hosts its address."""
_MAX_TEXT = 2000
"""Characters of an error message or a name that are kept after the exchange."""
_MAX_RECENT = 1000
"""Finished exchanges that are kept for lookup by clients."""


def generate_id() -> str:
    """Return an id for an exchange."""
    # Not a secret: an exchange is shown only to its owner.
    return "ex_" + randbytes(16).hex()  # noqa: S311


class UpstreamAttempt(Struct, frozen=True):
    """One call of an upstream that has ended."""

    upstream: str
    model: str
    seconds: float
    outcome: Literal["answered", "failed", "left"]
    cause: str = ""
    """Why it failed: `refused`, `dns`, `tls`, `timeout: first byte`, `status 429` or the kind of the error."""
    report: str = ""
    """The same for the operator's log, with the address."""


class Record(Struct, kw_only=True):
    """One exchange, filled in while it is handled."""

    id: str = field(default_factory=generate_id)
    owner: str = ""
    dialect: str = ""
    operation: str = ""
    """The operation of the path; empty for an unknown path."""
    model: str = ""
    stream: bool = False
    upstream: str = ""
    """The upstream that was called last; empty before the first call."""
    upstream_model: str = ""
    tries: int = 0
    is_retry_budget_spent: bool = False
    """It was not retried, because too many other requests were."""
    status: int = 0
    outcome: Outcome = "open"
    began: float = field(default_factory=time)
    start_clock: float = field(default_factory=monotonic)
    first_token_seconds: float | None = None
    """Seconds until the first content was sent to the client; heartbeats do not count."""
    seconds: float | None = None
    losses: tuple[Loss, ...] = ()
    """Losses in the request."""
    reply_losses: tuple[Loss, ...] = ()
    """Losses in the reply so far."""
    usage: Usage | None = None
    finish: str = ""
    problem: Problem | None = None
    crash: BaseException | None = None
    """An unexpected exception in the gateway."""

    attempts: list[UpstreamAttempt] = []
    """The calls of upstreams, in their order."""
    attempt_start: float = 0.0
    """When the present call began; 0 while there is none."""

    def note_attempt(self, upstream: str, model: str) -> None:
        """Note that an upstream is called."""
        if self.attempt_start:
            self.note_attempt_end("answered")
        self.tries += 1
        self.attempt_start = monotonic()
        self.upstream, self.upstream_model = upstream, model

    def note_attempt_end(self, outcome: Literal["answered", "failed", "left"], problem: Problem | None = None) -> None:
        """Note that the present call of an upstream has ended, if there is one."""
        if not self.attempt_start:
            return
        seconds, self.attempt_start = monotonic() - self.attempt_start, 0.0
        cause, report = ("", "") if problem is None else (problem.cause or problem.kind, problem.report)
        self.attempts.append(UpstreamAttempt(self.upstream, self.upstream_model, seconds, outcome, cause, report))

    @property
    def all_losses(self) -> tuple[Loss, ...]:
        """Losses in the request and in the reply."""
        return self.losses + self.reply_losses

    def note_first_token(self) -> None:
        """Note that the reply has started."""
        if self.first_token_seconds is None:
            self.first_token_seconds = monotonic() - self.start_clock

    def truncate(self) -> None:
        """Drop the large data of an exchange that failed.

        A raised exception references the frames that it passed through, and through them the whole request.
        """
        problem = self.problem
        if problem is not None:
            message = problem.message[:_MAX_TEXT]
            self.problem = Problem(problem.kind, message, status=problem.status, code=problem.code)
        self.crash = None
        self.model, self.upstream_model = self.model[:_MAX_TEXT], self.upstream_model[:_MAX_TEXT]


Observer = Callable[[Record], None]
"""Called with an exchange. The record is the same object from start to end, and is filled in meanwhile."""


class Observers:
    """Calls all observers of exchanges, and keeps the last exchanges that have a model."""

    def __init__(self, *, on_begin: Iterable[Observer] = (), on_end: Iterable[Observer] = ()) -> None:
        self._on_begin = tuple(on_begin)
        self._on_end = tuple(on_end)
        self.recent: deque[Record] = deque(maxlen=_MAX_RECENT)

    def begin(self, record: Record) -> None:
        """Report a new exchange, of which only the dialect and the operation are known."""
        _notify(self._on_begin, record)

    def end(self, record: Record) -> None:
        """Report an exchange that has ended."""
        record.seconds = monotonic() - record.start_clock
        if record.attempt_start:
            left = "left" if record.outcome == "left" else "failed"
            record.note_attempt_end("answered" if record.outcome == "answered" else left, record.problem)
        _notify(self._on_end, record)
        if record.outcome != "answered":
            record.truncate()
        if record.model:
            self.recent.append(record)


def _notify(observers: Iterable[Observer], record: Record) -> None:
    for observer in observers:
        try:
            observer(record)
        except Exception as error:  # noqa: BLE001  an exception must not affect the request or other observers
            report = {"message": f"an observer of exchange {record.id} failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(report)


def build_response_headers(record: Record, content_headers: Mapping[str, str]) -> dict[str, str]:
    """Build the response headers; `content_headers` are those that describe the body."""
    headers = {**content_headers, EXCHANGE_HEADER: record.id}
    id_header = dialect_named(record.dialect).id_header
    if id_header:
        headers[id_header] = record.id
    if record.upstream:
        headers["x-dragoman-upstream"] = record.upstream
    if record.losses or record.reply_losses:
        headers["x-dragoman-losses"] = format_losses(record.all_losses)
    return headers
