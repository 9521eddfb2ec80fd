"""Render log lines for exchanges, for internal errors, and for messages of tools in Python's logging."""

import logging
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from logging import LogRecord
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from dragoman.wire import json


class LoggedTokens(Struct, frozen=True):
    """The token counts of an exchange."""

    input: int | None
    output: int | None
    cached: int | None
    reasoning: int | None


class LoggedAttempt(Struct, frozen=True):
    """One call of an upstream."""

    upstream: str
    model: str
    ms: float
    outcome: str
    cause: str
    report: str


class LogLine(Struct, frozen=True):
    """The fields of a log line, in this order."""

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
    material_losses: int
    tokens: LoggedTokens | UnsetType = UNSET
    problem: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    worker: int | UnsetType = UNSET
    """The number of the worker; unset with a single process."""
    attempts: tuple[LoggedAttempt, ...] | UnsetType = UNSET
    """The calls of upstreams, unset if the first was answered."""


def render_text(line: LogLine) -> bytes:
    """Render a line in the human-readable format."""
    fields = [line.time[11:], str(line.status or "-"), line.outcome, line.dialect]
    if line.model:
        fields.append(line.model)
    if line.upstream:
        fields.append(f"-> {line.upstream}/{line.upstream_model}")
    fields.append(f"{line.total_ms:.0f} ms")
    if line.stream and line.first_ms is not None:
        fields.append(f"(first {line.first_ms:.0f} ms)")
    if line.tokens is not UNSET:
        fields.append(f"{line.tokens.input}+{line.tokens.output} tokens")
    if line.losses:
        fields.append(f"{line.losses} losses ({line.material_losses} material)")
    if line.tries > 1:
        fields.append(f"{line.tries} tries")
    if line.attempts is not UNSET:
        failed = [attempt for attempt in line.attempts if attempt.cause]
        fields += [f"({attempt.upstream}: {attempt.report or attempt.cause})" for attempt in failed]
    if line.problem is not UNSET:
        fields.append(f"{line.problem}: {line.message}")
    return " ".join([*fields, line.exchange]).replace("\n", " ").encode()


_ROOT = "dragoman"
_MAX_TRACE = 64 << 10
Redact = Callable[[str], str]
"""Removes secrets from a text."""


class _NoteHandler(QueueHandler):
    """Calls a function with each log record; the base class handles errors of the function."""

    def __init__(self, note: Callable[[LogRecord], None]) -> None:
        super().__init__(SimpleQueue())
        self.setLevel(logging.INFO)
        self._note = note

    def prepare(self, record: LogRecord) -> LogRecord:
        return record

    def enqueue(self, record: LogRecord) -> None:
        self._note(record)


@contextmanager
def capture_logging(note: Callable[[LogRecord], None]) -> Generator[None]:
    """Call `note` with each record of the `dragoman` logger while the block runs."""
    logger = logging.getLogger(_ROOT)
    previous_level, handler = logger.level, _NoteHandler(note)
    logger.addHandler(handler)
    if previous_level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(previous_level)
        logger.removeHandler(handler)


def render_crash(error: BaseException, fields: Mapping[str, str], redact: Redact, *, as_text: bool) -> bytes:
    """Render the line for an internal error, with its traceback."""
    lines = redact("".join(traceback.format_exception(error))[-_MAX_TRACE:])
    if as_text:
        return f"{fields['time']} crash {fields['exchange']} {fields['message']}\n{lines}".encode()
    return json.encode({**fields, "error": type(error).__name__, "traceback": lines})


def render_note(record: LogRecord, fields: Mapping[str, Any], redact: Redact, *, as_text: bool) -> bytes:
    """Render the line for a message of a tool or external server; `fields` are its time, message and worker."""
    about = record.name.removeprefix("dragoman.")
    level = record.levelname.lower()
    trace = "".join(traceback.format_exception(record.exc_info[1])) if record.exc_info else ""
    lines = redact(trace[-_MAX_TRACE:])
    if as_text:
        line = f"{fields['time'][11:]} {level} {about}: {fields['message']}".replace("\n", " ")
        return (f"{line}\n{lines}" if lines else line).encode()
    worker = {"worker": fields["worker"]} if "worker" in fields else {}
    shown = {"time": fields["time"], "event": "note", "level": level, "about": about, "message": fields["message"]}
    return json.encode({**shown, **worker, **({"traceback": lines} if lines else {})})
