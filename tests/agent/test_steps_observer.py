"""Additional reports of a run: the progress of calls, and one record of each run."""

import asyncio
import logging
import threading

from agent.scripted import Scripted, agent, call, run_to_end, steps, user_request, whole
from dragoman.agent import InProcess
from dragoman.agent.steps import CallEnded, CallProgressed, CallStarted
from dragoman.core.parts import Text
from dragoman.tools import reporter, tool


@tool
async def climb(height: int) -> str:
    """Climb."""
    say = reporter()
    for metre in range(1, height + 1):
        say(metre, height, f"at {metre} m")
        await asyncio.sleep(0)
    return "up"


@tool
def dig(depth: int) -> str:
    """Dig, in a thread."""
    say = reporter()
    for metre in range(1, depth + 1):
        say(metre, depth, "")
    return "down"


def run_turn(*turn, tools=(climb, dig), **settings):
    return steps(agent(Scripted(list(turn), [Text(text="Done.")]), *tools, **settings))


def test_progress_of_a_call_is_reported_while_it_runs():
    story = run_turn(call("climb", {"height": 3}, "c"))
    received = [step.progress for step in story if isinstance(step, CallProgressed)]
    assert [(each.done, each.total, each.message) for each in received][-1] == (3, 3, "at 3 m")
    assert {each.call.id for each in received} == {"c"}
    kinds = [type(step) for step in story]
    assert kinds.index(CallStarted) < kinds.index(CallProgressed) < kinds.index(CallEnded)
    assert not any(isinstance(step, CallProgressed) for step in story[kinds.index(CallEnded) :])


def test_frequent_progress_of_a_thread_is_reduced_to_the_newest():
    story = run_turn(call("dig", {"depth": 5000}, "d"), runtime=lambda run: InProcess(run, max_pending=2))
    received = [step.progress.done for step in story if isinstance(step, CallProgressed)]
    assert received[-1] == 5000
    assert received == sorted(received)
    assert len(received) < 5000


def test_parallel_calls_each_report_their_own_progress():
    story = run_turn(call("climb", {"height": 2}, "a"), call("climb", {"height": 4}, "b"))
    last = {step.progress.call.id: step.progress.done for step in story if isinstance(step, CallProgressed)}
    assert last == {"a": 2, "b": 4}


def test_progress_after_the_end_of_a_call_is_ignored():
    late = []

    @tool
    def leave() -> str:
        """Leave something that speaks later."""
        say = reporter()
        gone = threading.Event()
        late.append((gone, threading.Thread(target=lambda: (gone.wait(5), say(1, None, "late")))))
        late[0][1].start()
        return "left"

    story = run_turn(call("leave", {}, "l"), tools=(leave,))
    late[0][0].set()
    late[0][1].join()
    assert not any(isinstance(step, CallProgressed) for step in story)


def test_closing_the_steps_during_progress_blocks_nothing():
    @tool
    async def babble() -> str:
        """Say something for ever."""
        say, done = reporter(), 0
        while True:
            done += 1
            say(done, None, "")
            await asyncio.sleep(0)

    async def leave():
        made = agent(Scripted([call("babble")]), babble, runtime=lambda run: InProcess(run, max_pending=1))
        watched = made.steps(user_request())
        async for step in watched:
            if isinstance(step, CallProgressed):
                await asyncio.sleep(0.01)
                break
        await asyncio.wait_for(watched.aclose(), 20)

    asyncio.run(leave())


def test_progress_is_no_part_of_the_one_reply():
    reply = whole(agent(Scripted([call("climb", {"height": 3})], [Text(text="Done.")]), climb))
    assert [type(part).__name__ for part in reply.parts] == ["ToolCall", "ToolResult", "Text"]


def test_every_run_leaves_one_record_without_message_contents(caplog):
    with caplog.at_level(logging.INFO, "dragoman.agent"):
        run_to_end(
            agent(Scripted([call("climb", {"height": 77})], [Text(text="secret words")]), climb),
            user_request("my secret"),
        )
    (record,) = [record for record in caplog.records if record.name == "dragoman.agent"]
    assert (record.stop, record.turns, record.calls, record.tokens) == ("finished", 2, 1, 33)
    assert "secret" not in record.getMessage()
    assert "77" not in record.getMessage().partition(": ")[2]
