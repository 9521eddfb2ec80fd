"""Background runs: every process that shares the store can see, message and cancel them."""

import asyncio
from time import time
from typing import Any

import pytest

from dragoman.agent import Job, Runtime
from dragoman.gateway.conversations.runner import LocalJobRunner
from dragoman.sessions.runs import INTERRUPTED_AFTER
from dragoman.sessions.store import Store, open_store
from dragoman.sessions.values import Conflict

ORDER = Job(owner="ann", run="r", kind="work", document=b"document", first_output=b"queued")


async def forever(_job: Job, _runtime: Runtime) -> bytes:
    await asyncio.Event().wait()
    return b""


async def ask(_job: Job, runtime: Runtime) -> bytes:
    await runtime.emit(b"one;")
    content = await runtime.wait("word")
    await runtime.emit(b"two;")
    return str(content).encode()


async def raise_error(_job: Job, _runtime: Runtime) -> bytes:
    raise ZeroDivisionError


class Pair:
    """Two processes over one store."""

    def __init__(self, store: Store, work: Any) -> None:
        self.store = store
        self.first, self.second = LocalJobRunner(store.runs), LocalJobRunner(store.runs)
        for job_runner in (self.first, self.second):
            job_runner.serve("work", work)

    async def until(self, job_runner: LocalJobRunner, status: str) -> Any:
        async with asyncio.timeout(10):
            while (state := await job_runner.state("ann", "r")).status != status:  # noqa: ASYNC110  a table tells nobody
                await asyncio.sleep(0.01)
        return state


@pytest.fixture
def scene(tmp_path):
    """Run something with two processes."""

    def play(work: Any, do: Any) -> Any:
        async def run() -> Any:
            store = open_store(f"sqlite:///{tmp_path}/s.db")
            pair = Pair(store, work)
            try:
                return await do(pair)
            finally:
                await pair.first.close()
                await pair.second.close()
                await store.close()

        return asyncio.run(run())

    return play


def test_what_came_of_a_run_is_seen_everywhere(scene):
    async def work(job: Job, _runtime: Runtime) -> bytes:
        return job.document.upper()

    async def do(pair: Pair) -> None:
        await pair.first.start(ORDER)
        state = await pair.until(pair.second, "completed")
        assert state.outcome == b"DOCUMENT"
        assert await pair.second.state("bob", "r") is None

    scene(work, do)


def test_a_run_is_known_everywhere_as_soon_as_it_is_started(scene):
    async def do(pair: Pair) -> None:
        await pair.first.start(ORDER)
        state = await pair.second.state("ann", "r")
        assert (state.status, state.last_output) == ("running", b"queued")
        with pytest.raises(Conflict):
            await pair.second.start(ORDER)

    scene(forever, do)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_run_is_answered_from_every_process_and_the_first_answer_holds(scene, elsewhere):
    async def do(pair: Pair) -> None:
        await pair.first.start(ORDER)
        teller = pair.second if elsewhere else pair.first
        await teller.tell("ann", "r", "word", {"yes": 1})
        await teller.tell("ann", "r", "word", "no")
        state = await pair.until(pair.second, "completed")
        assert state.outcome == b"{'yes': 1}"
        assert await pair.store.runs.list_messages() == []

    scene(ask, do)


def test_only_its_owner_can_send_to_a_run(scene):
    async def do(pair: Pair) -> None:
        await pair.first.start(ORDER)
        await pair.second.tell("bob", "r", "word", "no")
        await pair.second.cancel("bob", "r")
        await pair.second.tell("ann", "r", "word", "yes")
        assert (await pair.until(pair.second, "completed")).outcome == b"yes"

    scene(ask, do)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_run_is_cancelled_from_every_process(scene, elsewhere):
    stopped: list[str] = []

    async def work(_job: Job, _runtime: Runtime) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("stopped")
        return b""

    async def do(pair: Pair) -> None:
        await pair.first.start(ORDER)
        await (pair.second if elsewhere else pair.first).cancel("ann", "r")
        assert stopped == ["stopped"]
        assert (await pair.second.state("ann", "r")).status == "cancelled"

    scene(work, do)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_a_run_emits_is_watched_from_every_process_until_it_is_over(scene, elsewhere):
    async def do(pair: Pair) -> None:
        await pair.first.start(ORDER)
        watcher = pair.second if elsewhere else pair.first
        watched = watcher.watch("ann", "r")
        assert await anext(watched) == b"one;"
        await pair.first.tell("ann", "r", "word", "go")
        assert [piece async for piece in watched] == [b"two;"]
        assert b"".join([piece async for piece in pair.second.watch("ann", "r")]) == b"one;two;"

    scene(ask, do)


def test_the_last_emitted_state_of_a_run_is_shown(scene):
    async def do(pair: Pair) -> None:
        await pair.first.start(ORDER)
        async with asyncio.timeout(10):
            while (await pair.second.state("ann", "r")).last_output != b"one;":  # noqa: ASYNC110  a table tells nobody
                await asyncio.sleep(0.01)

    scene(ask, do)


def test_a_run_whose_process_stops_was_interrupted_and_its_name_is_free(scene):
    async def do(pair: Pair) -> None:
        await pair.first.start(ORDER)
        await pair.first.close()
        assert (await pair.second.state("ann", "r")).status == "interrupted"
        await pair.second.start(ORDER)
        assert (await pair.second.state("ann", "r")).status == "running"

    scene(forever, do)


def test_a_run_without_heartbeats_is_interrupted(scene):
    async def do(pair: Pair) -> None:
        await pair.first.start(ORDER)
        then = int(time() - INTERRUPTED_AFTER - 5)
        await pair.store._engine.write(lambda cursor: cursor.execute("UPDATE runs SET alive = ?", then))
        assert (await pair.second.state("ann", "r")).status == "interrupted"
        # Who carries it knows better.
        assert (await pair.first.state("ann", "r")).status == "running"

    scene(forever, do)


def test_work_that_raises_has_failed(scene, caplog):
    async def do(pair: Pair) -> None:
        await pair.first.start(ORDER)
        await pair.until(pair.second, "failed")

    scene(raise_error, do)
    assert "run r failed" in caplog.text


def test_a_run_that_is_not_there_can_be_cancelled_and_has_no_state(scene):
    async def do(pair: Pair) -> None:
        await pair.first.cancel("ann", "nothing")
        assert await pair.first.state("ann", "nothing") is None
        assert [piece async for piece in pair.first.watch("ann", "nothing")] == []

    scene(forever, do)
