"""One log line for every exchange: the request, its upstream, its outcome and its cost.

What was said in a request or a reply is never logged, and whatever looks like a secret is redacted. Our own failures
have a line of their own with their traceback, also where the log is off. Lines are written by a thread. If the file is
moved away, the next lines go to a new file of its name. If the reader of standard error stalls, lines are dropped
rather than buffered without limit, and the next line that gets through says how many. What tools and external servers
report to Python's logging becomes lines too.
"""

import logging
import os
import traceback
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, nullcontext, suppress
from functools import lru_cache
from logging import LogRecord
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from time import gmtime, sleep, strftime, time
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from dragoman.config import Config, ConfigError
from dragoman.gateway.record import Record
from dragoman.gateway.redact import redact
from dragoman.server.metrics import QUIET
from dragoman.wire import json

_ROOT = "dragoman"


class _Notes(logging.Handler):
    """Hands records on."""

    def __init__(self, note: Callable[[logging.LogRecord], None]) -> None:
        super().__init__(logging.INFO)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._note(record)
        except Exception:  # noqa: BLE001  a record that cannot be told must not end what it tells of
            self.handleError(record)


@contextmanager
def taken(note: Callable[[logging.LogRecord], None]) -> Generator[None]:
    """Hand on what is told, as long as the block runs."""
    logger = logging.getLogger(_ROOT)
    before, handler = logger.level, _Notes(note)
    logger.addHandler(handler)
    if before == logging.NOTSET:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)


_GATHERED = 0.05
"""Seconds between two writes: waking a thread for each line would cost more than the line."""
_MOST_WAITING = 50_000
_LAST_WAIT = 2.0


class LogWriter:
    """A file that lines are added to, or standard error."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._file = os.dup(2) if path is None else _opened(path)
        self._waiting: SimpleQueue[bytes] = SimpleQueue()
        self._dropped = 0
        self._ending = False
        self._thread = Thread(target=self._write, name="dragoman log", daemon=True)
        self._thread.start()

    def add(self, line: bytes) -> None:
        """Write a line soon."""
        if self._waiting.qsize() > _MOST_WAITING:
            self._dropped += 1
        else:
            self._waiting.put(line + b"\n")

    def close(self) -> None:
        """Write what waits, for a while."""
        self._ending = True
        self._waiting.put(b"")
        self._thread.join(_LAST_WAIT)

    def _write(self) -> None:
        while not (self._ending and self._waiting.empty()):
            lines = [self._waiting.get()]
            if not self._ending:
                sleep(_GATHERED)
            with suppress(Empty):
                while True:
                    lines.append(self._waiting.get_nowait())
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                lines.append(b'{"event":"dropped","lines":%d}\n' % dropped)
            with suppress(OSError):  # a full disk or a reader that left: nobody could be told but by this log
                self._put(b"".join(lines))

    def _put(self, said: bytes) -> None:
        if self._path is not None and not _same(self._file, self._path):
            # The old file stays until there is a new one: its number would soon be that of somebody's connection.
            before, self._file = self._file, _opened(self._path)
            os.close(before)
        while said:
            said = said[os.write(self._file, said) :]


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)


def _same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


_LONGEST = 500
"""Letters of somebody else's words that go into a line."""
_MOST_READ = 4000
"""Letters that are looked at for these; secrets among them are longer than what stands in their place."""
_LONGEST_TRACE = 64 << 10


class LoggedTokens(Struct, frozen=True):
    """What was used."""

    input: int | None
    output: int | None
    cached: int | None
    reasoning: int | None


class LogLine(Struct, frozen=True):
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
    tokens: LoggedTokens | UnsetType = UNSET
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

    def _line(self, record: Record) -> LogLine:
        problem, usage = record.problem, record.usage
        model, asked = record.model, record.upstream_model
        if record.outcome != "answered":
            # A name that was answered to is no secret; any other is a client's word.
            model, asked = self._clean(model), self._clean(asked)
        return LogLine(
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
            UNSET if usage is None else LoggedTokens(usage.input, usage.output, usage.cached, usage.reasoning),
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


def _plain(line: LogLine) -> bytes:
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
        lines = LogWriter(None if said in {"stderr", "off"} else Path(said))
    except OSError as error:
        words = f'{said!r} cannot be written ({error.strerror}): name another file, "stderr" or "off"'
        raise ConfigError(config.source, "server.log", words) from None
    try:
        form, crashes = config.server.log_format, said == "off"
        log = Log(
            lines.add, form=form, secrets=config.secrets, crashes=crashes, worker=UNSET if worker is None else worker
        )
        with nullcontext() if crashes else taken(log.noted):
            yield log
    finally:
        lines.close()
