"""Many calls at once: bounded, in order, none held up by another."""

import asyncio
import gc
import subprocess
import sys
import threading
import tracemalloc
from typing import Any

import pytest

from dragoman.core.parts import ToolCall, ToolResult
from dragoman.tools import tool
from dragoman.tools.executor import Executor
from tools.tool_calls import call, executor, handler, run, text_of


class Watch:
    """How many run at the same time, and in what order they began and ended."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.story: list[str] = []

    async def work(self, arguments: Any) -> str:
        name = arguments["name"]
        self.now += 1
        self.most = max(self.most, self.now)
        self.story.append(f"+{name}")
        await asyncio.sleep(arguments.get("turns", 1) / 1000)
        self.story.append(f"-{name}")
        self.now -= 1
        return name


def build_calls(count: int) -> list[ToolCall]:
    return [call("work", {"name": str(n), "turns": count - n}, f"call_{n}") for n in range(count)]


def test_calls_run_at_once_up_to_the_bound_and_results_keep_the_order():
    watch = Watch()
    results = asyncio.run(executor(handler(watch.work), concurrency=4).execute_all(build_calls(20)))
    assert [text_of(result) for result in results] == [str(n) for n in range(20)]
    assert [result.call_id for result in results] == [f"call_{n}" for n in range(20)]
    assert watch.most == 4


def test_the_bound_holds_over_several_turns_at_once():
    watch = Watch()
    runner = executor(handler(watch.work), concurrency=3)

    async def turns() -> None:
        await asyncio.gather(*(runner.execute_all(build_calls(5)) for _ in range(4)))

    asyncio.run(turns())
    assert watch.most == 3


def test_a_sequential_call_runs_alone_and_in_its_place():
    watch = Watch()
    runner = executor(handler(watch.work), handler(watch.work, "alone", sequential=True))
    asked = [
        call(name, {"name": letter})
        for name, letter in zip(["work", "work", "alone", "alone", "work"], "abcde", strict=True)
    ]
    results = asyncio.run(runner.execute_all(asked))
    assert [text_of(result) for result in results] == list("abcde")
    assert set(watch.story[:2]) == {"+a", "+b"}
    assert watch.story[4:] == ["+c", "-c", "+d", "-d", "+e", "-e"]


def test_threads_really_run_at_once():
    together = threading.Barrier(8, timeout=10)

    def meet(arguments: Any) -> int:
        return together.wait()

    results = asyncio.run(executor(handler(meet), concurrency=8).execute_all([call("work")] * 8))
    assert sorted(int(text_of(result)) for result in results) == list(range(8))


def test_a_tool_that_runs_tools_cannot_wait_for_the_place_it_holds():
    runner: Executor

    @tool
    async def outer() -> str:
        results = await runner.execute_all([call("inner")] * 3)
        return "".join(map(text_of, results))

    @tool
    def inner() -> str:
        return "i"

    runner = executor(outer, inner, concurrency=1, timeout=10)
    results = asyncio.run(runner.execute_all([call("outer")] * 3))
    assert [text_of(result) for result in results] == ["iii"] * 3


def test_tools_that_run_tools_that_run_tools_come_to_an_end():
    runner: Executor

    async def deeper(arguments: Any) -> str:
        level = arguments["level"]
        if not level:
            return "end"
        return f"{level} " + text_of(await runner.execute(call("work", {"level": level - 1})))

    runner = executor(handler(deeper), concurrency=1, timeout=10)
    results = asyncio.run(runner.execute_all([call("work", {"level": 4})] * 2))
    assert [text_of(result) for result in results] == ["4 3 2 1 end"] * 2


def test_threads_that_end_in_time_are_not_counted_as_left_behind():
    runner = executor(handler(lambda arguments: "x"))
    asyncio.run(runner.execute_all([call("work")] * 50))
    assert runner._workers.count_stuck("work") == 0


def test_a_call_that_takes_too_long_is_stopped_and_reported():
    stopped: list[str] = []

    async def work(arguments: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("cleaned up")

    result = run(handler(work, timeout=0.02))
    assert text_of(result) == "work took longer than 0.02 seconds and was stopped. Ask for less, or go on without it."
    assert result.failed
    assert stopped == ["cleaned up"]


def test_a_timeout_of_the_executor_holds_where_the_tool_has_none():
    async def work(arguments: Any) -> None:
        await asyncio.Event().wait()

    assert "longer than 0.02 seconds" in text_of(run(handler(work), timeout=0.02))


def test_waiting_for_a_place_takes_nothing_from_a_calls_own_time():
    async def work(arguments: Any) -> str:
        await asyncio.sleep(0.3)
        return "x"

    results = asyncio.run(executor(handler(work), concurrency=1, timeout=0.8).execute_all([call("work")] * 4))
    assert not any(result.failed for result in results)


def test_a_hanging_thread_blocks_no_other_call():
    release = threading.Event()

    def hang(arguments: Any) -> None:
        release.wait()

    runner = executor(handler(hang, "hang", timeout=0.02), handler(lambda arguments: "x", "quick"), concurrency=2)
    asked = [call("hang"), call("hang"), call("hang"), *[call("quick")] * 10]
    try:
        results = asyncio.run(runner.execute_all(asked))
    finally:
        release.set()
    assert [result.failed for result in results] == [True] * 3 + [False] * 10


def test_a_tool_whose_threads_hang_is_not_run_until_they_end(monkeypatch):
    monkeypatch.setattr("dragoman.tools.executor.MAX_STUCK", 3)
    release = threading.Event()
    started: list[int] = []

    def hang(arguments: Any) -> str:
        started.append(1)
        release.wait()
        return "ended"

    runner = executor(handler(hang, timeout=0.1))
    hung = asyncio.run(one_after_another(runner, 5))
    assert len(started) == 3
    assert ["longer than" in words for words in hung] == [True, True, True, False, False]
    assert hung[-1] == "work was not run: 3 earlier calls of it have not ended. Go on without it."
    left = [thread for thread in threading.enumerate() if thread.name == "tool work"]
    release.set()
    for thread in left:
        thread.join()
    assert asyncio.run(one_after_another(runner, 1)) == ["ended"]


async def one_after_another(runner: Executor, count: int) -> list[str]:
    return [text_of(await runner.execute(call("work"))) for _ in range(count)]


def test_a_coroutine_that_will_not_be_cancelled_is_left_behind(monkeypatch):
    monkeypatch.setattr("dragoman.tools.workers._GRACE", 0.01)

    async def steps() -> tuple[ToolResult, int, int]:
        release = asyncio.Event()

        async def stubborn(arguments: Any) -> None:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

        runner = executor(handler(stubborn, timeout=0.01))
        result = await runner.execute(call("work"))
        before = runner._workers.count_stuck("work")
        release.set()
        await asyncio.sleep(0.01)
        return result, before, runner._workers.count_stuck("work")

    result, before, after = asyncio.run(steps())
    assert result.failed
    assert (before, after) == (1, 0)


def test_a_hanging_thread_does_not_keep_a_program_from_ending():
    program = """
import asyncio, threading
from dragoman.tools import Executor, Registry, tool
from dragoman.core.parts import ToolCall

@tool(timeout=0.05)
def hang() -> None:
    threading.Event().wait()

result = asyncio.run(Executor(Registry(hang)).execute(ToolCall(id="1", name="hang", arguments="{}")))
print(result.failed)
"""
    captured = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)  # noqa: S603
    assert captured.stdout == "True\n"


def test_cancelling_a_turn_cancels_what_runs_and_is_not_swallowed():
    story: list[str] = []

    async def steps() -> None:
        running = asyncio.Event()

        async def work(arguments: Any) -> None:
            running.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                story.append(f"cancelled {arguments['name']}")
                raise

        runner = executor(handler(work), concurrency=2)
        turn = asyncio.create_task(runner.execute_all([call("work", {"name": n}) for n in range(5)]))
        await running.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    asyncio.run(steps())
    assert sorted(story) == ["cancelled 0", "cancelled 1"]


def test_cancelling_does_not_wait_for_a_thread():
    release = threading.Event()
    ended: list[str] = []

    async def steps() -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def hang(arguments: Any) -> None:
            loop.call_soon_threadsafe(begun.set)
            release.wait(30)
            ended.append("the thread")

        task = asyncio.create_task(executor(handler(hang)).execute(call("work")))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        ended.append("the call")

    try:
        asyncio.run(steps())
        assert ended == ["the call"]
    finally:
        release.set()


def test_a_cancelled_call_leaves_its_record(caplog):
    caplog.set_level("INFO", "dragoman.tools")

    async def steps() -> None:
        async def work(arguments: Any) -> None:
            await asyncio.Event().wait()

        task = asyncio.create_task(executor(handler(work)).execute(call("work")))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(steps())
    assert [record.outcome for record in caplog.records] == ["cancelled"]


HUGE = 2 << 20
LIMIT = 10_000


def kind_of(number: int) -> str:
    """One call in ten goes wrong: it hangs, crashes or returns far too much, on the loop or in a thread."""
    ten = number // 10
    return ("hang", "crash", "huge")[ten % 3] if number % 10 == 3 + ten // 3 % 2 else "fine"


def storm(count: int) -> tuple[list[ToolCall], Executor, threading.Event]:
    release = threading.Event()

    def answer(number: int, kind: str) -> str:
        if kind == "crash":
            raise RuntimeError(f"crash {number}")
        return "x" * HUGE if kind == "huge" else f"answer {number}"

    def threaded(number: int, kind: str) -> str:
        if kind == "hang":
            release.wait()
        return answer(number, kind)

    async def looped(number: int, kind: str) -> str:
        await (asyncio.Event().wait() if kind == "hang" else asyncio.sleep(0))
        return answer(number, kind)

    def name_of(number: int) -> str:
        return f"{'looped' if number % 2 else 'threaded'}{'_hanging' if kind_of(number) == 'hang' else ''}_{number % 7}"

    # Only what hangs has little time: on a busy machine a call that is fine may take its while.
    made = {
        name_of(n): tool(name=name_of(n), timeout=0.3 if kind_of(n) == "hang" else 30)(looped if n % 2 else threaded)
        for n in range(count)
    }
    asked = [call(name_of(n), {"number": n, "kind": kind_of(n)}, f"call_{n}") for n in range(count)]
    return asked, executor(*made.values(), concurrency=64, max_output=LIMIT), release


def is_right(number: int, result: ToolResult) -> bool:
    words = text_of(result)
    match kind_of(number):
        case "fine":
            return words == f"answer {number}" and not result.failed
        case "crash":
            return words.endswith(f"failed: RuntimeError: crash {number}") and result.failed
        case "huge":
            return words.startswith("x" * LIMIT) and len(words) < LIMIT + 200 and result.failed
        case _:
            return "took longer than 0.3 seconds" in words and result.failed


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_hangs_crashes_and_floods_among_many_calls_leave_every_result_right_and_in_order(count):
    asked, runner, release = storm(count)
    threads = threading.active_count()
    gc.collect()
    tracemalloc.start()
    try:
        results = asyncio.run(runner.execute_all(asked))
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        left = threading.active_count() - threads
        release.set()
    wrong = [n for n, result in enumerate(results) if not is_right(n, result) or result.call_id != f"call_{n}"]
    assert wrong == []
    floods = sum(kind_of(n) == "huge" for n in range(count))
    assert kept < floods * 4 * LIMIT + count * 20_000
    assert most < kept + 16 * HUGE
    assert left <= sum(kind_of(n) == "hang" for n in range(0, count, 2))


def test_the_storm_has_every_kind_of_call_in_threads_and_on_the_loop():
    kinds = {(kind_of(n), n % 2) for n in range(200)}
    assert kinds == {(kind, odd) for kind in ("fine", "hang", "crash", "huge") for odd in (0, 1)}
    assert sum(kind_of(n) != "fine" for n in range(200)) == 20
