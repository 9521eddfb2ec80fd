"""Tools that are generators: what they yield on the way is progress.

A generator yields a text, a number, or `(done, total)` and `(done, total, message)`. Its result is what it returns; if
it returns nothing, as an async generator always does, its result is the last value that it yields.
"""

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing
from numbers import Real
from typing import Any, cast

from dragoman.tools.handler import reporter

_NOTHING: Any = object()


class _ProgressSender:
    """Reports yielded values one later, because the last one may be the result."""

    def __init__(self) -> None:
        self._report = reporter()
        self._held: Any = _NOTHING
        self._done = 0.0

    def accept(self, value: Any) -> None:
        """Take a yielded value and report the one before it."""
        self.flush()
        self._held = value

    def flush(self) -> None:
        """Report the value that is held back."""
        value, self._held = self._held, _NOTHING
        if value is _NOTHING or self._report is None:
            return
        done, total, message = self._read(value)
        self._done = done
        self._report(done, total, message)

    def result(self, returned: Any) -> Any:
        """Return the result of the tool."""
        if returned is None and self._held is not _NOTHING:
            return self._held
        self.flush()
        return returned

    def _read(self, value: Any) -> tuple[float, float | None, str]:
        """Return a value as work done, total and message; a message alone counts as one more step."""
        if isinstance(value, Real):
            return float(value), None, ""
        if isinstance(value, tuple):
            items = cast("tuple[Any, ...]", value)
            if 2 <= len(items) <= 3 and isinstance(items[0], Real) and isinstance(items[1], Real | None):
                total = None if items[1] is None else float(items[1])
                return float(items[0]), total, str(items[2]) if len(items) == 3 else ""
        return self._done + 1, None, str(cast("object", value))


def run_generator(values: Generator[Any, None, Any]) -> Any:
    """Run a generator to its end and return its result."""
    sender = _ProgressSender()
    with closing(values):
        while True:
            try:
                sender.accept(next(values))
            except StopIteration as end:
                return sender.result(end.value)


async def run_async_generator(values: AsyncGenerator[Any]) -> Any:
    """Run an async generator to its end and return its result."""
    sender = _ProgressSender()
    async with aclosing(values):
        async for value in values:
            sender.accept(value)
    return sender.result(None)
