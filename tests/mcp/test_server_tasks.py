"""Long runs as tasks: kept before they are told of, found by their owner alone, in every process, and ended once."""

import asyncio
from typing import Any

import msgspec
import pytest

from dragoman.mcp.server.job import Job
from dragoman.mcp.server.shelf import Shelf
from dragoman.sessions.store import Store
from dragoman.sessions.urls import open_store


@pytest.fixture
def store(tmp_path):
    made = open_store(f"sqlite:///{tmp_path}/sessions.db")
    yield made
    asyncio.run(made.close())


async def begun(shelf: Shelf, work: Any) -> Job:
    """Begin a job that does some work."""
    job = Job("ann", shelf.ttl, shelf.add)

    async def run() -> None:
        try:
            result = await work(job)
        except asyncio.CancelledError:
            job.end("cancelled")
            raise
        else:
            job.end("completed", result=result)
        finally:
            await asyncio.shield(shelf.settle(job))

    await job.begin()
    job.task = asyncio.create_task(run())
    await asyncio.sleep(0)  # it has begun
    return job


async def forever(_job: Job) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


def test_what_ended_is_told_by_another_process_of_the_same_store(store: Store):
    async def scene() -> None:
        async def work(_job: Job) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": "done"}]}

        job = await begun(Shelf(store.runs), work)
        assert job.task is not None
        await job.task
        told = await Shelf(store.runs).find("ann", job.id)
        assert told is not None
        assert (told.status, told.result) == ("completed", {"content": [{"type": "text", "text": "done"}]})

    asyncio.run(scene())


def test_a_task_is_found_by_its_owner_alone(store: Store):
    async def scene() -> None:
        shelf = Shelf(store.runs)
        job = await begun(shelf, forever)
        assert await shelf.find("ann", job.id) is not None
        assert await shelf.find("bob", job.id) is None
        assert await Shelf(store.runs).find("bob", job.id) is None
        await shelf.cancel("bob", job.id)
        assert job.status == "working"
        await shelf.close()

    asyncio.run(scene())


def test_a_task_that_is_cancelled_elsewhere_is_cancelled_for_everybody(store: Store):
    async def scene() -> None:
        here, there = Shelf(store.runs), Shelf(store.runs)
        job = await begun(here, forever)
        await there.cancel("ann", job.id)
        told = await there.find("ann", job.id)
        assert told is not None
        assert told.status == "cancelled"
        await here.close()
        told = await there.find("ann", job.id)
        assert told is not None
        assert told.status == "cancelled"

    asyncio.run(scene())


def test_a_task_whose_maker_is_gone_has_failed(store: Store):
    async def scene() -> None:
        shelf = Shelf(store.runs)
        job = await begun(shelf, forever)
        await store._engine.write(lambda cursor: cursor.run("UPDATE runs SET alive = alive - 60"))
        told = await Shelf(store.runs).find("ann", job.id)
        assert told is not None
        assert told.status == "failed"
        assert told.error is not None
        assert "gone" in told.error["message"]
        await shelf.close()

    asyncio.run(scene())


def test_questions_are_answered_one_by_one_and_what_nobody_asked_is_let_go():
    async def scene() -> None:
        shelf = Shelf()

        async def work(job: Job) -> dict[str, Any]:
            return await job.ask({"a": {"method": "x"}, "b": {"method": "y"}})

        job = await begun(shelf, work)
        await asyncio.sleep(0)
        assert job.told.input_requests == {"a": {"method": "x"}, "b": {"method": "y"}}
        job.answer({"a": 1, "stranger": 2})
        assert (job.status, job.told.input_requests) == ("input_required", {"b": {"method": "y"}})
        job.answer({"b": 3})
        assert job.task is not None
        await job.task
        assert (job.status, job.result) == ("completed", {"a": 1, "b": 3})

    asyncio.run(scene())


def test_a_job_ends_once_and_is_told_in_the_words_of_the_protocol():
    async def scene() -> None:
        job = Job("ann", 60.0, Shelf().add)
        job.say("looking around")
        job.end("cancelled")
        job.end("completed", result={"content": []})
        told = msgspec.to_builtins(job.told)
        assert told["status"] == "cancelled"
        assert told["statusMessage"] == "looking around"
        assert (told["ttlMs"], told["pollIntervalMs"]) == (60_000, 1000)
        assert "result" not in told
        assert "error" not in told

    asyncio.run(scene())


def test_a_task_that_is_stopped_with_its_process_has_failed(store: Store):
    async def scene() -> None:
        shelf = Shelf(store.runs)
        job = await begun(shelf, forever)
        await shelf.close()
        told = await Shelf(store.runs).find("ann", job.id)
        assert told is not None
        assert told.status == "failed"
        assert told.error is not None
        assert "was stopped" in told.error["message"]

    asyncio.run(scene())


def test_a_task_is_forgotten_when_its_time_is_over(store: Store):
    async def scene() -> None:
        shelf = Shelf(store.runs)
        job = await begun(shelf, forever)
        await shelf.close()
        assert await shelf.find("ann", job.id) is not None
        await store._engine.write(lambda cursor: cursor.run("UPDATE runs SET created = created - 90000"))
        assert await shelf.find("ann", job.id) is None

    asyncio.run(scene())
