"""HTML to Markdown, in processes that can be ended.

A parser may hang in a place where Python cannot stop it, or take all the memory there is. So it runs apart: a process
is used again and again, ended when it takes too long, and replaced when it has died.
"""

import asyncio
import importlib.util
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import IO, TypeVar, cast

from msgspec import Struct

from dragoman.tools.web.converting import LONGEST_TEXT, LONGEST_TITLE, READY, REPLY, REQUEST

T = TypeVar("T")
SECONDS = 3.0
LONGEST_INPUT = 2 << 20
_STARTING = 20.0
_AT_ONCE = 2
_WIDEST = 4
"""Bytes of a character."""
_MOST_PAGES = 200
"""A process is replaced after so many: what a page left behind in it does not stay for ever."""
_SCRIPT = Path(__file__).with_name("converting.py")
_MISSING = "pages in HTML cannot be read here: install dragoman[web], which brings html-to-markdown"


class NotConvertedError(Exception):
    """A page could not be turned into Markdown; the words say why."""


class Markdown(Struct, frozen=True):
    """A page as it can be read."""

    text: str
    title: str


class Converter:
    """Turns HTML into Markdown, some pages at once."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._idle: list[_Process] = []
        self._threads = ThreadPoolExecutor(_AT_ONCE, "markdown")
        self.close = weakref.finalize(self, _end_all, self._idle)
        """Ends what is idle. It also happens when nobody holds the converter any more."""

    async def markdown(self, html: str, address: str) -> Markdown:
        """Convert a page that stands at an address; raises `NotConvertedError`."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._converted, html, address)

    async def apart(self, work: Callable[[], T]) -> T:
        """Do other work on pages in the same threads: however much there is of it, nobody else's waits for it."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _converted(self, html: str, address: str) -> Markdown:
        request = [address.encode("utf-8", "replace"), html.encode("utf-8", "replace")[:LONGEST_INPUT]]
        process = self._taken()
        was_used = process.pages > 0
        answer = process.ask(request, self._seconds)
        if answer is None and was_used and not process.overdue:
            # It may have died of something else, and before: a fresh one decides.
            process = _Process()
            answer = process.ask(request, self._seconds)
        if answer is None:
            raise NotConvertedError(
                f"it could not be turned into Markdown within {self._seconds:g} seconds"
                if process.overdue
                else "turning it into Markdown took too much memory or failed"
            )
        if process.pages < _MOST_PAGES:
            self._idle.append(process)
        else:
            process.end()
        good, title, text = answer
        if not good:
            raise NotConvertedError("it could not be read as HTML")
        return Markdown(text, title)

    def _taken(self) -> "_Process":
        while True:
            try:
                process = self._idle.pop()
            except IndexError:
                return _Process()
            if process.is_alive:
                return process
            process.end()


def _end_all(idle: "list[_Process]") -> None:
    while idle:
        idle.pop().end()


class _Process:
    """One process, and what it is doing."""

    def __init__(self) -> None:
        self.pages = 0
        self.overdue = False
        # Nothing of ours is in its reach by way of the environment: keys stand there.
        kept = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603  our own script, with our own Python
            [sys.executable, "-I", "-S", str(_SCRIPT), _library(), str(_SCRIPT.parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=kept,
            cwd=_SCRIPT.anchor,
            start_new_session=True,
        )
        self._source = cast("IO[bytes]", self._process.stdout)
        self._sink = cast("IO[bytes]", self._process.stdin)
        if self._within(_STARTING, lambda: self._exactly(len(READY))) is None:
            raise NotConvertedError(f"its reader cannot be started: {_MISSING}")

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: list[bytes], seconds: float) -> tuple[bool, str, str] | None:
        """Convert one page; None if the process is dead now."""
        self.pages += 1
        answer = self._within(seconds, lambda: self._exchange(request, seconds))
        if answer is None:
            self.end()
        return answer

    def end(self) -> None:
        """End the process, and wait until it has."""
        self._process.kill()
        for pipe in (self._sink, self._source):
            with suppress(OSError):
                pipe.close()
        self._process.wait()

    def _exchange(self, request: list[bytes], seconds: float) -> tuple[bool, str, str]:
        self._sink.write(REQUEST.pack(ceil(seconds) + 1, *map(len, request)))
        for piece in request:
            self._sink.write(piece)
        self._sink.flush()
        good, title, text = REPLY.unpack(self._exactly(REPLY.size))
        if title > LONGEST_TITLE * _WIDEST or text > LONGEST_TEXT * _WIDEST:
            raise EOFError
        return good, self._exactly(title).decode(), self._exactly(text).decode()

    def _exactly(self, size: int) -> bytes:
        data = self._source.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def _within(self, seconds: float, work: Callable[[], T]) -> T | None:
        """Do what waits for the process, which is ended when its time is over; None if it is dead."""

        def end() -> None:
            self.overdue = True
            self._process.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            done = work()
        except (OSError, EOFError, ValueError):
            done = None
        timer.cancel()
        timer.join()  # or it might end the process while the next page is in it
        return None if self.overdue else done


def _library() -> str:
    """Return the directory that html-to-markdown lies in."""
    found = importlib.util.find_spec("html_to_markdown")
    if found is None or found.origin is None:
        raise NotConvertedError(_MISSING)
    return str(Path(found.origin).parents[1])
