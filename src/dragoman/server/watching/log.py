"""One line for every exchange: what was asked, where it went, how it ended and what it cost.

What was said in a request or a reply is never in it, and whatever looks like a secret is taken out. Our own failures
have a line of their own with their traceback, also where no other lines are wanted.
"""

import traceback
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from logging import LogRecord
from pathlib import Path
from time import gmtime, strftime, time
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from dragoman.config import Config, ConfigError
from dragoman.gateway.record import Record
from dragoman.gateway.redact import redact
from dragoman.server.watching import notes
from dragoman.server.watching.lines import Lines
from dragoman.server.watching.metrics import QUIET
from dragoman.wire import json

_LONGEST = 500
"""Letters of somebody else's words that go into a line."""
_MOST_READ = 4000
"""Letters that are looked at for these; secrets among them are longer than what stands in their place."""
_LONGEST_TRACE = 64 << 10


class Tokens(Struct, frozen=True):
    """What was used."""

    input: int | None
    output: int | None
    cached: int | None
    reasoning: int | None


class Line(Struct, frozen=True):
    """What is told of an exchange, in this order."""

    time: str
    exchange: str
    owner: str
    operation: str
    dialect: str
    model: str
    upstream: str
    upstream_model: str
    status: int
    outcome: str
    tries: int
    stream: bool
    first_ms: float | None
    total_ms: float | None
    finish: str
    losses: int
    tokens: Tokens | UnsetType = UNSET
    problem: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    worker: int | UnsetType = UNSET
    """Which of several workers says this."""


class Log:
    """Writes a line for every exchange."""

    def __init__(
        self,
        add: Callable[[bytes], None],
        *,
        form: str = "json",
        secrets: Collection[str] = (),
        crashes: bool = False,
        worker: int | UnsetType = UNSET,
    ) -> None:
        self._add = add
        self._secrets = secrets
        self._form = _plain if form == "text" else json.encode
        self._crashes_only = crashes
        self._worker = worker

    def ended(self, record: Record) -> None:
        """Tell of an exchange that is over."""
        if record.crash is not None:
            self.crashed(record.crash, record.id)
        if not self._crashes_only and (record.operation not in QUIET or record.problem is not None):
            self._add(self._form(self._line(record)))

    def crashed(self, error: BaseException, exchange: str = "", words: str = "") -> None:
        """Tell of a failure of our own."""
        lines = redact("".join(traceback.format_exception(error))[-_LONGEST_TRACE:], self._secrets)
        fields = {"time": _moment(time()), "event": "crash", "exchange": exchange, "message": words}
        if self._form is _plain:
            self._add(f"{fields['time']} crash {exchange} {words}\n{lines}".encode())
        else:
            self._add(json.encode({**fields, "error": type(error).__name__, "traceback": lines}))

    def noted(self, record: LogRecord) -> None:
        """Tell of what a tool or an external server did."""
        fields = {
            "time": _moment(record.created),
            "event": "note",
            "level": record.levelname.lower(),
            "about": record.name.removeprefix("dragoman."),
            "message": self._clean(record.getMessage()),
        }
        trace = "".join(traceback.format_exception(record.exc_info[1])) if record.exc_info else ""
        lines = redact(trace[-_LONGEST_TRACE:], self._secrets)
        if self._form is _plain:
            told = f"{fields['time'][11:]} {fields['level']} {fields['about']}: {fields['message']}".replace("\n", " ")
            self._add((f"{told}\n{lines}" if lines else told).encode())
            return
        worker = {} if self._worker is UNSET else {"worker": self._worker}
        self._add(json.encode({**fields, **worker, **({"traceback": lines} if lines else {})}))

    def loop_failed(self, _: object, context: dict[str, Any]) -> None:
        """Take what the event loop could tell nobody else."""
        error = context.get("exception")
        words = self._clean(str(context.get("message", "")))
        self.crashed(error if isinstance(error, BaseException) else RuntimeError(words), words=words)

    def _line(self, record: Record) -> Line:
        problem, usage = record.problem, record.usage
        model, asked = record.model, record.upstream_model
        if record.outcome != "answered":
            # A name that was answered to is no secret; any other is a client's word.
            model, asked = self._clean(model), self._clean(asked)
        return Line(
            _moment(record.began),
            record.id,
            record.owner,
            record.operation,
            record.dialect,
            model,
            record.upstream,
            asked,
            record.status,
            record.outcome,
            record.tries,
            record.stream,
            _milliseconds(record.first),
            _milliseconds(record.seconds),
            record.finish,
            len(record.losses) + len(record.reply_losses),
            UNSET if usage is None else Tokens(usage.input, usage.output, usage.cached, usage.reasoning),
            UNSET if problem is None else problem.kind,
            UNSET if problem is None else self._clean(problem.message),
            self._worker,
        )

    def _clean(self, text: str) -> str:
        # It is cut before it is read: a client may name a model with a million letters.
        return redact(text[:_MOST_READ], self._secrets)[:_LONGEST]


def _moment(seconds: float) -> str:
    whole = int(seconds)
    return f"{_second(whole)}.{int((seconds - whole) * 1000):03}Z"


@lru_cache(maxsize=64)
def _second(whole: int) -> str:
    # Many exchanges begin in the same second, and this is half of what a line would cost.
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(whole))


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else int(seconds * 10_000) / 10


def _plain(line: Line) -> bytes:
    """Return a line for a person."""
    words = [line.time[11:], str(line.status or "-"), line.outcome, line.dialect]
    if line.model:
        words.append(line.model)
    if line.upstream:
        words.append(f"-> {line.upstream}/{line.upstream_model}")
    words.append(f"{line.total_ms:.0f} ms")
    if line.stream and line.first_ms is not None:
        words.append(f"(first {line.first_ms:.0f} ms)")
    if line.tokens is not UNSET:
        words.append(f"{line.tokens.input}+{line.tokens.output} tokens")
    if line.losses:
        words.append(f"{line.losses} losses")
    if line.tries > 1:
        words.append(f"{line.tries} tries")
    if line.problem is not UNSET:
        words.append(f"{line.problem}: {line.message}")
    return " ".join([*words, line.exchange]).replace("\n", " ").encode()


@contextmanager
def opened(config: Config, worker: int | None = None) -> Generator[Log]:
    """Keep the log that is configured open as long as the block runs; of several workers each says which it is."""
    said = config.server.log
    try:
        lines = Lines(None if said in {"stderr", "off"} else Path(said))
    except OSError as error:
        words = f'{said!r} cannot be written ({error.strerror}): name another file, "stderr" or "off"'
        raise ConfigError(config.source, "server.log", words) from None
    try:
        form, crashes = config.server.log_format, said == "off"
        log = Log(
            lines.add, form=form, secrets=config.secrets, crashes=crashes, worker=UNSET if worker is None else worker
        )
        with nullcontext() if crashes else notes.taken(log.noted):
            yield log
    finally:
        lines.close()
