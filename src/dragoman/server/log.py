"""One log line for every exchange: the request, its upstream, its outcome and its cost.

The contents of requests and replies are never logged, and text that looks like a secret is redacted. Internal errors
get a separate line with their traceback, even if the log is off. A thread writes the lines. If the file is moved away
(log rotation), the next lines go to a new file of the same name. If the reader of standard error stalls, lines are
dropped rather than buffered without limit, and the next line that can be written has the number of dropped lines.
Messages that tools and external servers send to Python's logging become lines too.
"""

import os
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, nullcontext, suppress
from functools import lru_cache, partial
from logging import LogRecord
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from time import gmtime, sleep, strftime, time
from typing import Any

from msgspec import UNSET, UnsetType

from dragoman.config import Config, ConfigError
from dragoman.gateway.record import Record
from dragoman.gateway.redact import redact
from dragoman.server.log_lines import (
    LoggedAttempt,
    LoggedTokens,
    LogLine,
    capture_logging,
    render_crash,
    render_note,
    render_text,
)
from dragoman.server.metrics import QUIET_OPERATIONS
from dragoman.wire import json

_BATCH_SECONDS = 0.05
"""Seconds between writes: waking the thread for each line would cost more than the line itself."""
_MAX_QUEUED = 50_000
_CLOSE_SECONDS = 2.0


class LogWriter:
    """Appends lines to a file or to standard error, in a thread."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._file = os.dup(2) if path is None else _open_file(path)
        self._queue: SimpleQueue[bytes] = SimpleQueue()
        self._dropped = 0
        self._is_closing = False
        self._thread = Thread(target=self._write_lines, name="dragoman log", daemon=True)
        self._thread.start()

    def add(self, line: bytes) -> None:
        """Queue a line for writing; drops it if the queue is full."""
        if self._queue.qsize() > _MAX_QUEUED:
            self._dropped += 1
        else:
            self._queue.put(line + b"\n")

    def close(self) -> None:
        """Write the queued lines, with a timeout."""
        self._is_closing = True
        self._queue.put(b"")
        self._thread.join(_CLOSE_SECONDS)

    def _write_lines(self) -> None:
        while not (self._is_closing and self._queue.empty()):
            lines = [self._queue.get()]
            if not self._is_closing:
                sleep(_BATCH_SECONDS)
            with suppress(Empty):
                while True:
                    lines.append(self._queue.get_nowait())
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                lines.append(b'{"event":"dropped","lines":%d}\n' % dropped)
            with suppress(OSError):  # a full disk or a closed pipe: there is no other place to report it
                self._append(b"".join(lines))

    def _append(self, data: bytes) -> None:
        if self._path is not None and not _is_same_file(self._file, self._path):
            # The old file is closed after the new one is open: else its descriptor could be reused for a connection.
            old_file, self._file = self._file, _open_file(self._path)
            os.close(old_file)
        while data:
            data = data[os.write(self._file, data) :]


def _open_file(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)


def _is_same_file(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


_MAX_TEXT = 500
"""Maximum number of characters of a client's or upstream's text in a line."""
_MAX_SEARCHED = 4000
"""Maximum number of characters that are searched for secrets; more than `_MAX_TEXT`, as redacting shortens the text."""


class Log:
    """Writes a log line for every exchange, internal error and message of a tool."""

    def __init__(
        self,
        add: Callable[[bytes], None],
        *,
        form: str = "json",
        secrets: Collection[str] = (),
        crashes_only: bool = False,
        worker: int | UnsetType = UNSET,
    ) -> None:
        self._add = add
        self._redact = partial(redact, known=secrets)
        self._is_text = form == "text"
        self._crashes_only = crashes_only
        self._worker = worker

    def on_end(self, record: Record) -> None:
        """Write the line for a completed exchange."""
        if record.crash is not None:
            self.log_crash(record.crash, record.id)
        if self._crashes_only or (record.operation in QUIET_OPERATIONS and record.problem is None):
            return
        line = self._build_line(record)
        self._add(render_text(line) if self._is_text else json.encode(line))

    def log_crash(self, error: BaseException, exchange: str = "", message: str = "") -> None:
        """Write a line for an internal error of the gateway."""
        fields = {"time": _format_time(time()), "event": "crash", "exchange": exchange, "message": message}
        self._add(render_crash(error, fields, self._redact, as_text=self._is_text))

    def log_note(self, record: LogRecord) -> None:
        """Write a line for a message that a tool or an external server logged."""
        fields: dict[str, Any] = {"time": _format_time(record.created), "message": self._sanitize(record.getMessage())}
        if self._worker is not UNSET:
            fields["worker"] = self._worker
        self._add(render_note(record, fields, self._redact, as_text=self._is_text))

    def on_loop_error(self, _: object, context: dict[str, Any]) -> None:
        """Write a line for an error that the event loop reports."""
        error = context.get("exception")
        message = self._sanitize(str(context.get("message", "")))
        self.log_crash(error if isinstance(error, BaseException) else RuntimeError(message), message=message)

    def _build_line(self, record: Record) -> LogLine:
        problem, usage, losses = record.problem, record.usage, record.all_losses
        model, upstream_model = record.model, record.upstream_model
        if record.outcome != "answered":
            # A model that answered has a real name; any other name is untrusted text from the client.
            model, upstream_model = self._sanitize(model), self._sanitize(upstream_model)
        return LogLine(
            _format_time(record.began),
            record.id,
            record.owner,
            record.operation,
            record.dialect,
            model,
            record.upstream,
            upstream_model,
            record.status,
            record.outcome,
            record.tries,
            record.stream,
            None if record.first_token_seconds is None else int(record.first_token_seconds * 10_000) / 10,
            None if record.seconds is None else int(record.seconds * 10_000) / 10,
            record.finish,
            len(losses),
            sum([loss.grade == "material" for loss in losses]),
            UNSET if usage is None else LoggedTokens(usage.input, usage.output, usage.cached, usage.reasoning),
            UNSET if problem is None else problem.kind,
            UNSET if problem is None else self._sanitize(problem.message),
            self._worker,
            UNSET if record.outcome == "answered" and len(record.attempts) < 2 else self._list_attempts(record),
        )

    def _list_attempts(self, record: Record) -> tuple[LoggedAttempt, ...] | UnsetType:
        return (
            tuple(
                LoggedAttempt(
                    attempt.upstream,
                    self._sanitize(attempt.model),
                    int(attempt.seconds * 10_000) / 10,
                    attempt.outcome,
                    attempt.cause,
                    self._sanitize(attempt.report),
                )
                for attempt in record.attempts
            )
            or UNSET
        )

    def _sanitize(self, text: str) -> str:
        # The text is cut before it is searched: a client may send a model name of a million characters.
        return self._redact(text[:_MAX_SEARCHED])[:_MAX_TEXT]


def _format_time(seconds: float) -> str:
    whole = int(seconds)
    return f"{_format_second(whole)}.{int((seconds - whole) * 1000):03}Z"


@lru_cache(maxsize=64)
def _format_second(whole: int) -> str:
    # Cached because many exchanges begin in the same second, and this is half the cost of a line.
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(whole))


@contextmanager
def open_log(config: Config, worker: int | None = None) -> Generator[Log]:
    """Open the configured log while the block runs; with several workers, each line has the `worker` number."""
    target = config.server.log
    try:
        lines = LogWriter(None if target in {"stderr", "off"} else Path(target))
    except OSError as error:
        message = f'cannot write to {target!r} ({error.strerror}); use another file, "stderr" or "off"'
        raise ConfigError(config.source, "server.log", message) from None
    try:
        form, crashes_only = config.server.log_format, target == "off"
        if form == "auto":
            form = "text" if target == "stderr" and os.isatty(2) else "json"
        log = Log(
            lines.add,
            form=form,
            secrets=config.secrets,
            crashes_only=crashes_only,
            worker=UNSET if worker is None else worker,
        )
        with nullcontext() if crashes_only else capture_logging(log.log_note):
            yield log
    finally:
        lines.close()
