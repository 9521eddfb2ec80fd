"""Progress reports of running tools to a listener.

Both sides are optional: a tool need not report and a caller need not listen. The listener is a context variable, as the
current call is, so it receives only the progress of calls that started in its context. Its exceptions are logged and do
not reach the tool.
"""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct

from dragoman.core.parts import ToolCall
from dragoman.guard import attempt
from dragoman.tools.handler import invocation

_LOG = logging.getLogger("dragoman.tools")


class Progress(Struct, frozen=True):
    """One progress report of a running call."""

    call: ToolCall
    done: float
    """The work done so far; it grows with each report."""
    total: float | None = None
    """The value of `done` at the end, if known."""
    message: str = ""


Listener = Callable[[Progress], None]
Report = Callable[[float, float | None, str], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("dragoman_tool_progress", default=None)


@contextmanager
def progress_to(listener: Listener) -> Generator[None]:
    """Send the progress of all calls that run in this block to a listener, in the task or thread of the tool."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def reporter() -> Report | None:
    """Return a function that reports progress of the current call; None if no listener is set or outside a tool.

    The function may be called later and from another thread or task: it holds its call.
    """
    listener, current = _LISTENER.get(), invocation()
    if listener is None or current is None:
        return None

    def report(done: float, total: float | None = None, message: str = "") -> None:
        notified = attempt(listener, Progress(current.call, done, total, message))
        if notified.error is not None:  # a failing listener must not break the tool
            _LOG.error("the progress listener failed", exc_info=notified.error)

    return report
