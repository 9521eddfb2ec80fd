"""How far a running tool is: said by the tool, heard by whoever runs it.

Rules: nobody has to listen, and a tool that says nothing is as good. A listener is part of the context, like the call
itself, so that it hears of its own calls only; what it raises does not reach the tool.
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
    """What a tool said of itself while it ran."""

    call: ToolCall
    done: float
    """How far it is; more each time."""
    total: float | None = None
    """How far it will go, if it knows."""
    message: str = ""


Listener = Callable[[Progress], None]
Report = Callable[[float, float | None, str], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("dragoman_tool_progress", default=None)


@contextmanager
def progress_to(listener: Listener) -> Generator[None]:
    """Let a listener hear of the progress of all calls that are run within; it is called where the tool runs."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def reporter() -> Report | None:
    """Return what to say progress to, for the call that this code is run for; None where nobody listens.

    It may be called later and elsewhere: it knows its call.
    """
    listener, current = _LISTENER.get(), invocation()
    if listener is None or current is None:
        return None

    def report(done: float, total: float | None = None, message: str = "") -> None:
        heard = attempt(listener, Progress(current.call, done, total, message))
        if heard.error is not None:  # whoever listens must not break the tool
            _LOG.error("a listener to progress failed", exc_info=heard.error)

    return report
