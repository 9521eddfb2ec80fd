"""Agent runs in the session store: interrupted runs are detected and resumed."""

import asyncio
import os
import signal
import subprocess
import sys
from time import time

import msgspec
import pytest

from agent.scripted import Scripted, call, text_of, user_request
from dragoman.agent import Agent, Compaction, Limits
from dragoman.core.parts import Reasoning, Signature, Text
from dragoman.core.request import Request
from dragoman.gateway.conversations.runs import RunRecorder, past_run
from dragoman.sessions.runs import INTERRUPTED_AFTER
from dragoman.sessions.store import open_store
from dragoman.sessions.values import Unavailable
from dragoman.tools import Executor, Registry, tool
from sessions.stored_runs import find_run

HANGING = """
import asyncio, sys
from agent.scripted import Scripted, call, user_request
from dragoman.agent import Agent
from dragoman.core.parts import Text
from dragoman.gateway.conversations.runs import RunRecorder
from dragoman.sessions.store import open_store
from dragoman.tools import Executor, Registry, tool

@tool
def look() -> str:
    "Look."
    return "seen"

@tool(side_effects=True)
async def charge(cents: int) -> str:
    "Charge."
    await asyncio.sleep(0.2)
    print("charging", flush=True)
    await asyncio.Event().wait()

async def main():
    book = RunRecorder(open_store(sys.argv[1]).runs, "ann")
    model = Scripted([Text(text="Let me see."), call("look", {}, "one"), call("charge", {"cents": 5}, "two")])
    async for _ in Agent(model, Executor(Registry(look, charge)), recorder=book).steps(user_request("Pay."), run="r"):
        pass

asyncio.run(main())
"""


@tool
def add(one: int, other: int) -> int:
    """Add."""
    return one + other


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/sessions.sqlite3"


def with_store(url, do):
    async def run():
        store = open_store(url)
        try:
            return await do(store)
        finally:
            await store.close()

    return asyncio.run(run())


async def silent(store):
    """Make the last heartbeat of a run look old."""
    then = int(time() - INTERRUPTED_AFTER - 5)
    await store._engine.write(lambda cursor: cursor.execute("UPDATE runs SET alive = ?", then))


def test_a_run_whose_process_is_killed_is_seen_as_interrupted_and_its_history_is_valid(url):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", HANGING, url], stdout=subprocess.PIPE, env=env)  # noqa: S603
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"charging\n"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()

    async def do(store):
        before = await past_run(store.runs, "ann", "r")
        await silent(store)
        return before.status, await past_run(store.runs, "ann", "r"), await past_run(store.runs, "eve", "r")

    before, run, others = with_store(url, do)
    assert (before, run.status, others) == ("running", "interrupted", None)
    assert [message.role for message in run.history] == ["user", "assistant", "user"]
    seen, charged = run.history[-1].parts
    assert (text_of(seen), seen.failed) == ("seen", False)
    assert charged.failed
    assert "interrupted" in text_of(charged)
    model = Scripted([Text(text="I do not know whether it was paid.")])
    later = asyncio.run(Agent(model, Executor(Registry(add))).run("And?", history=run.history))
    assert later.stop == "finished"
    assert model.requests[0].messages[:3] == run.history


def test_a_run_that_ended_is_read_as_it_was(url):
    thought = Reasoning(texts=("Hm.",), signature=Signature("google", "c2ln"))
    model = Scripted([thought, call("add", {"one": 1, "other": 2})], [Text(text="3")])

    async def do(store):
        made = Agent(model, Executor(Registry(add)), recorder=RunRecorder(store.runs, "ann"))
        ended = [step async for step in made.steps(user_request(), run="r")][-1]
        return ended, await past_run(store.runs, "ann", "r")

    ended, run = with_store(url, do)
    assert run.history == ended.history
    assert run.status == "finished"
    summary = msgspec.json.decode(run.summary)
    assert (summary["turns"], summary["calls"], summary["input"], summary["untrusted"]) == (2, 1, 30, False)


def test_a_history_that_was_made_shorter_is_read_so(url):
    model = Scripted([call("add", {"one": 1, "other": 2})], [Text(text="3")])
    compaction = Compaction(summarise=lambda _: "added", context=10, keep=0)

    async def do(store):
        made = Agent(model, Executor(Registry(add)), recorder=RunRecorder(store.runs, "ann"), compaction=compaction)
        ended = [step async for step in made.steps(user_request(), run="r")][-1]
        return ended, await past_run(store.runs, "ann", "r")

    ended, run = with_store(url, do)
    assert run.history == ended.history
    assert len(run.history) == 2


def test_a_long_run_sends_heartbeats(url):
    release = asyncio.Event()

    @tool
    async def work() -> str:
        """Work."""
        await release.wait()
        return "done"

    async def do(store):
        made = Agent(
            Scripted([call("work")], [Text(text="x")]),
            Executor(Registry(work)),
            recorder=RunRecorder(store.runs, "ann", heartbeat_seconds=0.01),
        )
        result = made.steps(user_request(), run="r")
        statuses = []
        async for step in result:
            if type(step).__name__ == "CallStarted":
                await silent(store)
                while (await find_run(store, "ann", "r")).status != "running":  # noqa: ASYNC110  a table tells nobody
                    await asyncio.sleep(0.01)
                statuses.append("heard")
                release.set()
        return statuses

    assert with_store(url, do) == ["heard"]


def test_a_second_run_with_the_same_name_is_a_conflict(url):
    async def do(store):
        made = Agent(Scripted([Text(text="x")]), Executor(Registry(add)), recorder=RunRecorder(store.runs, "ann"))
        _ = [step async for step in made.steps(user_request(), run="r")]
        return [step async for step in made.steps(user_request(), run="r")][-1]

    assert with_store(url, do).problem.kind == "conflict"


class Flaky:
    """A store of runs that is unavailable now and then."""

    def __init__(self, runs, down):
        self._runs, self._down, self._asked = runs, down, 0

    def __getattr__(self, name):
        async def ask(*values, **named):
            self._asked += 1
            if self._asked in self._down:
                raise Unavailable("down")
            return await getattr(self._runs, name)(*values, **named)

        return ask


def test_a_store_that_is_down_for_a_while_loses_nothing(url):
    model = Scripted([call("add", {"one": 1, "other": 2})], [Text(text="3")])

    async def do(store):
        book = RunRecorder(Flaky(store.runs, {2, 3}), "ann")
        ended = [
            step async for step in Agent(model, Executor(Registry(add)), recorder=book).steps(user_request(), run="r")
        ][-1]
        return ended, await past_run(store.runs, "ann", "r")

    ended, run = with_store(url, do)
    assert (ended.stop, run.status) == ("finished", "finished")
    assert run.history == ended.history


def test_without_a_store_a_run_does_not_begin(url):
    model = Scripted([Text(text="x")])

    async def do(store):
        book = RunRecorder(Flaky(store.runs, {1}), "ann")
        return [step async for step in Agent(model, Executor(Registry(add)), recorder=book).steps(user_request())][-1]

    ended = with_store(url, do)
    assert (ended.stop, ended.problem.code, model.requests) == ("failed", "sessions_unavailable", [])


def test_a_run_that_ran_out_of_time_is_written_with_all_its_results(url):
    @tool
    async def hang() -> str:
        """Hang."""
        await asyncio.Event().wait()
        return ""

    request = Request(model="m", messages=user_request().messages)

    async def do(store):
        model = Scripted([call("add", {"one": 1, "other": 2}, "a"), call("hang", {}, "b")])
        made = Agent(
            model, Executor(Registry(add, hang)), recorder=RunRecorder(store.runs, "ann"), limits=Limits(seconds=1)
        )
        ended = [step async for step in made.steps(request, run="r")][-1]
        return ended, await past_run(store.runs, "ann", "r")

    ended, run = with_store(url, do)
    assert (run.status, run.history) == ("seconds", ended.history)


def test_a_run_that_is_cancelled_while_it_starts_is_not_left_running(url):
    class Slow:
        """A store whose `begin` writes the run but never returns."""

        def __init__(self, runs):
            self._runs = runs
            self.written = asyncio.Event()

        def __getattr__(self, name):
            return getattr(self._runs, name)

        async def begin(self, *values, **named):
            await self._runs.begin(*values, **named)
            self.written.set()
            await asyncio.Event().wait()

    async def do(store):
        slow = Slow(store.runs)
        made = Agent(Scripted([Text(text="x")]), Executor(Registry(add)), recorder=RunRecorder(slow, "ann"))
        run = asyncio.create_task(anext(made.steps(user_request(), run="r")))
        await slow.written.wait()
        made.cancel("r")
        ended = await run
        return ended.stop, (await past_run(store.runs, "ann", "r")).status

    assert with_store(url, do) == ("cancelled", "cancelled")
