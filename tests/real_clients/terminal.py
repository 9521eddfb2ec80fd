"""A terminal for an interactive program: keys go in, and the screen that a person would see comes out.

The program runs on a pseudo-terminal and pyte keeps its screen, so nothing need be installed besides the lock. Every step
waits for what the screen shows; a step that waits in vain fails with the screen.
"""

import codecs
import contextlib
import fcntl
import os
import pty
import re
import secrets
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

import pytest

pyte = pytest.importorskip("pyte", reason="the terminal emulator of the lock, pyte, is not installed")

ROWS, COLUMNS = 60, 120
PATIENCE = 60.0
"""Seconds that a step waits for the screen: far more than any takes on an idle machine."""
_KEYS = {"enter": "\r", "down": "\x1b[B", "ctrl-o": "\x0f"}
_BETWEEN_KEYS = 0.02
"""Seconds between two keys: programs take what comes faster for pasted text, in which Enter is a line break."""
_STILL = 0.5
"""Seconds without output after which the screen is complete."""
_OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)
"""Makes the terminal the controlling one, which only a process of the new session can do, and becomes the program."""
_UNSUPPORTED = re.compile(
    r"\x1b[P_^X].*?\x1b\\"  # strings for the device
    r"|\x1b\[[<=>][^@-~]*[@-~]"  # other private markers, as of the keyboard protocol
    r"|\x1b\[\??[\d;]*[ -/:][^@-~]*[@-~]"  # subparameters and intermediate characters
    r"|\x1b\[\?[\d;]*[^hl\d;]",  # private queries
    re.DOTALL,
)
"""Sequences that pyte does not know, whose characters it would show."""
_UNFINISHED = re.compile(r"\x1b(?:\[[^@-~]*|[P_^X](?:(?!\x1b\\).)*)?\Z", re.DOTALL)
_SELECTED = re.compile("^[\\s│]*[\u276f\u203a\u25cf] +[\u2714\\d. ]*(.*)$", re.MULTILINE)
"""The line of a list that Enter would choose, by the arrow or dot of each program, without its number or tick."""


class _Screen(pyte.Screen):
    """A screen that scrolls on request, and answers queries about the terminal."""

    def __init__(self, reply: Callable[[str], None]) -> None:
        super().__init__(COLUMNS, ROWS)
        self.write_process_input = reply

    def scroll_up(self, lines: int = 1) -> None:
        self._scroll(self.index, self.margins.bottom if self.margins else ROWS - 1, lines)

    def scroll_down(self, lines: int = 1) -> None:
        self._scroll(self.reverse_index, self.margins.top if self.margins else 0, lines)

    def _scroll(self, step: Callable[[], None], line: int, lines: int) -> None:
        before, self.cursor.y = self.cursor.y, line
        for _ in range(lines or 1):
            step()
        self.cursor.y = before


class _Stream(pyte.Stream):
    csi = pyte.Stream.csi | {"S": "scroll_up", "T": "scroll_down"}


class Terminal:
    """A program at its terminal."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self._process = process
        self._master = master
        self._stream = _Stream(screen := _Screen(self._send))
        self._screen = screen
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        """The beginning of a sequence whose end has not arrived."""

    @property
    def text(self) -> str:
        """The screen, without empty lines."""
        return "\n".join(line.rstrip() for line in self._screen.display if line.strip())

    @property
    def selected(self) -> list[str]:
        """The selected lines of the lists on the screen."""
        return _SELECTED.findall(self.text)

    def type(self, text: str) -> None:
        """Type a line: the text and, when the screen shows it and what it may be completed to, Enter."""
        self.wait_until_still()
        for key in text:
            self._send(key)
            time.sleep(_BETWEEN_KEYS)
        self.wait_for(text)
        self.wait_until_still()
        self.press("enter")

    def press(self, key: str) -> None:
        """Press a key."""
        self._send(_KEYS[key])

    def choose(self, label: str) -> None:
        """Move the selection of a list to the line that begins with a label, and press Enter."""
        self.wait_for(label)
        self.wait_until_still()
        for _ in range(10):
            before = self.selected
            if any(line.startswith(label) for line in before):
                return self.press("enter")
            self.press("down")
            self._wait(lambda before=before: self.selected != before, "another selected line")
        raise AssertionError(f"{label!r} cannot be selected; the screen:\n{self.text}")

    def wait_for(self, *texts: str) -> None:
        """Wait until the screen shows all of the texts, wherever lines are broken between their words."""
        self._wait(lambda: all(_words(text) in _words(self.text) for text in texts), " and ".join(texts))

    def wait_until_still(self) -> None:
        """Wait until the program has drawn what it draws at once; keys may be lost before that."""
        deadline = time.monotonic() + 20 * _STILL
        while self._read(_STILL) and time.monotonic() < deadline:
            pass

    def wait_for_end(self) -> int:
        """Wait until the program has ended; return its exit status."""
        self._wait(lambda: self._process.poll() is not None, "the end of the program")
        return self._process.returncode

    def _wait(self, is_shown: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_shown():
            is_over = self._process.poll() is not None or time.monotonic() > deadline
            if not self._read() and is_over and not is_shown():
                status = self._process.returncode
                reason = f"{PATIENCE} s are over" if status is None else f"it ended with status {status}"
                raise AssertionError(f"The screen does not show: {what}; {reason}. The screen:\n{self.text}")

    def _read(self, within: float = 0.1) -> bool:
        """Take what the program writes next; return whether it wrote anything."""
        if not select.select([self._master], [], [], within)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # on Linux, the end: no process has the terminal any more
            return False
        text = self._pending + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text)
        end = unfinished.start() if unfinished else len(text)
        self._pending = text[end:]
        self._stream.feed(_UNSUPPORTED.sub("", text[:end]))
        return bool(data)

    def _send(self, text: str) -> None:
        os.write(self._master, text.encode())


def _words(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


@contextlib.contextmanager
def terminal(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> Generator[Terminal]:
    """Run a program at a terminal; in the end it is killed, with all that it left running."""
    mark = f"DRAGOMAN_TEST_TERMINAL={secrets.token_hex(8)}"
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    with subprocess.Popen(  # noqa: S603  programs that the lock names
        [sys.executable, "-c", _OWN_TERMINAL, *map(str, command)],
        cwd=folder,
        env=dict([mark.split("="), *environment.items()]),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    ) as process:
        os.close(slave)
        try:
            yield Terminal(process, master)
        finally:
            process.kill()
            _kill_descendants(mark)
            os.close(master)


def _kill_descendants(mark: str) -> None:
    """Kill what has our variable in its environment: Codex leaves a server, which has no parent in the end."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # not ours, or gone
            if mark.encode() in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)
