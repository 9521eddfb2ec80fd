"""Write lines without holding up the loop: a thread of their own takes what has come in a short while.

A file may be moved away while we write: the next lines go to a new one of its name. If whoever reads us stands still
lines are dropped rather than kept without end, and the next line that gets through says how many.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

_GATHERED = 0.05
"""Seconds between two writes: waking a thread for each line would cost more than the line."""
_MOST_WAITING = 50_000
_LAST_WAIT = 2.0


class Lines:
    """A file that lines are added to, or standard error."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._file = os.dup(2) if path is None else _opened(path)
        self._waiting: SimpleQueue[bytes] = SimpleQueue()
        self._dropped = 0
        self._ending = False
        self._thread = Thread(target=self._write, name="dragoman log", daemon=True)
        self._thread.start()

    def add(self, line: bytes) -> None:
        """Write a line soon."""
        if self._waiting.qsize() > _MOST_WAITING:
            self._dropped += 1
        else:
            self._waiting.put(line + b"\n")

    def close(self) -> None:
        """Write what waits, for a while."""
        self._ending = True
        self._waiting.put(b"")
        self._thread.join(_LAST_WAIT)

    def _write(self) -> None:
        while not (self._ending and self._waiting.empty()):
            lines = [self._waiting.get()]
            if not self._ending:
                time.sleep(_GATHERED)
            with suppress(Empty):
                while True:
                    lines.append(self._waiting.get_nowait())
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                lines.append(b'{"event":"dropped","lines":%d}\n' % dropped)
            with suppress(OSError):  # a full disk or a reader that left: nobody could be told but by this log
                self._put(b"".join(lines))

    def _put(self, said: bytes) -> None:
        if self._path is not None and not _same(self._file, self._path):
            # The old file stays until there is a new one: its number would soon be that of somebody's connection.
            before, self._file = self._file, _opened(self._path)
            os.close(before)
        while said:
            said = said[os.write(self._file, said) :]


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)


def _same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
