"""Run foreign code that may raise anything (a tool, an observer, a script) and return its error as a value.

The caller decides how to handle the error. Cancellation is not caught: it propagates.
"""

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Attempt(Struct, frozen=True):
    """The outcome of a call: its return value, or the error that it raised."""

    value: Any = None
    error: BaseException | None = None


def attempt(function: Callable[..., Any], *arguments: Any) -> Attempt:
    """Call a function and return its value or its error."""
    try:
        return Attempt(function(*arguments))
    except (Exception, SystemExit) as error:  # noqa: BLE001  foreign code may raise anything, or try to end the process
        return Attempt(error=error)


async def attempt_async(function: Callable[..., Awaitable[Any]], *arguments: Any) -> Attempt:
    """Call an async function and return its value or its error."""
    try:
        return Attempt(await function(*arguments))
    except (Exception, SystemExit) as error:  # noqa: BLE001  foreign code may raise anything, or try to end the process
        return Attempt(error=error)


def start_thread(function: Callable[[], T], name: str) -> "Future[T]":
    """Run a function in a daemon thread and return a future of its value or its error."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            value = function()
        except BaseException as error:  # noqa: BLE001  raised again by `future.result()`: a thread has no caller
            future.set_exception(error)
        else:
            future.set_result(value)

    future.set_running_or_notify_cancel()
    Thread(target=run, name=name, daemon=True).start()
    return future
