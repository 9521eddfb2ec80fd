"""Log lines of what is no request: failures of the gateway itself, and what tools report to Python's logging."""

import logging
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from logging import LogRecord
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import Any

from dragoman.wire import json

_ROOT = "dragoman"
_LONGEST_TRACE = 64 << 10
Redact = Callable[[str], str]
"""Removes secrets from a text."""


class _Notes(QueueHandler):
    """Calls a function with each record; the base class reports a record that cannot be written."""

    def __init__(self, note: Callable[[LogRecord], None]) -> None:
        super().__init__(SimpleQueue())
        self.setLevel(logging.INFO)
        self._note = note

    def prepare(self, record: LogRecord) -> LogRecord:
        return record

    def enqueue(self, record: LogRecord) -> None:
        self._note(record)


@contextmanager
def python_logging(note: Callable[[LogRecord], None]) -> Generator[None]:
    """Call `note` with each record of Python's logging as long as the block runs."""
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


def render_crash(error: BaseException, fields: Mapping[str, str], redact: Redact, *, as_text: bool) -> bytes:
    """Return the line for a failure of the gateway, with its traceback."""
    lines = redact("".join(traceback.format_exception(error))[-_LONGEST_TRACE:])
    if as_text:
        return f"{fields['time']} crash {fields['exchange']} {fields['message']}\n{lines}".encode()
    return json.encode({**fields, "error": type(error).__name__, "traceback": lines})


def render_note(record: LogRecord, fields: Mapping[str, Any], redact: Redact, *, as_text: bool) -> bytes:
    """Return the line for what a tool or an external server reports; `fields` are its time, message and worker."""
    about = record.name.removeprefix("dragoman.")
    level = record.levelname.lower()
    trace = "".join(traceback.format_exception(record.exc_info[1])) if record.exc_info else ""
    lines = redact(trace[-_LONGEST_TRACE:])
    if as_text:
        line = f"{fields['time'][11:]} {level} {about}: {fields['message']}".replace("\n", " ")
        return (f"{line}\n{lines}" if lines else line).encode()
    worker = {"worker": fields["worker"]} if "worker" in fields else {}
    shown = {"time": fields["time"], "event": "note", "level": level, "about": about, "message": fields["message"]}
    return json.encode({**shown, **worker, **({"traceback": lines} if lines else {})})
