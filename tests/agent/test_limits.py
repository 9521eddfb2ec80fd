"""How far a run goes, and that its history is valid wherever it ends."""

import asyncio
import time

import pytest

from agent.scripted import Scripted, agent, call, results_of, run_to_end, steps, text_of, user_request, whole
from dragoman.agent import CallEnded, CallStarted, RunEnded, TurnEnded
from dragoman.agent.limits import Limits
from dragoman.core.events import PartDelta, PartStarted, Started
from dragoman.core.parts import Reasoning, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Tool
from dragoman.tools import tool


@tool
def count(n: int) -> int:
    """Count on."""
    return n + 1


@tool
async def hang() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return ""


def count_on(request):
    """Count on until tools are gone."""
    if request.tool_choice is not None and request.tool_choice.mode == "none":
        return [Text(text="That far.")]
    return [call("count", {"n": len(request.messages)}, f"call_{len(request.messages)}")]


def is_valid(history):
    """Every call has one result in the message after it, and every result its call before it."""
    open_calls = []
    for message in history:
        results = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
        assert results == open_calls
        open_calls = [part.id for part in message.parts if isinstance(part, ToolCall)]
    return not open_calls


def test_a_budget_of_tokens_ends_the_run_before_more_is_run():
    # Turns use 11, 22, 33, ... tokens.
    reached = run_to_end(agent(Scripted(count_on), count, limits=Limits(tokens=60)))
    assert (reached.stop, reached.statistics.turns, reached.statistics.tokens) == ("tokens", 3, 66)
    assert is_valid(reached.history)
    assert "no more turns" in text_of(reached.history[-1].parts[0])
    assert whole(agent(Scripted(count_on), count, limits=Limits(tokens=60))).finish.reason == "length"


def test_an_answer_beyond_the_budget_is_an_answer():
    reached = run_to_end(
        agent(Scripted([Text(text="Hello.")]), count, limits=Limits(tokens=1, cost=0.001), price=lambda *_: 1.0)
    )
    assert (reached.stop, reached.statistics.cost) == ("finished", 1.0)


def test_a_budget_of_cost_counts_what_turns_cost():
    prices = []

    def price(model, usage):
        prices.append((model, usage.input))
        return 0.5

    reached = run_to_end(agent(Scripted(count_on), count, limits=Limits(cost=1.0), price=price))
    assert (reached.stop, reached.statistics.cost) == ("cost", 1.0)
    assert prices == [("scripted", 10), ("scripted", 20)]
    assert is_valid(reached.history)


def test_without_a_known_price_the_cost_is_unknown():
    assert run_to_end(agent(Scripted([Text(text="x")]), count, price=lambda *_: None)).statistics.cost is None


def test_calls_beyond_their_limit_are_not_run_and_the_model_answers_without_tools():
    calls = [call("count", {"n": n}, f"call_{n}") for n in range(5)]
    model = Scripted(calls, count_on)
    reached = run_to_end(agent(model, count, limits=Limits(calls=3)))
    assert reached.stop == "calls"
    assert [result.failed for result in results_of(model.requests[1])] == [False, False, False, True, True]
    assert "all 3 calls" in text_of(results_of(model.requests[1])[3])
    assert model.requests[1].tool_choice.mode == "none"
    assert reached.finish.reason == "stop"


def test_invalid_arguments_may_be_corrected_three_times_then_the_tool_is_removed():
    model = Scripted(lambda request: [call("count", {"n": f"no. {len(request.messages)}"})])
    run_to_end(agent(model, count, limits=Limits(turns=6)))
    output = [text_of(result) for result in results_of(model.requests[-2])]
    assert ["Go on without it" in each for each in output] == [False, False, False, False, True, True]


def test_arguments_that_fit_give_the_budget_back():
    wrong, right = {"n": "x"}, {"n": 1}
    script = [wrong, wrong, wrong, right, wrong, wrong, wrong]
    turns = [[call("count", arguments)] for arguments in script]
    model = Scripted(*turns, [Text(text="Done.")])
    run_to_end(agent(model, count))
    assert not any("Go on without it" in text_of(result) for result in results_of(model.requests[-1]))


def test_the_same_call_with_the_same_result_is_run_three_times_and_then_ends_the_run():
    ran = []

    @tool
    def look() -> str:
        """Look."""
        ran.append(1)
        return "nothing"

    def again(request):
        return [Text(text="I give up.")] if request.tool_choice else [ToolCall(id="c", name="look", arguments=" { } ")]

    model = Scripted(again)
    reached = run_to_end(agent(model, look))
    assert (len(ran), reached.stop, reached.statistics.turns) == (3, "repetition", 5)
    assert "the same call was made 3 times" in text_of(results_of(model.requests[-1])[-1])


def test_a_call_whose_result_changes_may_be_repeated():
    ran = []

    @tool
    def poll() -> str:
        """Poll."""
        ran.append(1)
        return f"{len(ran)} %"

    run_to_end(agent(Scripted(lambda request: [call("poll")]), poll, limits=Limits(turns=8)))
    assert len(ran) == 8


def test_the_same_call_many_times_in_one_turn_is_run_three_times():
    calls = [call("count", {"n": 1}, f"call_{n}") for n in range(5)]
    model = Scripted(calls, [Text(text="2")])
    assert run_to_end(agent(model, count)).stop == "finished"
    assert [result.failed for result in results_of(model.requests[1])] == [False] * 3 + [True] * 2


def test_when_time_is_up_finished_calls_keep_their_results_and_others_get_one():
    calls = [call("hang", {}, "a"), call("count", {"n": 1}, "b"), call("hang", {}, "c")]
    reached = run_to_end(agent(Scripted(calls), hang, count, limits=Limits(seconds=1)))
    assert reached.stop == "seconds"
    assert is_valid(reached.history)
    results = reached.history[-1].parts
    assert [result.failed for result in results] == [True, False, True]
    assert "interrupted" in text_of(results[0])
    output = whole(agent(Scripted(calls), hang, count, limits=Limits(seconds=1)))
    assert output.finish.reason == "length"
    assert [part.call_id for part in output.parts if isinstance(part, ToolResult)] == ["a", "b", "c"]


async def talk(request):
    """Say something, think, and begin a call; then be silent."""
    yield Started("r", "scripted")
    yield PartStarted(0, Text(text=""))
    yield PartDelta(0, "Let me")
    yield PartStarted(1, Reasoning())
    yield PartDelta(1, "think")
    yield PartStarted(2, ToolCall(id="c", name="count", arguments=""))
    yield PartDelta(2, '{"n":')
    await asyncio.Event().wait()


def test_complete_parts_are_kept_if_the_time_limit_ends_a_reply():
    reached = run_to_end(agent(talk, count, limits=Limits(seconds=0.5)))
    assert reached.history[1].parts == (Text(text="Let me"),)
    assert len(reached.history) == 2
    result = whole(agent(talk, count, limits=Limits(seconds=0.5)))
    assert result.finish.reason == "length"
    assert isinstance(result.parts[2], ToolCall)
    assert not result.parts[2].complete


def cancel(made, at, when, request=None):
    """Cancel a run when a step of that kind comes."""

    async def read():
        result, pressed = [], False
        async for step in made.steps(request or user_request(), run="r"):
            result.append(step)
            if isinstance(step, at) and not pressed:
                pressed = made.cancel("r", when)
                assert pressed
        assert not made.cancel("r")
        return result

    return asyncio.run(read())


def test_a_run_cancelled_now_leaves_its_calls_answered():
    calls = [call("hang", {}, "a"), call("hang", {}, "b")]
    result = cancel(agent(Scripted(calls), hang), CallStarted, "now")
    last = result[-1]
    assert isinstance(last, RunEnded)
    assert last.stop == "cancelled"
    assert is_valid(last.history)
    assert [step.execution.outcome for step in result if isinstance(step, CallEnded)] == ["cancelled"] * 2


def test_a_run_cancelled_during_a_reply_keeps_the_partial_reply():
    last = cancel(agent(talk, count), PartDelta, "now")[-1]
    assert (last.stop, last.history[1].parts) == ("cancelled", (Text(text="Let me"),))


def test_a_run_cancelled_after_the_turn_runs_its_calls_without_another_model_call():
    model = Scripted(count_on)
    output = cancel(agent(model, count), PartStarted, "after_turn")
    assert [type(step).__name__ for step in output[-4:]] == ["CallStarted", "CallEnded", "TurnEnded", "RunEnded"]
    assert (output[-1].stop, len(model.requests)) == ("cancelled", 1)
    assert [result.failed for result in output[-1].history[-1].parts] == [False]


def test_the_last_turn_is_not_cancelled_by_a_request_to_end_after_it():
    assert cancel(agent(Scripted([Text(text="x")]), count), PartStarted, "after_turn")[-1].stop == "finished"


def test_a_cancelled_run_is_a_reply_that_failed():
    made = agent(Scripted([call("hang")]), hang)

    async def read():
        async for _ in made(user_request()):
            for run in made._runs:
                made.cancel(run)

    asyncio.run(read())
    problem = steps(agent(Scripted(Problem("cancelled", "x")), hang))[-1].problem
    assert problem.kind == "cancelled"


@pytest.mark.parametrize("limits", [Limits(turns=0), Limits(turns=0, calls=0)])
def test_with_zero_turns_the_model_is_called_once_without_tools(limits):
    model = Scripted(count_on)
    reached = run_to_end(agent(model, count, limits=limits))
    assert (reached.stop, len(model.requests)) == ("turns", 1)


def test_a_paused_turn_continues():
    from agent.scripted import reply
    from dragoman.core.stream import replay

    replies = [reply([Text(text="One, ")], 1, "paused"), reply([Text(text="two.")], 2)]

    async def model(request):
        for event in replay(replies[len(request.messages) - 1]):
            yield event

    result = whole(agent(model, count))
    assert [part.text for part in result.parts] == ["One, ", "two."]
    assert result.finish.reason == "stop"


@pytest.mark.parametrize(("repairs", "asked_for"), [(3, 4), (0, 1)])
def test_an_unparsable_call_is_retried_within_the_repair_limit(repairs, asked_for):
    from agent.scripted import reply
    from dragoman.core.stream import replay

    requests = []

    async def model(request):
        requests.append(request)
        for event in replay(reply([], 1, "malformed_call")):
            yield event

    reached = run_to_end(agent(model, count, limits=Limits(repairs=repairs)))
    assert (reached.stop, reached.finish.reason, len(requests)) == ("finished", "malformed_call", asked_for)
    assert reached.history == user_request().messages


def test_the_clients_calls_are_left_open_also_at_a_limit():
    request = user_request(tools=(Tool(name="theirs"),))
    calls = [call("theirs", {}, "t"), call("count", {"n": 1}, "c")]
    reached = run_to_end(agent(Scripted(calls), count, limits=Limits(tokens=1)), request)
    assert reached.stop == "client_calls"
    assert [result.call_id for result in reached.history[-1].parts] == ["c"]


def test_statistics_include_the_duration():
    began = time.monotonic()
    reached = run_to_end(agent(Scripted(count_on), count))
    assert 0 < reached.statistics.seconds <= time.monotonic() - began + 1e-6


def test_turn_ended_has_the_models_whole_reply():
    turn = next(step for step in steps(agent(Scripted(count_on), count)) if isinstance(step, TurnEnded))
    assert turn.response.id == "reply_1"
