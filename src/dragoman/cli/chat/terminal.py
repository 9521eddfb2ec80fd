"""The terminal: output, lines of input, Ctrl-C, and the event loop in a thread of its own.

On a terminal everything goes to standard output in its order, in colours unless NO_COLOR is set. Elsewhere only answers
go to standard output, without escape codes, and all the rest to standard error. Text of others never controls the
terminal. The first Ctrl-C ends the turn, the second the program; input in between resets that. The main thread edits
lines and receives signals. What is opened lives in one task, because not everything may be closed by another one.
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
from types import FrameType
from typing import Any, Generic, Protocol, TextIO, TypeVar

from msgspec import Struct

from dragoman.guard import start_thread

_LOG = logging.getLogger("dragoman.chat")
_STYLES = {"dim": "2", "bold": "1", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move, colour or ring, and those that turn the direction of writing. Tab and newline stay."""
_CONTINUATION = "\\"
_SIGNAL_EXIT_BASE = 128
"""What a shell adds to the number of the signal that ended a program."""
T = TypeVar("T")
R = TypeVar("R")


def replace_controls(text: str) -> str:
    """Return a text that does nothing to a terminal but stand there."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n"))


class Screen:
    """Two streams; `pretty` if they are one terminal, with a person before it."""

    def __init__(self, out: TextIO, err: TextIO, *, pretty: bool) -> None:
        self.pretty = pretty
        self._out = out
        self._notes = out if pretty else err
        self._coloured = pretty and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._is_terminal = out.isatty()
        self._has_open_line = False
        """Something stands on the line that answers are written to."""

    @property
    def width(self) -> int:
        """How many characters a short line has."""
        try:
            return max(os.get_terminal_size(self._notes.fileno()).columns, 40)
        except (OSError, ValueError):
            return 160

    def style(self, text: str, *styles: str) -> str:
        """Return a text in a style, where there are styles."""
        if not self._coloured or not text:
            return text
        return f"\x1b[{';'.join(_STYLES[style] for style in styles)}m{text}\x1b[0m"

    def write_answer(self, text: str) -> None:
        """Write a piece of what the model says."""
        if text:
            self._out.write(replace_controls(text) if self._is_terminal else text)
            self._out.flush()
            self._has_open_line = not text.endswith("\n")

    def write_thought(self, text: str) -> None:
        """Write a piece of what the model thinks, for a person."""
        if text and self.pretty:
            self._out.write(self.style(replace_controls(text), "dim"))
            self._out.flush()
            self._has_open_line = not text.endswith("\n")

    def end_line(self) -> None:
        """Let whatever comes next stand on a line of its own."""
        if self._has_open_line:
            self._out.write("\n")
            self._out.flush()
            self._has_open_line = False

    def mark_line_open(self) -> None:
        """Know that the terminal itself has written something: `^C`."""
        self._has_open_line = self._has_open_line or self.pretty

    def write_output(self, text: str) -> None:
        """Show what a command of the user's asks for."""
        self.end_line()
        self._out.write(f"{replace_controls(text)}\n")
        self._out.flush()

    def write_note(self, text: str, *styles: str) -> None:
        """Tell what happens beside the answer."""
        self.end_line()
        self._notes.write(f"{self.style(replace_controls(text), *(styles or ('dim',)))}\n")
        self._notes.flush()


class LineReader(Protocol):
    """Where lines come from."""

    def read_line(self) -> str | None:
        """Return the next thing the user says; None if there is no more."""
        ...

    def ask_question(self, question: str) -> str:
        """Return the answer to a question; "" if there is none."""
        ...


class KeyboardReader:
    """A person at a terminal."""

    def __init__(self, screen: Screen) -> None:
        self._forget_last: Callable[[], None] = _do_nothing
        invisible = ("", "")
        with contextlib.suppress(ImportError):
            import readline  # noqa: PLC0415  not on every system; lines are edited and remembered once it is loaded

            # What stands between these takes no room on the line.
            invisible = ("\x01", "\x02")
            self._forget_last = lambda: readline.remove_history_item(readline.get_current_history_length() - 1)
        sign = "\u203a " if (sys.stdout.encoding or "").lower().replace("-", "") == "utf8" else "> "
        before, _, after = screen.style(sign, "bold", "cyan").partition(sign)
        self._prompt = sign
        if before:
            self._prompt = f"{invisible[0]}{before}{invisible[1]}{sign}{invisible[0]}{after}{invisible[1]}"

    def read_line(self) -> str | None:
        """Ask for a line; one that ends with a backslash goes on."""
        said: list[str] = []
        with contextlib.suppress(EOFError):
            while True:
                line = input(self._prompt if not said else "… ")
                said.append(line.removesuffix(_CONTINUATION))
                if not line.endswith(_CONTINUATION):
                    return "\n".join(said)
        sys.stdout.write("\n")
        return None

    def ask_question(self, question: str) -> str:
        """Ask a question; its answer is nothing to remember."""
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


class PipeReader:
    """Whatever writes to standard input."""

    def read_line(self) -> str | None:
        """Return the next line."""
        line = sys.stdin.readline()
        return line.removesuffix("\n") if line else None

    def ask_question(self, question: str) -> str:
        """Ask on standard error: answers alone go to standard output."""
        discard_typed_input()
        sys.stderr.write(question)
        sys.stderr.flush()
        return sys.stdin.readline().strip()


def discard_typed_input() -> None:
    """Forget what was typed before a question was seen: it is no answer to it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios  # noqa: PLC0415  not on every system

        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _do_nothing() -> None:
    pass


class Interrupts:
    """Hears signals in the main thread."""

    def __init__(self) -> None:
        self.is_armed = False
        """The next one ends the program."""
        self._stop: Callable[[], None] | None = None

    def _on_interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self._stop is None or self.is_armed:
            raise KeyboardInterrupt
        self.is_armed = True
        self._stop()

    @contextmanager
    def handle_signals(self) -> Generator[None]:
        """Hear signals as long as the block runs; those that end a program end this one in order."""
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
        """Call `stop` at the first interrupt while the block runs; with None it is an exception."""
        before, self._stop = self._stop, stop
        try:
            yield
        finally:
            self._stop = before


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(_SIGNAL_EXIT_BASE + number)


class Terminal(Struct, frozen=True):
    """What the user sees, types and interrupts."""

    screen: Screen
    lines: LineReader
    interrupts: Interrupts


class EventLoopThread(Generic[T]):
    """Keeps something open, and does what is asked of it."""

    def __init__(self, open_resource: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._open_resource = open_resource
        self._opened: Future[T] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None
        self._task: asyncio.Task[Any] | None = None
        self._last: Future[Any] | None = None
        self._ended: Future[None] | None = None

    def open(self) -> T:
        """Open it, and return it when it is there."""
        # A tool that hangs in a thread must not keep the program: it is a daemon.
        self._ended = start_thread(lambda: asyncio.run(self._run()), "chat")
        self._ended.add_done_callback(self._on_end)
        return self._opened.result()

    def _on_end(self, ended: "Future[None]") -> None:
        error = ended.exception()
        if error is not None and not self._opened.done():
            self._opened.set_exception(error)
        elif error is not None:
            _LOG.error("the conversation could not be closed", exc_info=error)

    async def _run(self) -> None:
        self._loop, self._closing, self._task = asyncio.get_running_loop(), asyncio.Event(), asyncio.current_task()
        async with self._open_resource() as opened:
            self._opened.set_result(opened)
            await self._closing.wait()

    def start(self, work: Coroutine[Any, Any, R]) -> "Future[R]":
        """Begin something there."""
        if self._loop is None:
            raise RuntimeError("nothing is open")
        self._last = future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future

    def call_soon(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Do something there that takes no time."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work, *arguments)

    def close(self, timeout: float) -> bool:
        """Close it; tell whether that was done in time."""
        if self._last is not None:
            self._last.cancel()
        if self._ended is None:
            return True
        if self._closing is not None and self._task is not None:
            self.call_soon(self._closing.set if self._opened.done() else self._task.cancel)
        return not wait([self._ended], timeout).not_done
