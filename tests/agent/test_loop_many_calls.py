"""A thousand calls of one turn, a tenth of them gone wrong: bounded memory, all results right and in order."""

import asyncio
import time
import tracemalloc

import pytest

from agent.scripted import Scripted, call, results_of, text_of, user_request
from dragoman.agent import Artifacts, CallEnded
from dragoman.agent.loop import Agent
from dragoman.core.parts import Text, ToolResult
from dragoman.core.stream import collect
from dragoman.tools import Executor, Registry, tool
from event_grammar import check_events

CALLS = 1000
HUGE = 8 << 20
SHOWN = 4 << 10


@tool(timeout=0.3)
async def hang(n: int, kind: str) -> str:
    """Never end. Only this one has little time: a busy machine must not make others late."""
    await asyncio.Event().wait()
    return f"{n} {kind}"


@tool
async def work(n: int, kind: str) -> str:
    """Do something, or go wrong."""
    match kind:
        case "crashes":
            raise RuntimeError(f"no. {n} crashed")
        case "is huge":
            return f"{n}:".ljust(HUGE, "x")
        case _:
            await asyncio.sleep(0.001 * (n % 7))
    return f"{n} is done"


@tool
def blocking(n: int) -> str:
    """Do something in a thread."""
    time.sleep(0.001)
    return f"{n} is done"


KINDS = ["hangs", "crashes", "is huge"]


def kinds() -> list[str]:
    """Every tenth call goes wrong, in each way in turn."""
    return [KINDS[n // 10 % 3] if n % 10 == 3 else "works" for n in range(CALLS)]


@pytest.fixture
def executor():
    artifacts = Artifacts(max_size=8 << 20)
    return Executor(Registry(work, hang, blocking), concurrency=16, max_output=SHOWN, spill=artifacts.spill)


def test_a_thousand_calls_with_a_tenth_gone_wrong_are_all_answered_in_order(executor):
    expected = kinds()
    calls = [
        call("hang" if kind == "hangs" else "work", {"n": n, "kind": kind}, f"call_{n}")
        for n, kind in enumerate(expected)
    ]
    model = Scripted(calls, [Text(text="Done.")])

    async def read():
        return [event async for event in Agent(model, executor)(user_request())]

    tracemalloc.start()
    events = collect(check_events(asyncio.run(read())))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    results = results_of(model.requests[1])
    assert [result.call_id for result in results] == [f"call_{n}" for n in range(CALLS)]
    for n, (kind, result) in enumerate(zip(expected, results, strict=True)):
        match kind:
            case "hangs":
                assert "took longer than 0.3 seconds" in text_of(result)
            case "crashes":
                assert f"no. {n} crashed" in text_of(result)
            case "is huge":
                assert text_of(result).startswith(f"{n}:x")
                assert len(text_of(result)) < SHOWN + 300
            case _:
                assert text_of(result) == f"{n} is done"
        assert result.failed == (kind in ("hangs", "crashes"))
    assert [part.call_id for part in events.parts if isinstance(part, ToolResult)] == [
        f"call_{n}" for n in range(CALLS)
    ]
    assert expected.count("works") == 900
    assert peak < 8 * HUGE < expected.count("is huge") * HUGE, f"{peak:,} bytes"


def test_a_thousand_calls_in_threads_end_too(executor):
    calls = [call("blocking", {"n": n}, f"call_{n}") for n in range(CALLS)]
    model = Scripted(calls, [Text(text="Done.")])

    async def read():
        return [step async for step in Agent(model, executor).steps(user_request())]

    output = asyncio.run(read())
    assert sum(isinstance(step, CallEnded) for step in output) == CALLS
    assert [text_of(result) for result in results_of(model.requests[1])] == [f"{n} is done" for n in range(CALLS)]
