"""What happened to one request, who observes that, and the headers that report it to the client.

An observer is called at once and must not take long. One that fails is reported to the loop; the request goes on.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import getrandbits
from time import monotonic, time
from typing import Literal

from msgspec import Struct, field

from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.core.response import Usage
from dragoman.dialects.registry import dialect_named

Outcome = Literal["open", "answered", "refused", "failed", "left"]
"""`refused` before an upstream was asked, `failed` after that, `left` when the client did not wait."""
_MAX_TEXT = 2000
"""Characters of an error or a name that are kept once it is over."""
_MAX_RECENT = 1000
"""Exchanges that are kept for clients that look them up."""


def _generate_id() -> str:
    # It guards nothing: an exchange is shown to its owner only.
    return f"ex_{getrandbits(128):032x}"


class Record(Struct, kw_only=True):
    """One exchange, filled in as it goes on."""

    id: str = field(default_factory=_generate_id)
    owner: str = ""
    dialect: str = ""
    operation: str = ""
    """What the path asks for; empty for a path that nobody serves."""
    model: str = ""
    stream: bool = False
    upstream: str = ""
    """Who was asked last; empty while nobody was."""
    upstream_model: str = ""
    tries: int = 0
    is_retry_budget_spent: bool = False
    """It would have been tried again, but too many others were."""
    status: int = 0
    outcome: Outcome = "open"
    began: float = field(default_factory=time)
    start_clock: float = field(default_factory=monotonic)
    first_token_seconds: float | None = None
    """Seconds until the client was sent the first of an answer; a sign of life is none."""
    seconds: float | None = None
    losses: tuple[Loss, ...] = ()
    """What of the request could not be said."""
    reply_losses: tuple[Loss, ...] = ()
    """What of the reply could not be said, as far as it came."""
    usage: Usage | None = None
    finish: str = ""
    problem: Problem | None = None
    crash: BaseException | None = None
    """What we did wrong ourselves."""

    def note_attempt(self, upstream: str, model: str) -> None:
        """An upstream is asked."""
        self.tries += 1
        self.upstream, self.upstream_model = upstream, model

    @property
    def all_losses(self) -> tuple[Loss, ...]:
        """What could not be said, either way."""
        return (*self.losses, *self.reply_losses)

    def note_first_token(self) -> None:
        """An answer begins."""
        if self.first_token_seconds is None:
            self.first_token_seconds = monotonic() - self.start_clock

    def truncate(self) -> None:
        """Keep only what is small of an exchange that was not answered.

        An error that was raised holds on to every frame it came through, and these to the whole request.
        """
        problem = self.problem
        if problem is not None:
            words = problem.message[:_MAX_TEXT]
            self.problem = Problem(problem.kind, words, status=problem.status, code=problem.code)
        self.crash = None
        self.model, self.upstream_model = self.model[:_MAX_TEXT], self.upstream_model[:_MAX_TEXT]


Observer = Callable[[Record], None]
"""Called with an exchange. The record is the same object from beginning to end, and filled in as it goes on."""


class Observers:
    """Calls all observers of exchanges, and keeps the last exchanges that named a model."""

    def __init__(self, *, on_begin: Iterable[Observer] = (), on_end: Iterable[Observer] = ()) -> None:
        self._on_begin = tuple(on_begin)
        self._on_end = tuple(on_end)
        self.recent: deque[Record] = deque(maxlen=_MAX_RECENT)

    def begin(self, record: Record) -> None:
        """Report an exchange of which only the dialect and the operation are known."""
        _notify(self._on_begin, record)

    def end(self, record: Record) -> None:
        """Report an exchange that is over."""
        record.seconds = monotonic() - record.start_clock
        _notify(self._on_end, record)
        if record.outcome != "answered":
            record.truncate()
        if record.model:
            self.recent.append(record)


def _notify(observers: Iterable[Observer], record: Record) -> None:
    for observer in observers:
        try:
            observer(record)
        except Exception as error:  # noqa: BLE001  an observer that fails must not hurt the request or other observers
            report = {"message": f"an observer failed on {record.id}", "exception": error}
            asyncio.get_running_loop().call_exception_handler(report)


_MAX_HEADER = 1024
"""Clients and proxies bear headers of some kilobytes in all."""


def build_response_headers(record: Record, content_headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an answer; `kind` says what its body is."""
    headers = {**content_headers, "x-dragoman-exchange": record.id}
    named = dialect_named(record.dialect).id_header
    if named:
        headers[named] = record.id
    if record.upstream:
        headers["x-dragoman-upstream"] = record.upstream
    if record.losses or record.reply_losses:
        headers["x-dragoman-losses"] = format_losses(record.all_losses)
    return headers


def format_losses(losses: Sequence[Loss]) -> str:
    """Return how many losses there are, then as many of them as fit on the line, in letters that a header may hold."""
    items = [f"; {loss.kind} {loss.where}: {loss.what}" for loss in losses]
    line = f"{len(losses)}{''.join(items)}"
    while len(line) > _MAX_HEADER:
        line = line[: -len(items.pop())]
    if line.isascii() and line.isprintable():
        return line
    return "".join([letter if " " <= letter <= "~" else "?" for letter in line])
