"""A tool with side effects runs once for each idempotency key."""

import asyncio
from typing import Any

import pytest

from dragoman.tools import Executor, Handler
from tools.tool_calls import call, executor, handler, text_of


class Till:
    """Counts what it was asked to do."""

    def __init__(self, **flags: Any) -> None:
        self.runs = 0
        self.handler: Handler = handler(self.charge, "charge", side_effects=True, **flags)
        self.open = asyncio.Event()
        self.open.set()
        self.begun = asyncio.Event()

    async def charge(self, arguments: Any) -> str:
        self.runs += 1
        run = self.runs
        self.begun.set()
        await self.open.wait()
        if arguments.get("broken"):
            raise RuntimeError("the card was eaten")
        return f"receipt {run}"


async def twice(runner: Executor, arguments: Any = None) -> tuple[str, str]:
    first = await runner.execute(call("charge", arguments, "a"), key="k1")
    second = await runner.perform(call("charge", arguments, "b"), key="k1")
    assert second.result.call_id == "b"
    assert second.repeated
    return text_of(first), text_of(second.result)


def test_the_same_key_gives_the_same_result_without_running_twice():
    till = Till()
    assert asyncio.run(twice(executor(till.handler))) == ("receipt 1", "receipt 1")
    assert till.runs == 1


def test_a_failure_is_cached_too_because_it_may_have_had_its_effect():
    till = Till()
    first, second = asyncio.run(twice(executor(till.handler), {"broken": True}))
    assert first == second == "charge failed: RuntimeError: the card was eaten"
    assert till.runs == 1


def test_a_repeated_call_waits_for_the_running_one():
    till = Till()
    runner = executor(till.handler)

    async def steps() -> list[str]:
        till.open.clear()
        asked = [asyncio.create_task(runner.execute(call("charge"), key="k1")) for _ in range(5)]
        await till.begun.wait()
        till.open.set()
        return [text_of(result) for result in await asyncio.gather(*asked)]

    assert asyncio.run(steps()) == ["receipt 1"] * 5
    assert till.runs == 1


def test_other_keys_and_no_key_run_again():
    till = Till()
    runner = executor(till.handler)

    async def steps() -> None:
        for key in ("k1", "k2", "", ""):
            await runner.execute(call("charge"), key=key)

    asyncio.run(steps())
    assert till.runs == 4


@pytest.mark.parametrize("id_", ["", "call_0"])
def test_calls_of_a_turn_that_have_one_id_are_run_each_and_once(id_):
    till = Till()
    calls = [call("charge", {"cents": cents}, id_) for cents in (1, 2, 2)]

    async def pa() -> list[str]:
        runner = executor(till.handler)
        return [text_of(result) for _ in range(2) for result in await runner.execute_all(calls, run="r")]

    assert asyncio.run(pa()) == ["receipt 1", "receipt 2", "receipt 3"] * 2


def test_a_tool_without_side_effects_runs_whatever_the_key():
    till = Till()
    runner = executor(handler(till.charge, "charge"))

    async def steps() -> None:
        for _ in range(2):
            await runner.execute(call("charge"), key="k1")

    asyncio.run(steps())
    assert till.runs == 2


def test_a_key_that_was_used_for_other_arguments_is_refused():
    till = Till()
    runner = executor(till.handler)

    async def steps() -> Any:
        await runner.execute(call("charge", {"amount": 1}), key="k1")
        return await runner.perform(call("charge", {"amount": 2}), key="k1")

    ended = asyncio.run(steps())
    assert (ended.outcome, till.runs) == ("conflict", 1)
    assert "was used before for another call of 'charge'" in text_of(ended.result)


def test_a_call_that_was_interrupted_is_not_run_again():
    till = Till()
    runner = executor(till.handler)

    async def steps() -> str:
        till.open.clear()
        task = asyncio.create_task(runner.execute(call("charge"), key="k1"))
        await till.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return text_of(await runner.execute(call("charge"), key="k1"))

    assert "whether it had its effect is not known" in asyncio.run(steps())
    assert till.runs == 1


def test_a_call_that_was_cancelled_before_it_began_may_run():
    till = Till()
    runner = executor(till.handler, concurrency=1)

    async def steps() -> str:
        till.open.clear()
        first = asyncio.create_task(runner.execute(call("charge"), key="k1"))
        await till.begun.wait()
        second = asyncio.create_task(runner.execute(call("charge"), key="k2"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait({second})
        till.open.set()
        await first
        return text_of(await runner.execute(call("charge"), key="k2"))

    assert asyncio.run(steps()) == "receipt 2"


def test_the_memory_is_bounded_and_forgets_the_oldest_first():
    till = Till()
    runner = executor(till.handler, max_cached_results=3)

    async def steps() -> list[str]:
        for n in range(5):
            await runner.execute(call("charge"), key=f"k{n}")
        return [text_of(await runner.execute(call("charge"), key=key)) for key in ("k4", "k2", "k0")]

    assert asyncio.run(steps()) == ["receipt 5", "receipt 3", "receipt 6"]
    assert len(runner._idempotency_cache) == 3


def test_the_memory_is_bounded_in_bytes(monkeypatch):
    monkeypatch.setattr("dragoman.tools.executor.MAX_CACHED_BYTES", 1000)
    runner = executor(handler(lambda arguments: "x" * 400, side_effects=True))

    async def steps() -> None:
        for n in range(5):
            await runner.execute(call("work"), key=f"k{n}")

    asyncio.run(steps())
    assert len(runner._idempotency_cache) == 2


def test_a_turn_that_is_run_again_is_not_done_again():
    till = Till()
    runner = executor(till.handler)
    asked = [call("charge", identity="a"), call("charge", identity="b")]

    async def steps() -> list[list[str]]:
        return [[text_of(result) for result in await runner.execute_all(asked, run="run_1")] for _ in range(2)]

    first, second = asyncio.run(steps())
    assert first == second
    assert till.runs == 2
