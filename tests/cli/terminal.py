"""The command on a pseudo terminal, with methods to type and to read its output."""

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import compiled

# The terminal must be the process's own, or Ctrl-C would be a letter.
PROGRAM = (
    "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from dragoman.cli import main; sys.exit(main())"
)
_KEYS = ("GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_CLOUD_PROJECT", "DRAGOMAN_CONFIG", "NO_COLOR")
PROMPT = "\u203a "
CTRL_C, CTRL_D = "\x03", "\x04"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def environment(directory: Path, **more: str) -> dict[str, str]:
    """What a process finds: no keys, and a home below the test's directory."""
    outside = {name: value for name, value in os.environ.items() if name not in _KEYS}
    own = {"TMPDIR": str(directory), "XDG_STATE_HOME": str(directory), "TERM": "xterm", "PYTHONUTF8": "1"}
    return {**outside, **compiled.VARIABLES, **own, **more}


_SETTLED = 10
"""Looks in a row at which the program must be found waiting."""


class Terminal:
    """What a person sees and types."""

    def __init__(self, master: int, process: "subprocess.Popen[bytes]") -> None:
        self._master = master
        self.process = process
        self._bytes = b""
        self._read = 0
        """How much of the output the steps have consumed."""

    @property
    def raw(self) -> str:
        """Everything that was written."""
        return self._bytes.decode("utf-8", "ignore")

    @property
    def seen(self) -> str:
        """Everything on the screen, without codes."""
        return _CODES.sub("", self.raw).replace("\r", "")

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C once the program waits for it.

        Between showing a prompt and waiting for keys, Python's readline notes an interrupt and waits all the same. No
        hand is that fast, but a test is.
        """
        end, quiet = time.monotonic() + 40.0, 0
        status = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/stat")
        while quiet < _SETTLED and time.monotonic() < end:
            quiet = quiet + 1 if status.read_text().rpartition(")")[2].split()[0] == "S" else 0
            time.sleep(0.01)
        self.type(CTRL_C)

    def expect(self, words: str, seconds: float = 40.0) -> str:
        """Read until the given text appears; return the output since the last read, up to its end."""
        end = time.monotonic() + seconds
        while (at := self.seen.find(words, self._read)) < 0:
            assert time.monotonic() < end, f"{words!r} did not come after {self.seen[self._read :]!r}"
            assert self._more(end), f"{words!r} did not come before the end, after {self.seen[self._read :]!r}"
        before = self.seen[self._read : at]
        self._read = at + len(words)
        return before

    def prompt(self) -> str:
        """Read on until the user may speak; return what came before."""
        return self.expect(PROMPT)

    def _more(self, end: float) -> bool:
        if not select.select([self._master], [], [], max(end - time.monotonic(), 0))[0]:
            return True
        with contextlib.suppress(OSError):  # the other end is closed
            if piece := os.read(self._master, 65536):
                self._bytes += piece
                return True
        return False

    def ended(self, seconds: float = 40.0) -> int:
        """Read to the end; return the exit code."""
        end = time.monotonic() + seconds
        while self._more(end):
            assert time.monotonic() < end, self.seen
        return self.process.wait(seconds)


@contextlib.contextmanager
def terminal(directory: Path, *arguments: str, **more: str) -> Generator[Terminal]:
    """Run the command on a terminal of its own."""
    master, slave = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, *arguments]
    process = subprocess.Popen(  # noqa: S603
        command,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        cwd=directory,
        env=environment(directory, **more),
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)
