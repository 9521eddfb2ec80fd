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
_GOES_ON = "\\"
_ENDED = 128
"""What a shell adds to the number of the signal that ended a program."""
T = TypeVar("T")
R = TypeVar("R")


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


class Terminal(Struct, frozen=True):
    """What the user sees, types and interrupts."""

    screen: Screen
    lines: Lines
    interrupts: Interrupts


class Stage(Generic[T]):
    """Keeps something open, and does what is asked of it."""

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._opening = opening
        self._opened: Future[T] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._task: asyncio.Task[Any] | None = None
        self._last: Future[Any] | None = None
        self._ended: Future[None] | None = None

    def open(self) -> T:
        """Open it, and return it when it is there."""
        # A tool that hangs in a thread must not keep the program: it is a daemon.
        self._ended = start_thread(lambda: asyncio.run(self._live()), "chat")
        self._ended.add_done_callback(self._on_end)
        return self._opened.result()

    def _on_end(self, ended: "Future[None]") -> None:
        error = ended.exception()
        if error is not None and not self._opened.done():
            self._opened.set_exception(error)
        elif error is not None:
            _LOG.error("the conversation could not be closed", exc_info=error)

    async def _live(self) -> None:
        self._loop, self._over, self._task = asyncio.get_running_loop(), asyncio.Event(), asyncio.current_task()
        async with self._opening() as opened:
            self._opened.set_result(opened)
            await self._over.wait()

    def start(self, work: Coroutine[Any, Any, R]) -> "Future[R]":
        """Begin something there."""
        if self._loop is None:
            raise RuntimeError("nothing is open")
        self._last = future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future

    def soon(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Do something there that takes no time."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work, *arguments)

    def close(self, patience: float) -> bool:
        """Close it; tell whether that was done in time."""
        if self._last is not None:
            self._last.cancel()
        if self._ended is None:
            return True
        if self._over is not None and self._task is not None:
            self.soon(self._over.set if self._opened.done() else self._task.cancel)
        return not wait([self._ended], patience).not_done
