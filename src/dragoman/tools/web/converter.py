"""Convert HTML to Markdown in worker processes that can be killed.

A parser may hang in native code that Python cannot interrupt, or use up the memory. So it runs in a separate process,
which is reused for many pages, killed on a timeout, and replaced when it has died.
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

from dragoman.tools.web.converter_worker import MAX_TEXT, MAX_TITLE, READY, REPLY, REQUEST

T = TypeVar("T")
SECONDS = 3.0
MAX_INPUT = 2 << 20
_START_SECONDS = 20.0
_MAX_THREADS = 2
_MAX_BYTES_PER_CHARACTER = 4
"""Maximum bytes of a character in UTF-8."""
_MAX_PAGES = 200
"""A process is replaced after this many pages, so that leaked memory and leftover state do not accumulate."""
_SCRIPT = Path(__file__).with_name("converter_worker.py")
_MISSING = "pages in HTML cannot be read here: install dragoman[web], which brings html-to-markdown"


class ConversionError(Exception):
    """A page could not be converted to Markdown; the message says why."""


class Markdown(Struct, frozen=True):
    """A converted page."""

    text: str
    title: str


class Converter:
    """Converts HTML to Markdown with a small pool of threads, each with a worker process."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._idle: list[_Process] = []
        self._threads = ThreadPoolExecutor(_MAX_THREADS, "markdown")
        self.close = weakref.finalize(self, _end_all, self._idle)
        """Kills the idle processes; also called when the converter is garbage-collected."""

    async def to_markdown(self, html: str, address: str) -> Markdown:
        """Convert a page with its base URL; raises `ConversionError`."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._convert, html, address)

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Run other work on pages in the same threads, so that it cannot fill the event loop's default pool."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _convert(self, html: str, address: str) -> Markdown:
        request = [address.encode("utf-8", "replace"), html.encode("utf-8", "replace")[:MAX_INPUT]]
        process = self._take_process()
        was_used = process.pages > 0
        answer = process.convert_page(request, self._seconds)
        if answer is None and was_used and not process.is_overdue:
            # A reused process may have died of an earlier page: retry once in a new one.
            process = _Process()
            answer = process.convert_page(request, self._seconds)
        if answer is None:
            raise ConversionError(
                f"it could not be turned into Markdown within {self._seconds:g} seconds"
                if process.is_overdue
                else "turning it into Markdown took too much memory or failed"
            )
        if process.pages < _MAX_PAGES:
            self._idle.append(process)
        else:
            process.end()
        good, title, text = answer
        if not good:
            raise ConversionError("it could not be read as HTML")
        return Markdown(text, title)

    def _take_process(self) -> "_Process":
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
    """One worker process and the pipes to it."""

    def __init__(self) -> None:
        self.pages = 0
        self.is_overdue = False
        # The process gets an empty environment, because ours contains API keys.
        kept = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603  a script of this package, with the running Python
            [sys.executable, "-I", "-S", str(_SCRIPT), _find_library(), str(_SCRIPT.parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=kept,
            cwd=_SCRIPT.anchor,
            start_new_session=True,
        )
        self._source = cast("IO[bytes]", self._process.stdout)
        self._sink = cast("IO[bytes]", self._process.stdin)
        if self._run_within(_START_SECONDS, lambda: self._read_exactly(len(READY))) is None:
            raise ConversionError(f"its reader cannot be started: {_MISSING}")

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def convert_page(self, request: list[bytes], seconds: float) -> tuple[bool, str, str] | None:
        """Convert one page; return None if the process died or was killed."""
        self.pages += 1
        answer = self._run_within(seconds, lambda: self._send_request(request, seconds))
        if answer is None:
            self.end()
        return answer

    def end(self) -> None:
        """Kill the process and wait until it has exited."""
        self._process.kill()
        for pipe in (self._sink, self._source):
            with suppress(OSError):
                pipe.close()
        self._process.wait()

    def _send_request(self, request: list[bytes], seconds: float) -> tuple[bool, str, str]:
        self._sink.write(REQUEST.pack(ceil(seconds) + 1, *map(len, request)))
        for piece in request:
            self._sink.write(piece)
        self._sink.flush()
        good, title, text = REPLY.unpack(self._read_exactly(REPLY.size))
        if title > MAX_TITLE * _MAX_BYTES_PER_CHARACTER or text > MAX_TEXT * _MAX_BYTES_PER_CHARACTER:
            raise EOFError
        return good, self._read_exactly(title).decode(), self._read_exactly(text).decode()

    def _read_exactly(self, size: int) -> bytes:
        data = self._source.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def _run_within(self, seconds: float, work: Callable[[], T]) -> T | None:
        """Run blocking I/O with the process and kill it on a timeout; return None if the process is dead."""

        def end() -> None:
            self.is_overdue = True
            self._process.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            done = work()
        except (OSError, EOFError, ValueError):
            done = None
        timer.cancel()
        timer.join()  # otherwise the timer could kill the process during the next page
        return None if self.is_overdue else done


def _find_library() -> str:
    """Return the directory where html-to-markdown is installed."""
    found = importlib.util.find_spec("html_to_markdown")
    if found is None or found.origin is None:
        raise ConversionError(_MISSING)
    return str(Path(found.origin).parents[1])
