"""Code that is not ours may raise anything: its error is returned, and cancellation is not an error."""

import asyncio
import sys
import threading

import pytest

from dragoman.guard import attempt, attempt_async, start_thread


def test_a_value_is_returned():
    assert attempt(int, "7").value == 7
    assert attempt(int, "7").error is None


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), StopIteration()])
def test_an_error_is_returned_and_not_raised(error):
    def fail():
        raise error

    async def fail_later():
        raise error

    assert attempt(fail).error is error
    if not isinstance(error, StopIteration):  # Python makes another error of it in a coroutine
        assert asyncio.run(attempt_async(fail_later)).error is error


def test_an_interrupt_of_the_user_is_raised():
    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt(fail)


def test_what_an_async_function_raises_before_it_can_be_awaited_is_returned():
    def fail():
        raise ValueError("no")

    assert isinstance(asyncio.run(attempt_async(fail)).error, ValueError)


def test_cancellation_is_raised():
    async def main():
        task = asyncio.create_task(attempt_async(asyncio.sleep, 10))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_thread_returns_its_value_and_has_a_name():
    ended = start_thread(lambda: (threading.current_thread().name, threading.current_thread().daemon), "tool add")
    assert ended.result(20) == ("tool add", True)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, StopIteration])
def test_whatever_a_thread_raises_is_in_its_future(error, capsys):
    def fail():
        raise error

    assert isinstance(start_thread(fail, "tool").exception(5), error)
    assert not capsys.readouterr().err
    assert sys.exc_info() == (None, None, None)
