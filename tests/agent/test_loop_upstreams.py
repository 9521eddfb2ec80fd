"""The loop on every kind of upstream: its requests are accepted by the strict simulators of the vendors' APIs."""

import asyncio
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory

import pytest
from msgspec import structs

from agent.scripted import user_request
from dragoman.agent import CallEnded, Compaction, Limits, RunEnded, closed
from dragoman.agent.loop import Agent
from dragoman.config import Config, RetriesTable, ServerTable, SessionsTable
from dragoman.core.parts import Text, ToolCall, ToolResult
from dragoman.core.request import Message, Tool, ToolChoice
from dragoman.core.stream import collect
from dragoman.gateway.context import build_program_context
from dragoman.server.services import open_gateway_services
from dragoman.simulator import Answer, running
from dragoman.simulator import Call as Said
from dragoman.simulator.apis.conversation import RequestToolChoice
from dragoman.tools import Executor, Registry, tool
from event_grammar import check_events
from server.conftest import upstreams

KINDS = {
    "gemini": "gemini-3.8-flash",
    "anthropic": "claude-opus-4-8",
    "openai": "gpt-5.2",
    "responses": "gpt-5.2",
    "vertex": "gemini-3.8-flash",
    "vertex-claude": "claude-opus-4-8",
    "assist": "gemini-3.8-flash",
}
KEEP = Tool(
    name="keep",
    description="Keep something",
    parameters=b'{"type":"object","properties":{"what":{"type":"string"}},"required":["what"]}',
)


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"sun in {city}"


@tool
async def hang(city: str) -> str:
    """Never end."""
    await asyncio.Event().wait()
    return city


def result_texts(received):
    return [result.text for turn in received.request.turns for result in turn.results]


def two_rounds(received):
    """Ask for two cities at once, then for a third, then say what was found."""
    results = result_texts(received)
    if len(results) < 2:
        calls = [
            Said(id=f"c{at}", name="weather", arguments={"city": city}) for at, city in enumerate(("Rome", "Oslo"))
        ]
        return Answer(thought="Both at once.", text="Looking.", calls=tuple(calls), end="calls")
    if len(results) < 3:
        return Answer(calls=(Said(id="c9", name="weather", arguments={"city": "Bern"}),), end="calls")
    return Answer(text="; ".join(results))


def endless(received):
    """Call as long as that is possible."""
    if received.request.choice.mode == "none":
        return Answer(text="That far.")
    count = len(result_texts(received))
    return Answer(calls=(Said(id=f"c{count}", name="weather", arguments={"city": f"City {count}"}),), end="calls")


@asynccontextmanager
async def ask(script):
    with TemporaryDirectory() as folder:
        async with running(script=script) as simulator:
            config = Config(
                server=ServerTable(retries=RetriesTable(most=0)),
                upstreams=upstreams(simulator.base_url),
                sessions=SessionsTable(url=f"sqlite:///{folder}/s.db"),
            )
            async with open_gateway_services(config) as opened:
                yield opened.gateway.model(build_program_context("ann")), simulator


def request_for(upstream, **more):
    return structs.replace(user_request("What is the weather?", **more), model=f"{upstream}/{KINDS[upstream]}")


def run(upstream, script, *, request=None, tools=(weather,), **settings):
    """Run an agent on an upstream; return its end and what was asked."""

    async def do():
        async with ask(script) as (model, simulator):
            made = Agent(model, Executor(Registry(*tools)), **settings)
            steps = [step async for step in made.steps(request or request_for(upstream))]
            assert isinstance(steps[-1], RunEnded)
            assert steps[-1].problem is None, steps[-1].problem
            assert {seen.status for seen in simulator.requests} == {200}
            return steps[-1], simulator.requests

    return asyncio.run(do())


every_upstream = pytest.mark.parametrize("upstream", KINDS)


@every_upstream
def test_calls_at_once_and_one_after_the_other_until_the_model_is_done(upstream):
    ended, requests = run(upstream, two_rounds)
    assert ended.text == "sun in Rome; sun in Oslo; sun in Bern"
    assert (ended.statistics.turns, ended.statistics.calls) == (3, 3)
    assert len(requests) - (upstream == "assist") == 3, "Code Assist is asked for its project first"
    assert ended.statistics.tokens > 0


@every_upstream
def test_the_last_turn_without_tools_is_accepted(upstream):
    ended, _ = run(upstream, endless, limits=Limits(turns=2))
    assert (ended.stop, ended.text, ended.statistics.turns) == ("turns", "That far.", 3)


@every_upstream
def test_a_model_that_calls_tools_despite_choice_none_answers_after_the_refusal(upstream):
    def deaf(received):
        if any("no more turns" in result for result in result_texts(received)):
            return Answer(text="That far.")
        return endless(structs.replace(received, request=structs.replace(received.request, choice=RequestToolChoice())))

    ended, requests = run(upstream, deaf, limits=Limits(turns=1))
    assert (ended.stop, ended.text, ended.statistics.turns) == ("turns", "That far.", 3)
    assert all(b"weather" in request.body for request in list(requests)[-3:]), "the tools stay declared"


@every_upstream
def test_a_forced_first_call_is_forced_once(upstream):
    choices = []

    def script(received):
        choices.append(received.request.choice.mode)
        return two_rounds(received)

    request = request_for(upstream, tool_choice=ToolChoice(mode="required"))
    ended, _ = run(upstream, script, request=request)
    assert ended.stop == "finished"
    assert choices == ["required", "auto", "auto"]


@every_upstream
def test_a_run_that_was_stopped_can_be_gone_on_from(upstream):
    def hanging(received):
        if result_texts(received):
            return Answer(text="I see that it was interrupted.")
        calls = (
            Said(id="c0", name="weather", arguments={"city": "Rome"}),
            Said(id="c1", name="hang", arguments={"city": "Oslo"}),
        )
        return Answer(thought="Hm.", calls=calls, end="calls")

    async def do():
        async with ask(hanging) as (model, simulator):
            made = Agent(model, Executor(Registry(weather, hang)))
            first = None
            async for step in made.steps(request_for(upstream), run="r"):
                first = step
                if isinstance(step, CallEnded) and step.call.name == "weather":
                    made.cancel("r")
            assert first.stop == "cancelled"
            assert closed(first.history) == first.history
            again = structs.replace(
                request_for(upstream), messages=(*first.history, *user_request("And now?").messages)
            )
            last = [step async for step in made.steps(again)][-1]
            assert (last.stop, last.text) == ("finished", "I see that it was interrupted.")
            assert {seen.status for seen in simulator.requests} == {200}

    asyncio.run(do())


@every_upstream
def test_a_history_that_was_made_shorter_is_accepted(upstream):
    ended, requests = run(
        upstream,
        endless,
        limits=Limits(turns=5, identical=None),
        compaction=Compaction(summarise=lambda _: "It was sunny so far.", context=1, keep=2),
    )
    assert ended.stop == "turns"
    assert any(b"It was sunny so far." in seen.body for seen in requests)


@every_upstream
def test_client_calls_are_left_to_the_client_and_the_run_continues_with_its_results(upstream):
    def mix(received):
        results = result_texts(received)
        if results:
            return Answer(text=" and ".join(results))
        calls = (
            Said(id="c0", name="weather", arguments={"city": "Rome"}),
            Said(id="c1", name="keep", arguments={"what": "it"}),
        )
        return Answer(thought="Both.", calls=calls, end="calls")

    async def do():
        async with ask(mix) as (model, simulator):
            made = Agent(model, Executor(Registry(weather)))
            request = request_for(upstream, tools=(KEEP,))
            first = collect(check_events([event async for event in made(request)]))
            assert first.finish.reason == "tool_calls"
            (theirs,) = [part for part in first.parts if isinstance(part, ToolCall) and part.executor == "client"]
            answer = ToolResult(call_id=theirs.id, content=(Text(text="kept"),))
            history = (
                *request.messages,
                Message(role="assistant", parts=first.parts),
                Message(role="user", parts=(answer,)),
            )
            second = collect(check_events([event async for event in made(structs.replace(request, messages=history))]))
            output = "".join(part.text for part in second.parts if isinstance(part, Text))
            assert output == "sun in Rome and kept"
            assert {seen.status for seen in simulator.requests} == {200}

    asyncio.run(do())
