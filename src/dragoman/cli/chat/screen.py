"""Where things are written, and how they look.

Rules: on a terminal everything stands in its order on standard output, in colours unless NO_COLOR says no. Elsewhere
answers alone go to standard output, the model's as it wrote them and what a command of the user's lists, and all the
rest to standard error, without an escape code. What others wrote never steers the terminal.
"""

import os
import re
from typing import TextIO

_STYLES = {"dim": "2", "bold": "1", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move, colour or ring, and those that turn the direction of writing. Tab and newline stay."""


def harmless(text: str) -> str:
    """Return a text that does nothing to a terminal but stand there."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n"))


class Screen:
    """Two streams; `pretty` if they are one terminal, with a person before it."""

    def __init__(self, out: TextIO, err: TextIO, *, pretty: bool) -> None:
        self.pretty = pretty
        self._out = out
        self._beside = out if pretty else err
        self._coloured = pretty and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._shown = out.isatty()
        self._begun = False
        """Something stands on the line that answers are written to."""

    @property
    def width(self) -> int:
        """How many characters a short line has."""
        try:
            return max(os.get_terminal_size(self._beside.fileno()).columns, 40)
        except (OSError, ValueError):
            return 160

    def styled(self, text: str, *styles: str) -> str:
        """Return a text in a style, where there are styles."""
        if not self._coloured or not text:
            return text
        return f"\x1b[{';'.join(_STYLES[style] for style in styles)}m{text}\x1b[0m"

    def answer(self, text: str) -> None:
        """Write a piece of what the model says."""
        if text:
            self._out.write(harmless(text) if self._shown else text)
            self._out.flush()
            self._begun = not text.endswith("\n")

    def thought(self, text: str) -> None:
        """Write a piece of what the model thinks, for a person."""
        if text and self.pretty:
            self._out.write(self.styled(harmless(text), "dim"))
            self._out.flush()
            self._begun = not text.endswith("\n")

    def end_line(self) -> None:
        """Let whatever comes next stand on a line of its own."""
        if self._begun:
            self._out.write("\n")
            self._out.flush()
            self._begun = False

    def disturb(self) -> None:
        """Know that the terminal itself has written something: `^C`."""
        self._begun = self._begun or self.pretty

    def reply(self, text: str) -> None:
        """Show what a command of the user's asks for."""
        self.end_line()
        self._out.write(f"{harmless(text)}\n")
        self._out.flush()

    def note(self, text: str, *styles: str) -> None:
        """Tell what happens beside the answer."""
        self.end_line()
        self._beside.write(f"{self.styled(harmless(text), *(styles or ('dim',)))}\n")
        self._beside.flush()
