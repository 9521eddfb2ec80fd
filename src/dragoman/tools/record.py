"""The log record of one call: which tool, how it ended, how long it took, how much it returned. Never what was said."""

import logging
from time import perf_counter

from dragoman.core.parts import ToolCall
from dragoman.tools.handler import Handler

LOG = logging.getLogger("dragoman.tools")
_LONGEST_NAME = 128
_QUIET = frozenset({"succeeded", "failed", "unknown", "invalid", "cancelled"})
"""Ends that say nothing about the health of a tool."""


def _loggable(error: BaseException | None) -> BaseException | None:
    """Return an error whose words every log can write: some hold halves of characters, some raise another error."""
    try:
        str(error).encode()
    except UnicodeEncodeError:
        return RuntimeError(f"{type(error).__name__}: {str(error)!a}")
    except Exception:  # noqa: BLE001  it is a tool's own code
        return RuntimeError(type(error).__name__)
    return error


class Record:
    """A call from its beginning to its end."""

    def __init__(self, call: ToolCall, handler: Handler | None) -> None:
        self.begin()
        # The name of a tool that does not exist is a model's word, and may be anything.
        self._name = handler.name if handler is not None else ascii(call.name[:_LONGEST_NAME])

    def begin(self) -> None:
        """Take the time from now: what a call waited for its turn says nothing about its tool."""
        self._began = perf_counter()

    def end(self, outcome: str, size: int = 0, error: BaseException | None = None, *, repeated: bool = False) -> float:
        """Leave the record, with the traceback of what the tool raised, and return the milliseconds the call took."""
        milliseconds = round((perf_counter() - self._began) * 1000, 3)
        LOG.log(
            logging.INFO if outcome in _QUIET else logging.WARNING,
            "tool %s: %s in %.1f ms, %d bytes",
            self._name,
            outcome,
            milliseconds,
            size,
            exc_info=_loggable(error),
            extra={
                "tool": self._name,
                "outcome": outcome,
                "milliseconds": milliseconds,
                "bytes": size,
                "repeated": repeated,
            },
        )
        return milliseconds
