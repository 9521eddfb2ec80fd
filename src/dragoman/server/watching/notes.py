"""What rooms below the server tell the log of Python, as lines of the gateway's own log.

Tools tell of calls, external servers of what becomes of them and of what they say on standard error. Whoever has set
up Python's log for `dragoman` gets it there as before.
"""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

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
