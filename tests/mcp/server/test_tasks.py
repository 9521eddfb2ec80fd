"""Long runs as MCP tasks: every process reports their state in the protocol's format, whatever the outcome."""

import asyncio
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from msgspec import structs

from dragoman.agent import InProcess, Job, RunState
from dragoman.gateway.conversations.runner import LocalJobRunner
from dragoman.mcp.server.tasks import (
    TaskJob,
    Tasks,
    TaskStarter,
    TaskTool,
    build_state,
    create_state,
    decode_state,
    encode_state,
    find_requested_topics,
)
from dragoman.sessions.store import open_store


class Room:
    """A store, and a process that offers one tool; another process only looks."""

    def __init__(self, store: Any, work: Any) -> None:
        self.first, self.second = LocalJobRunner(store.runs), LocalJobRunner(store.runs)
        for job_runner in (self.first, self.second):
            Tasks(job_runner, {"tool": TaskTool("optional", work)})

    async def begun(self, requested: bytes = b"", **meta: Any) -> str:
        starter = TaskStarter(self.first, "tool", "ann", 60.0)
        await starter.begin(requested, **meta)
        assert starter.state is not None
        return f"task-{starter.state.task_id}"

    async def wait_for_status(self, run: str, status: str, *questions: str) -> Any:
        """Wait until the other process reports this status, and return it."""
        async with asyncio.timeout(10):
            while True:
                result = build_state(await self.second.state("ann", run))
                if result.status == status and (not questions or set(result.input_requests or {}) == set(questions)):
                    return result
                await asyncio.sleep(0.01)


@pytest.fixture
def scene(tmp_path):
    def play(work: Any, do: Any) -> None:
        async def run() -> None:
            store = open_store(f"sqlite:///{tmp_path}/sessions.db")
            room = Room(store, work)
            try:
                await do(room)
            finally:
                await room.first.close()
                await store.close()

        asyncio.run(run())

    return play


async def forever(job: TaskJob, _option: bytes) -> dict[str, Any]:
    await job.report_progress("looking around")
    await asyncio.Event().wait()
    return {}


def test_the_result_of_a_task_is_available_in_every_process(scene):
    async def work(job: TaskJob, requested: bytes) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"{job.owner} {requested.decode()}"}]}

    async def do(room: Room) -> None:
        result = await room.wait_for_status(await room.begun(b"wishes", session_id="s"), "completed")
        assert result.result == {"content": [{"type": "text", "text": "ann wishes"}]}
        assert result.meta == {"session_id": "s"}

    scene(work, do)


def test_questions_are_shown_and_answered_in_every_process_one_by_one(scene):
    async def work(job: TaskJob, _option: bytes) -> dict[str, Any]:
        return await job.ask_all({"a": {"method": "x"}, "b": {"method": "y"}})

    async def do(room: Room) -> None:
        run = await room.begun()
        result = await room.wait_for_status(run, "input_required")
        assert result.input_requests == {"a": {"method": "x"}, "b": {"method": "y"}}
        await room.second.tell("ann", run, "a", 1)
        await room.wait_for_status(run, "input_required", "b")
        await room.second.tell("ann", run, "b", 3)
        assert (await room.wait_for_status(run, "completed")).result == {"a": 1, "b": 3}

    scene(work, do)


def test_a_cancelled_task_keeps_its_last_status_message(scene):
    async def do(room: Room) -> None:
        run = await room.begun(session_id="s")
        await room.second.cancel("ann", run)
        result = await room.wait_for_status(run, "cancelled")
        assert result.status_message == "looking around"
        assert (result.result, result.error, result.meta) == (None, None, {"session_id": "s"})

    scene(forever, do)


def test_a_task_whose_process_is_gone_has_failed(scene):
    async def do(room: Room) -> None:
        run = await room.begun()
        await room.first.close()
        result = await room.wait_for_status(run, "failed")
        assert "has exited" in result.error["message"]

    scene(forever, do)


def test_a_crashed_tool_is_reported_as_failed_without_secrets(scene):
    async def work(_job: TaskJob, _option: bytes) -> dict[str, Any]:
        raise ValueError("the password is 1234")

    async def do(room: Room) -> None:
        result = await room.wait_for_status(await room.begun(), "failed")
        assert result.error["message"] == "the run failed: ValueError"

    scene(work, do)


def test_the_status_of_a_task_has_the_fields_of_the_protocol():
    result = msgspec.to_builtins(create_state("t", 60.0, {}))
    assert (result["taskId"], result["status"], result["ttlMs"], result["pollIntervalMs"]) == (
        "t",
        "working",
        60_000,
        1000,
    )
    assert not result.keys() & {"result", "error", "inputRequests", "_meta", "statusMessage"}


def test_a_question_answered_before_it_was_shown_is_not_shown():
    async def run() -> None:
        runtime = InProcess("r")
        job = TaskJob("ann", runtime, create_state("t", 60.0, {}))
        runtime.tell("a", "yes")
        assert await job.wait("a") == "yes"
        await job.add_question("a", {"method": "x"})
        assert job.state.input_requests is None

    asyncio.run(run())


def test_a_question_without_an_answer_in_time_is_closed():
    async def run() -> None:
        job = TaskJob("ann", InProcess("r"), create_state("t", 60.0, {}))
        await job.add_question("a", {"method": "x"})
        assert job.state.status == "input_required"
        with pytest.raises(TimeoutError):
            await job.wait("a", 0)
        assert (job.state.status, job.state.input_requests) == ("working", None)

    asyncio.run(run())


def test_a_question_that_this_process_sees_a_moment_later_is_answered_all_the_same():
    working = create_state("t", 60.0, {})
    asking = structs.replace(working, status="input_required", input_requests={"a": {}, "b": {}})
    seen = [working, asking]

    async def look() -> Any:
        return seen.pop(0)

    assert asyncio.run(find_requested_topics(look, ["a"])) == {"a"}
    assert not seen


def test_only_open_questions_of_running_tasks_are_kept():
    working, ended = create_state("t", 60.0, {}), structs.replace(create_state("t", 60.0, {}), status="completed")

    async def look(result: Any) -> Any:
        return result

    assert asyncio.run(find_requested_topics(lambda: look(working), ["stranger"])) == set()
    assert asyncio.run(find_requested_topics(lambda: look(ended), ["a"])) == set()


def test_the_last_of_several_messages_is_shown():
    first, last = create_state("t", 60.0, {}), create_state("u", 60.0, {})
    assert decode_state(encode_state(first) + encode_state(last)) == last
    state = RunState(status="running", last_output=encode_state(first) + encode_state(last))
    assert build_state(state).task_id == "u"


def test_a_task_is_stored_before_its_id_is_returned():
    jobs: list[Job] = []

    class Full(Mock):
        async def start(self, job: Job) -> None:
            jobs.append(job)
            raise OSError("no room")

    async def run() -> None:
        starter = TaskStarter(Full(), "tool", "ann", 60.0)
        with pytest.raises(OSError, match="no room"):
            await starter.begin(b"")
        assert starter.state is None

    asyncio.run(run())
    assert jobs[0].owner == "ann"
