"""Progress of a tool is reported to the caller that runs it."""

import asyncio

from dragoman.tools import tool
from dragoman.tools.handler import progress_to, reporter
from tools.tool_calls import call, executor, text_of


@tool
async def walk(steps: int) -> str:
    """Walk."""
    say = reporter()
    if say is None:
        return "unheard"
    for step in range(steps):
        say(step + 1, steps, f"step {step + 1}")
    return "heard"


@tool
def climb() -> str:
    """Climb, in a thread."""
    say = reporter()
    assert say is not None
    say(0.5, None, "")
    return "up"


def test_each_listener_gets_the_progress_of_its_own_calls():
    first, second = [], []

    async def run():
        runner = executor(walk, climb)

        async def execute(listener, *calls):
            with progress_to(listener):
                return await runner.execute_all(calls)

        results = await asyncio.gather(
            execute(first.append, call("walk", {"steps": 2}, "a"), call("climb", {}, "b")),
            execute(second.append, call("walk", {"steps": 1}, "c")),
        )
        return results, await runner.execute(call("walk", {"steps": 1}))

    results, alone = asyncio.run(run())
    assert [text_of(result) for group in results for result in group] == ["heard", "up", "heard"]
    assert [(each.call.id, each.done, each.total, each.message) for each in first if each.call.id == "a"] == [
        ("a", 1, 2, "step 1"),
        ("a", 2, 2, "step 2"),
    ]
    assert [(each.done, each.total) for each in first if each.call.id == "b"] == [(0.5, None)]
    assert [each.call.id for each in second] == ["c"]
    assert text_of(alone) == "unheard"


def test_a_listener_that_fails_does_not_break_the_tool(caplog):
    def broken(_):
        raise RuntimeError("deaf")

    async def run():
        with progress_to(broken):
            return await executor(walk).execute(call("walk", {"steps": 1}))

    assert text_of(asyncio.run(run())) == "heard"
    assert "the progress listener failed" in caplog.text


def test_outside_a_tool_there_is_no_progress():
    with progress_to(lambda _: None):
        assert reporter() is None
