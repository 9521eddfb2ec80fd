"""What Ctrl-C does: the first ends the turn, the second the program.

Rules: what the user writes in between takes the first one back. Where a line is being read, an interrupt is an
exception there; while a turn runs, it only tells the turn.
"""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

_ENDED = 128
"""What a shell adds to the number of the signal that ended a program."""


class Interrupts:
    """Hears signals in the main thread."""

    def __init__(self) -> None:
        self.armed = False
        """The next one ends the program."""
        self._stop: Callable[[], None] | None = None

    def _interrupted(self, _number: int, _frame: FrameType | None) -> None:
        if self._stop is None or self.armed:
            raise KeyboardInterrupt
        self.armed = True
        self._stop()

    @contextmanager
    def heard(self) -> Generator[None]:
        """Hear signals as long as the block runs; those that end a program end this one in order."""
        ends = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
        before = {number: signal.signal(number, _end) for number in ends}
        before[signal.SIGINT] = signal.signal(signal.SIGINT, self._interrupted)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def stopping(self, stop: Callable[[], None] | None) -> Generator[None]:
        """Call `stop` at the first interrupt while the block runs; with None it is an exception."""
        before, self._stop = self._stop, stop
        try:
            yield
        finally:
            self._stop = before


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(_ENDED + number)
