"""Each call becomes one result, whatever happens; each leaves one log record."""

import asyncio
import logging
import math
import sys
import threading
from typing import Any

import pytest

from dragoman.core.request import Tool
from dragoman.tools import Handler, Invocation, Registry, ToolFailure, invocation, tool
from dragoman.tools.executor import Executor
from tools.tool_calls import ANY_OBJECT, call, executor, handler, run, text_of


def fail(error: BaseException) -> Handler:
    def work(arguments: Any) -> None:
        raise error

    return handler(work)


def fail_on_the_loop(error: BaseException) -> Handler:
    async def work(arguments: Any) -> None:
        raise error

    return handler(work)


def test_a_plain_function_runs_in_a_thread_and_a_coroutine_on_the_loop():
    def run_in_thread(arguments: Any) -> str:
        return threading.current_thread().name

    async def loop(arguments: Any) -> str:
        return threading.current_thread().name

    assert text_of(run(handler(run_in_thread))) == "tool work"
    assert text_of(run(handler(loop))) == "MainThread"


def test_a_plain_function_that_returns_a_coroutine_is_awaited():
    async def later(arguments: Any) -> str:
        return "awaited"

    assert text_of(run(handler(lambda arguments: later({**arguments})))) == "awaited"


def test_the_result_answers_the_call():
    result = asyncio.run(executor(handler(lambda arguments: "x")).execute(call("work", identity="call_7")))
    assert (result.call_id, result.name, result.failed) == ("call_7", "work", False)


def test_free_text_reaches_a_tool_that_takes_text():
    definition = Tool(name="shell", form="text")
    runner = executor(Handler(definition=definition, run=lambda text: text.upper()))
    result = asyncio.run(runner.execute(call("shell", "ls -l", form="text")))
    assert (text_of(result), result.form) == ("LS -L", "text")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wether", "there is no tool named 'wether'. Did you mean 'weather'?"),
        ("xyzzy", "there is no tool named 'xyzzy'. There are: weather, mail."),
    ],
)
def test_an_unknown_tool_is_answered_with_those_there_are(name, words):
    runner = executor(handler(str, "weather"), handler(str, "mail"))
    result = asyncio.run(runner.execute(call(name)))
    assert (text_of(result), result.failed) == (words, True)


def test_without_any_tool_the_error_says_to_answer_without_tools():
    assert "Answer without tools" in text_of(asyncio.run(executor().execute(call("x"))))


def test_a_tool_that_comes_later_is_known():
    runner = executor()
    runner.registry.register(handler(lambda arguments: "new"))
    assert text_of(asyncio.run(runner.execute(call("work")))) == "new"


def test_invalid_arguments_do_not_reach_the_tool():
    ran: list[Any] = []
    schema = b'{"type":"object","properties":{"a":{"type":"integer"}}}'
    runner = executor(handler(ran.append, parameters=schema))
    ended = asyncio.run(runner.perform(call("work", {"a": "x"})))
    assert (ended.outcome, ended.has_run, ran) == ("invalid", False, [])
    assert text_of(ended.result).startswith("work was not run: 1 error in the arguments:\n- /a: ")


def test_arguments_that_were_cut_off_do_not_reach_the_tool_even_if_they_could_be_read():
    ran: list[Any] = []
    result = asyncio.run(executor(handler(ran.append)).execute(call("work", "{}", complete=False)))
    assert (result.failed, ran) == (True, [])
    assert "cut off in the middle" in text_of(result)


def test_a_converter_of_ones_own_may_refuse_arguments():
    def convert(arguments: Any) -> Any:
        raise ValueError("/a: must be a prime number")

    assert text_of(run(handler(str, convert=convert))) == "work was not run: /a: must be a prime number"


@pytest.mark.parametrize("made", [fail, fail_on_the_loop], ids=["thread", "loop"])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("disk full"), "work failed: RuntimeError: disk full"),
        (KeyError("city"), "work failed: KeyError: 'city'"),
        (TimeoutError(), "work failed: TimeoutError"),
        (SystemExit(3), "work failed: SystemExit: 3"),
        (asyncio.CancelledError(), "work failed: CancelledError"),
        (ToolFailure("There is no such city."), "There is no such city."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_a_tool_raises_becomes_a_failed_result_without_a_traceback(made, error, words):
    result = run(made(error))
    assert (text_of(result), result.failed) == (words, True)


def test_stop_iteration_from_a_thread_is_a_failed_result():
    assert text_of(run(fail(StopIteration("x")))) == "work failed: StopIteration: x"


def test_a_long_message_of_an_exception_is_cut():
    assert len(text_of(run(fail(ValueError("x" * 100_000))))) < 2100


def test_an_exception_whose_str_fails_is_a_failed_result():
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    result = run(fail(OddError()))
    assert (result.failed, text_of(result)) == (True, "work failed: OddError")


@pytest.mark.parametrize("made", [fail, fail_on_the_loop], ids=["thread", "loop"])
def test_outcomes_distinguish_a_tools_own_failure_from_an_exception(made):
    def outcome(error: BaseException) -> str:
        return asyncio.run(executor(made(error)).perform(call("work"))).outcome

    assert outcome(ToolFailure("no")) == "failed"
    assert outcome(ValueError("no")) == "error"


def test_a_tool_can_get_its_current_call_in_a_thread_and_on_the_loop():
    seen: list[Invocation | None] = []

    @tool
    def threaded() -> None:
        seen.append(invocation())

    @tool
    async def looped() -> None:
        seen.append(invocation())

    runner = executor(threaded, looped)
    asked = [call("threaded", identity="a"), call("looped", identity="b")]
    asyncio.run(runner.execute_all(asked, run="run_1"))
    assert sorted((each.call.id, each.key) for each in seen if each) == [("a", "run_1:a"), ("b", "run_1:b")]
    assert invocation() is None


def records(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [
        {word: getattr(record, word) for word in ("tool", "outcome", "bytes")}
        for record in caplog.records
        if record.name == "dragoman.tools"
    ]


def test_each_call_leaves_one_record_without_contents(caplog):
    caplog.set_level(logging.INFO, "dragoman.tools")

    def broken(arguments: Any) -> None:
        raise RuntimeError

    runner = executor(handler(lambda arguments: "the secret answer"), handler(broken, "broken"))
    asked = [call("work", {"q": "secret question"}), call("broken"), call("none\nsuch"), call("work", "{secret")]
    asyncio.run(runner.execute_all(asked))
    assert sorted(records(caplog), key=str) == sorted(
        [
            {"tool": "work", "outcome": "succeeded", "bytes": 17},
            {"tool": "broken", "outcome": "error", "bytes": 0},
            {"tool": "'none\\nsuch'", "outcome": "unknown", "bytes": 0},
            {"tool": "work", "outcome": "invalid", "bytes": 0},
        ],
        key=str,
    )
    assert "secret" not in caplog.text
    assert all(record.milliseconds >= 0 for record in caplog.records)


def test_the_traceback_of_an_accident_is_in_the_log_only(caplog):
    result = run(fail(RuntimeError("disk full")))
    assert "Traceback" in caplog.text
    assert "Traceback" not in text_of(result)
    assert __file__ not in text_of(result)


def test_a_tool_without_a_timeout_is_possible():
    assert text_of(run(handler(lambda arguments: "x", timeout=math.inf))) == "x"


def test_the_repr_of_an_executor_lists_its_tools():
    assert repr(executor(handler(str))) == "<Executor of <Registry of 1 tool: work>, 16 at once, 30 s each>"


@pytest.mark.parametrize("settings", [{"timeout": 0}, {"concurrency": 0}])
def test_limits_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match="timeout must be greater than 0"):
        Executor(Registry(), **settings)


def test_one_executor_serves_one_event_loop_after_another():
    async def work(arguments: Any) -> str:
        await asyncio.sleep(0)
        return "x"

    runner = executor(handler(work), concurrency=1)
    for _ in range(3):
        results = asyncio.run(runner.execute_all([call("work")] * 5))
        assert [text_of(result) for result in results] == ["x"] * 5


@pytest.mark.skipif(sys.platform == "win32", reason="uvloop is not for Windows")
def test_it_runs_on_uvloop():
    import uvloop

    async def work(arguments: Any) -> str:
        return "loop"

    runner = executor(handler(work), handler(lambda arguments: "thread", "threaded", ANY_OBJECT, timeout=math.inf))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        results = loop.run(runner.execute_all([call("work"), call("threaded")] * 20))
    assert [text_of(result) for result in results] == ["loop", "thread"] * 20


class SpeechlessError(Exception):
    """An error that cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("made", [fail, fail_on_the_loop])
def test_an_error_without_a_message_is_reported_by_its_class(made, caplog):
    result = run(made(SpeechlessError()))
    assert (result.failed, text_of(result)) == (True, "work failed: SpeechlessError")
    assert "SpeechlessError" in caplog.text


@pytest.mark.parametrize("limit", ["max_output", "max_media", "max_cached_results"])
def test_limits_below_nothing_are_refused(limit):
    with pytest.raises(ValueError, match=limit):
        Executor(Registry(), **{limit: -1})


def test_a_dict_of_numbers_is_an_object_with_numbers_for_names():
    @tool
    def shelf(books: dict[int, str]) -> list[Any]:
        """Tell which book is on which shelf."""
        return [[place, title] for place, title in books.items()]

    result = asyncio.run(Executor(Registry(shelf)).execute(call("shelf", {"books": {"7": "Emma"}})))
    assert result.content[0].json == b'[[7,"Emma"]]'
    wrong = asyncio.run(Executor(Registry(shelf)).execute(call("shelf", {"books": {"seven": "Emma"}})))
    assert wrong.failed
