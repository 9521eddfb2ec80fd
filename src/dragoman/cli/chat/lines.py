"""What the user writes: lines that are edited on a terminal, or lines that come through a pipe."""

import contextlib
import sys
from typing import TYPE_CHECKING, Protocol

from dragoman.cli.chat.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Callable

_GOES_ON = "\\"


class Lines(Protocol):
    """Where lines come from."""

    def line(self) -> str | None:
        """Return the next thing the user says; None if there is no more."""
        ...

    def word(self, question: str) -> str:
        """Return the answer to a question; "" if there is none."""
        ...


class Keyboard:
    """A person at a terminal."""

    def __init__(self, screen: Screen) -> None:
        self._forget: Callable[[], None] = _nothing
        invisible = ("", "")
        with contextlib.suppress(ImportError):
            import readline  # noqa: PLC0415  not on every system; lines are edited and remembered once it is loaded

            # What stands between these takes no room on the line.
            invisible = ("\x01", "\x02")
            self._forget = lambda: readline.remove_history_item(readline.get_current_history_length() - 1)
        sign = "\u203a " if (sys.stdout.encoding or "").lower().replace("-", "") == "utf8" else "> "
        before, _, after = screen.styled(sign, "bold", "cyan").partition(sign)
        self._prompt = sign
        if before:
            self._prompt = f"{invisible[0]}{before}{invisible[1]}{sign}{invisible[0]}{after}{invisible[1]}"

    def line(self) -> str | None:
        """Ask for a line; one that ends with a backslash goes on."""
        said: list[str] = []
        with contextlib.suppress(EOFError):
            while True:
                line = input(self._prompt if not said else "… ")
                said.append(line.removesuffix(_GOES_ON))
                if not line.endswith(_GOES_ON):
                    return "\n".join(said)
        sys.stdout.write("\n")
        return None

    def word(self, question: str) -> str:
        """Ask a question; its answer is nothing to remember."""
        forget_typed()
        try:
            answer = input(question)
        except EOFError:
            sys.stdout.write("\n")
            return ""
        if answer:
            with contextlib.suppress(ValueError):
                self._forget()
        return answer


class Pipe:
    """Whatever writes to standard input."""

    def line(self) -> str | None:
        """Return the next line."""
        line = sys.stdin.readline()
        return line.removesuffix("\n") if line else None

    def word(self, question: str) -> str:
        """Ask on standard error: answers alone go to standard output."""
        forget_typed()
        sys.stderr.write(question)
        sys.stderr.flush()
        return sys.stdin.readline().strip()


def forget_typed() -> None:
    """Forget what was typed before a question was seen: it is no answer to it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios  # noqa: PLC0415  not on every system

        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _nothing() -> None:
    pass
