"""Terminal input and output, Ctrl-C handling, and an event loop in its own thread.

On a terminal all output goes to standard output in order, in colours unless NO_COLOR is set. Otherwise only answers go
to standard output, without escape codes, and everything else goes to standard error. Control characters in text from
models and tools are replaced. The first Ctrl-C stops the turn, the second the program; input in between resets that.
The main thread reads lines and receives signals. Resources are opened and closed in the same task, because some of them
(anyio cancel scopes) must not be closed by another one.
"""

import asyncio
import contextlib
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Generic, Protocol, TextIO, TypeVar

from msgspec import Struct

from dragoman.guard import start_thread

_LOG = logging.getLogger("dragoman.chat")
_STYLES = {"dim": "2", "bold": "1", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters of terminals, bidirectional controls and lone surrogates; tab and newline are allowed."""
_CONTINUATION = "\\"
_QUOTES = '"""'
_MAX_HISTORY = 1000
"""Typed lines that are kept for later chats."""
_SIGNAL_EXIT_BASE = 128
"""A shell reports 128 plus the signal number as the exit code of a program that a signal ended."""
T = TypeVar("T")
R = TypeVar("R")


def replace_controls(text: str) -> str:
    """Replace control characters, so that a text cannot control the terminal."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n"))


class Screen:
    """Writes answers and notes to two streams; `pretty` if both are an interactive terminal."""

    def __init__(self, out: TextIO, err: TextIO, *, pretty: bool) -> None:
        self.pretty = pretty
        self._out = out
        self._notes = out if pretty else err
        self._coloured = pretty and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._is_terminal = out.isatty()
        self._has_open_line = False
        """Whether the current line of output has text and no newline yet."""

    @property
    def width(self) -> int:
        """The width of the terminal in characters, at least 40; 160 if the output is not a terminal."""
        try:
            return max(os.get_terminal_size(self._notes.fileno()).columns, 40)
        except (OSError, ValueError):
            return 160

    def style(self, text: str, *styles: str) -> str:
        """Return a text with escape codes for styles, if colours are enabled."""
        if not self._coloured or not text:
            return text
        return f"\x1b[{';'.join(_STYLES[style] for style in styles)}m{text}\x1b[0m"

    def write_answer(self, text: str) -> None:
        """Write a delta of the model's answer."""
        if text:
            self._out.write(replace_controls(text) if self._is_terminal else text)
            self._out.flush()
            self._has_open_line = not text.endswith("\n")

    def write_thought(self, text: str) -> None:
        """Write a delta of the model's reasoning, only on an interactive terminal."""
        if text and self.pretty:
            self._out.write(self.style(replace_controls(text), "dim"))
            self._out.flush()
            self._has_open_line = not text.endswith("\n")

    def end_line(self) -> None:
        """Write a newline if the current line has text."""
        if self._has_open_line:
            self._out.write("\n")
            self._out.flush()
            self._has_open_line = False

    def mark_line_open(self) -> None:
        """Record that the terminal itself has written text on the current line: `^C`."""
        self._has_open_line = self._has_open_line or self.pretty

    def write_output(self, text: str) -> None:
        """Write the output of a slash command."""
        self.end_line()
        self._out.write(f"{replace_controls(text)}\n")
        self._out.flush()

    def write_note(self, text: str, *styles: str) -> None:
        """Write a note on its own line, to the stream of notes."""
        self.end_line()
        self._notes.write(f"{self.style(replace_controls(text), *(styles or ('dim',)))}\n")
        self._notes.flush()


class LineReader(Protocol):
    """A source of lines of input."""

    def read_line(self) -> str | None:
        """Return the next line of input; None at its end."""
        ...

    def ask_question(self, question: str) -> str:
        """Ask a question and return the answer; "" if there is none."""
        ...


class KeyboardReader:
    """Reads lines from a terminal, with line editing if readline is available.

    With a `history` file the arrow keys recall lines of earlier chats.
    """

    def __init__(self, screen: Screen, history: Path | None = None) -> None:
        self._forget_last: Callable[[], None] = _do_nothing
        self._store_lines: Callable[[int], None] = _ignore_count
        invisible = ("", "")
        with contextlib.suppress(ImportError):
            import readline  # noqa: PLC0415  not on every system; importing it enables line editing and history in `input`

            # readline does not count the characters between these two towards the width of the prompt.
            invisible = ("\x01", "\x02")
            self._forget_last = lambda: readline.remove_history_item(readline.get_current_history_length() - 1)
            if history is not None and _open_history(history):
                readline.set_history_length(_MAX_HISTORY)
                with contextlib.suppress(OSError):
                    readline.read_history_file(history)
                    readline.write_history_file(history)  # cut to its maximum length
                    self._store_lines = lambda count: readline.append_history_file(count, history)
        sign = "\u203a " if (sys.stdout.encoding or "").lower().replace("-", "") == "utf8" else "> "
        before, _, after = screen.style(sign, "bold", "cyan").partition(sign)
        self._prompt = sign
        if before:
            self._prompt = f"{invisible[0]}{before}{invisible[1]}{sign}{invisible[0]}{after}{invisible[1]}"

    def read_line(self) -> str | None:
        """Prompt for a line. It continues on the next line after a backslash at its end, or inside triple quotes."""
        lines: list[str] = []
        with contextlib.suppress(EOFError):
            while True:
                line = input(self._prompt if not lines else "… ")
                lines.append(line)
                if _is_complete(lines):
                    with contextlib.suppress(OSError):
                        self._store_lines(sum(bool(each) for each in lines))
                    return _join_lines(lines)
        sys.stdout.write("\n")
        return None

    def ask_question(self, question: str) -> str:
        """Ask a question and keep the answer out of the line history."""
        discard_typed_input()
        try:
            answer = input(question)
        except EOFError:
            sys.stdout.write("\n")
            return ""
        if answer:
            with contextlib.suppress(ValueError):
                self._forget_last()
        return answer


def _is_complete(lines: list[str]) -> bool:
    if lines[0].startswith(_QUOTES):
        return "".join(lines)[len(_QUOTES) :].rstrip().endswith(_QUOTES)
    return not lines[-1].endswith(_CONTINUATION)


def _join_lines(lines: list[str]) -> str:
    if lines[0].startswith(_QUOTES):
        return "\n".join(lines).strip().removeprefix(_QUOTES).removesuffix(_QUOTES).strip("\n")
    return "\n".join(line.removesuffix(_CONTINUATION) for line in lines)


def _open_history(file: Path) -> bool:
    """Create the file of typed lines, readable by its owner only; return whether it can be written."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError:
        return False
    return True


class PipeReader:
    """Reads lines from standard input that is not a terminal."""

    def read_line(self) -> str | None:
        """Return the next line."""
        line = sys.stdin.readline()
        return line.removesuffix("\n") if line else None

    def ask_question(self, question: str) -> str:
        """Ask on standard error, because standard output is for the model's answers only."""
        discard_typed_input()
        sys.stderr.write(question)
        sys.stderr.flush()
        return sys.stdin.readline().strip()


def discard_typed_input() -> None:
    """Discard input that was typed before a question was shown, so that it is not taken for the answer."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios  # noqa: PLC0415  not on every system

        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _do_nothing() -> None:
    pass


def _ignore_count(_count: int) -> None:
    pass


class Interrupts:
    """Handles signals in the main thread."""

    def __init__(self) -> None:
        self.is_armed = False
        """Whether the next Ctrl-C ends the program."""
        self._stop: Callable[[], None] | None = None

    def _on_interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self._stop is None or self.is_armed:
            raise KeyboardInterrupt
        self.is_armed = True
        self._stop()

    @contextmanager
    def handle_signals(self) -> Generator[None]:
        """Install the signal handlers in this block; SIGTERM and SIGHUP raise SystemExit for an orderly shutdown."""
        ends = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
        before = {number: signal.signal(number, _exit_on_signal) for number in ends}
        before[signal.SIGINT] = signal.signal(signal.SIGINT, self._on_interrupt)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def call_on_interrupt(self, stop: Callable[[], None] | None) -> Generator[None]:
        """Call `stop` at the first Ctrl-C in this block; with None it raises KeyboardInterrupt."""
        before, self._stop = self._stop, stop
        try:
            yield
        finally:
            self._stop = before


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(_SIGNAL_EXIT_BASE + number)


class Terminal(Struct, frozen=True):
    """The screen, the line reader and the interrupt handler of a chat."""

    screen: Screen
    lines: LineReader
    interrupts: Interrupts


class EventLoopThread(Generic[T]):
    """Runs an event loop in a thread, with a resource that is open as long as the loop runs."""

    def __init__(self, open_resource: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._open_resource = open_resource
        self._opened: Future[T] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None
        self._task: asyncio.Task[Any] | None = None
        self._last: Future[Any] | None = None
        self._ended: Future[None] | None = None

    def open(self) -> T:
        """Start the thread, open the resource and return it."""
        # A daemon thread, because a tool that hangs must not keep the program alive.
        self._ended = start_thread(lambda: asyncio.run(self._run()), "chat")
        self._ended.add_done_callback(self._on_end)
        return self._opened.result()

    def _on_end(self, ended: "Future[None]") -> None:
        error = ended.exception()
        if error is not None and not self._opened.done():
            self._opened.set_exception(error)
        elif error is not None:
            _LOG.error("closing the chat session failed", exc_info=error)

    async def _run(self) -> None:
        self._loop, self._closing, self._task = asyncio.get_running_loop(), asyncio.Event(), asyncio.current_task()
        async with self._open_resource() as opened:
            self._opened.set_result(opened)
            await self._closing.wait()

    def start(self, work: Coroutine[Any, Any, R]) -> "Future[R]":
        """Start a coroutine on the loop and return its future."""
        if self._loop is None:
            raise RuntimeError("the event loop is not running: call open() first")
        self._last = future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future

    def call_soon(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Call a function on the loop that does not block."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work, *arguments)

    def close(self, timeout: float) -> bool:
        """Close the resource and end the thread; return whether that was done before the timeout."""
        if self._last is not None:
            self._last.cancel()
        if self._ended is None:
            return True
        if self._closing is not None and self._task is not None:
            self.call_soon(self._closing.set if self._opened.done() else self._task.cancel)
        return not wait([self._ended], timeout).not_done
