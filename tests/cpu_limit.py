"""Interrupts what would run without end. The limit is CPU time, which other load of the machine hardly changes."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any


class Hang(BaseException):
    """The limit is reached; not an Exception, so that nothing under test can catch it."""


@contextlib.contextmanager
def cpu_limit(seconds: float = 60.0) -> Iterator[Callable[[], None]]:
    """Raise `Hang` once this process has used `seconds` of CPU time; the yielded function starts the limit again.

    The default is for input on which a wrong implementation takes hours. It is no measure of speed.
    """

    def ring(*_: Any) -> None:
        raise Hang(f"more than {seconds:g} seconds of CPU time")

    def start() -> None:
        signal.setitimer(signal.ITIMER_PROF, seconds)

    before = signal.signal(signal.SIGPROF, ring)
    try:
        start()
        yield start
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
