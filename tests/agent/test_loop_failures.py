"""What goes wrong in a run: a model's errors, mistakes of the functions it was given, and answers with nothing in them."""

import asyncio

import pytest
from msgspec import structs

from agent.scripted import Scripted, agent, call, reply, run_to_end, steps, text_of, user_request, whole
from dragoman.agent import CallEnded, CallStarted, Compaction
from dragoman.core.events import Failed, PartDelta, PartStarted, Started
from dragoman.core.parts import Reasoning, Refusal, Text
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Tool
from dragoman.core.stream import replay
from dragoman.tools import tool


@tool
def add(one: int, other: int) -> int:
    """Add two numbers."""
    return one + other


@pytest.mark.parametrize("raised", [True, False])
def test_a_problem_of_the_model_ends_the_run_and_is_reported(raised):
    problem = Problem("overloaded", "try later")

    async def fail(request):
        if raised:
            raise problem
        yield Failed(problem)

    reached = run_to_end(agent(fail, add))
    assert (reached.stop, reached.problem) == ("failed", problem)
    with pytest.raises(Problem, match="try later"):
        whole(agent(fail, add))


def test_a_stream_that_breaks_off_leaves_a_valid_history():
    async def cut(request):
        yield Started("r", "scripted")
        yield PartStarted(0, Text(text=""))

    reached = run_to_end(agent(cut, add))
    assert (reached.stop, reached.history) == ("failed", user_request().messages)


async def wrong(request):
    yield Started("r", "scripted")
    yield PartStarted(0, Text(text=""))
    yield PartDelta(0, "I be")
    raise ZeroDivisionError("a secret")


async def cancel(request):
    await asyncio.sleep(0)
    raise asyncio.CancelledError
    yield


async def ungrammatical(request):
    yield PartDelta(3, "nothing has begun")


@pytest.mark.parametrize("model", [wrong, cancel, ungrammatical, lambda request: None, lambda: None])
def test_a_mistake_of_the_model_function_is_a_failed_run_and_is_in_the_log(model, caplog):
    reached = run_to_end(agent(model, add))
    assert (reached.stop, reached.problem.kind) == ("failed", "internal")
    assert reached.problem.message.startswith("the model failed (")
    assert "the model failed" in caplog.text
    assert "Traceback" in caplog.text
    output = [Message(role="assistant", parts=(Text(text="I be"),))] if model is wrong else []
    assert reached.history == (*user_request().messages, *output)
    assert isinstance(reached.problem.__cause__, BaseException)
    assert "secret" not in reached.problem.message
    with pytest.raises(Problem, match="the model failed"):
        whole(agent(model, add))


def test_text_before_a_model_failure_is_kept_and_an_incomplete_call_is_not():
    async def cut(request):
        for event in list(replay(reply([Text(text="I add."), call("add", {"one": 1, "other": 2})])))[:-3]:
            yield event
        yield Failed(Problem("overloaded", "try later"))

    reached = run_to_end(agent(cut, add))
    assert reached.history[-1] == Message(role="assistant", parts=(Text(text="I add."),))
    assert (reached.stop, reached.problem.kind) == ("failed", "overloaded")


def test_a_policy_that_raises_ends_the_run_with_every_call_answered():
    def stay_undecided(requested):
        if requested.call.id == "b":
            raise KeyError("who?")
        return "allow"

    calls = [call("add", {"one": 1, "other": 2}, name) for name in ("a", "b")]
    output = steps(agent(Scripted(calls), add, approve=stay_undecided))
    reached = output[-1]
    assert (reached.stop, reached.problem.message) == ("failed", "the approval policy failed (KeyError)")
    assert [result.call_id for result in reached.history[-1].parts] == ["a", "b"]
    assert all("interrupted" in text_of(result) for result in reached.history[-1].parts)
    assert [step.call.id for step in output if isinstance(step, CallEnded)] == ["a", "b"]
    assert not any(isinstance(step, CallStarted) for step in output)


def test_a_price_function_that_fails_ends_the_run_after_its_answer():
    reached = run_to_end(agent(Scripted([Text(text="3")]), add, price=lambda model, usage: 1 / 0))
    assert (reached.stop, reached.text) == ("failed", "3")


def test_a_summary_that_raises_leaves_the_history_as_it_is():
    compaction = Compaction(summarise=lambda messages: 1 / 0, context=1, keep=1)
    model = Scripted([call("add", {"one": 1, "other": 2})], [Text(text="3")])
    assert run_to_end(agent(model, add, compaction=compaction)).text == "3"


@pytest.mark.parametrize("hollow", [[], [Text(text=" ")], [Reasoning(texts=("hm",)), Text(text="")]])
def test_an_empty_reply_is_retried_once(hollow):
    first = [call("add", {"one": 1, "other": 2})]
    model = Scripted(first, hollow, [Text(text="3")])
    reached = run_to_end(agent(model, add))
    assert (reached.stop, reached.text, reached.statistics.turns) == ("finished", "3", 3)
    assert model.requests[1].messages == model.requests[2].messages
    silent = Scripted(first, hollow)
    reached = run_to_end(agent(silent, add))
    assert (reached.stop, reached.text, len(silent.requests)) == ("finished", "", 3)
    assert [message.role for message in reached.history] == ["user", "assistant", "user"]


def test_an_open_gateway_call_in_the_history_gets_a_result_and_a_client_call_does_not():
    ours, theirs = call("add", {"one": 1, "other": 2}, "ours"), call("theirs", {}, "theirs")
    result = Message(role="assistant", parts=(ours,))
    request = user_request(tools=(Tool(name="theirs"),))
    left = run_to_end(
        agent(Scripted([Text(text="ok")]), add), structs.replace(request, messages=(*request.messages, result))
    )
    assert "interrupted" in text_of(left.history[-2].parts[0])
    waiting = (*request.messages, structs.replace(result, parts=(theirs,)))
    model = Scripted([Text(text="ok")])
    run_to_end(agent(model, add), structs.replace(request, messages=waiting))
    assert model.requests[0].messages == waiting


def test_a_refusal_is_the_final_text_of_a_run():
    assert run_to_end(agent(Scripted([Refusal(text="I will not.")]), add)).text == "I will not."
