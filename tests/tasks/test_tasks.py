"""Tasks have a name and an owner, their failures are logged once, and they end with their owner."""

import asyncio
import gc
import logging
import weakref

import pytest

from dragoman.tasks import TaskSet, run_all, start_task, stop_tasks


class BrokenError(Exception):
    pass


async def fail() -> None:
    await asyncio.sleep(0)
    raise BrokenError("broken")


async def forever() -> None:
    await asyncio.Event().wait()


def failures(caplog) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_failure_in_the_background_is_logged_once_with_the_name(caplog):
    async def main():
        async with TaskSet() as background:
            background.start(fail(), "renew a claim")
            await background.join()

    asyncio.run(main())
    gc.collect()
    (record,) = failures(caplog)
    assert record.name == "dragoman.tasks"
    assert record.getMessage() == "task renew a claim failed"
    assert record.exc_info[0] is BrokenError


def test_a_failure_that_is_awaited_is_raised_and_not_logged(caplog):
    async def main():
        tasks = TaskSet()
        with pytest.raises(BrokenError):
            await tasks.start(fail(), "query", awaited=True)
        with pytest.raises(BrokenError):
            await start_task(fail(), "query")

    asyncio.run(main())
    gc.collect()
    assert not failures(caplog)


def test_a_failure_that_its_owner_never_looks_at_is_reported_with_the_name(caplog):
    async def main():
        task = start_task(fail(), "http request")
        await asyncio.wait([task])

    asyncio.run(main())
    gc.collect()
    (record,) = failures(caplog)
    assert "http request" in record.getMessage()


def test_a_started_task_is_held_until_it_ends():
    async def main():
        tasks, go, ended = TaskSet(), asyncio.Event(), []

        async def work():
            await go.wait()
            ended.append(True)

        held = weakref.ref(tasks.start(work(), "work"))
        await asyncio.sleep(0)
        gc.collect()
        assert held() is not None
        assert len(tasks) == 1
        go.set()
        await tasks.join()
        assert ended == [True]
        await asyncio.sleep(0)
        assert len(tasks) == 0

    asyncio.run(main())


def test_stop_cancels_all_tasks_and_waits_for_what_they_do_at_their_end():
    ended = []

    async def work(number):
        try:
            await forever()
        finally:
            await asyncio.sleep(0.01)
            ended.append(number)

    async def main():
        tasks = TaskSet()
        for number in range(3):
            tasks.start(work(number), "work")
        await asyncio.sleep(0)
        await tasks.stop()
        assert sorted(ended) == [0, 1, 2]
        await asyncio.sleep(0)
        assert len(tasks) == 0

    asyncio.run(main())


def test_a_block_ends_its_tasks_when_it_fails():
    started = []

    async def block():
        async with TaskSet() as background:
            started.append(background.start(forever(), "work"))
            raise BrokenError

    async def main():
        with pytest.raises(BrokenError):
            await block()
        assert started[0].cancelled()

    asyncio.run(main())


def test_a_task_that_fails_while_it_is_stopped_is_logged(caplog):
    async def work():
        try:
            await forever()
        finally:
            raise BrokenError

    async def main():
        async with TaskSet() as background:
            background.start(work(), "work")
            await asyncio.sleep(0)

    asyncio.run(main())
    assert [record.getMessage() for record in failures(caplog)] == ["task work failed"]


def test_a_task_that_waits_for_the_end_can_be_cancelled_itself():
    async def work(release):
        try:
            await forever()
        finally:
            await release.wait()

    async def main():
        release = asyncio.Event()
        task = start_task(work(release), "work")
        await asyncio.sleep(0)
        stopping = start_task(stop_tasks(task), "stop")
        await asyncio.sleep(0)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        release.set()
        await asyncio.wait([task])

    asyncio.run(main())


def test_all_run_at_once_and_results_keep_their_order():
    async def number(value):
        await asyncio.sleep((3 - value) / 1000)
        return value

    assert asyncio.run(run_all((number(value) for value in range(3)), "number")) == [0, 1, 2]


def test_the_first_failure_stops_the_others_and_is_raised():
    async def main():
        cancelled = []

        async def wait():
            try:
                await forever()
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

        with pytest.raises(BrokenError, match="broken"):
            await run_all([wait(), fail()], "work")
        assert cancelled == [True]

    asyncio.run(main())


def test_cancelling_a_run_of_many_cancels_each():
    async def main():
        task = start_task(run_all([forever(), forever()], "work"), "all")
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
