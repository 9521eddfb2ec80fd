"""A model without tools as a function of the core, and in the loop that runs its calls."""

import json
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from dragoman.agent import Agent, RunEnded
from dragoman.core.parts import Text, ToolCall, ToolResult
from dragoman.core.request import Message, Request
from dragoman.core.stream import collect
from dragoman.dialects.record import Call as WireCall
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.context import CallContext, build_program_context
from dragoman.gateway.record import Record
from dragoman.simulator import Answer
from dragoman.tools import Executor, Registry, tool
from gateway.test_model import KINDS, await_result, collect_events, open_gateway, request_for

CALLS = 'I ask.\n<tool_call>{"name": "weather.of/city", "arguments": {"city": "Paris"}}</tool_call>'


def text_then_words(received):
    """Call a tool as text, then repeat its result."""
    assert not received.request.tools
    written = received.request.turns[-1].text
    return Answer(text=f"So: {written}" if "<tool_result" in written else CALLS)


@asynccontextmanager
async def textual(script):
    """A gateway whose upstreams do not support tools."""
    async with open_gateway(script, text_calls="json", chunk=4) as opened:
        yield opened


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("upstream", KINDS)
@await_result
async def test_every_kind_of_upstream_gets_tools_as_text(upstream, stream):
    async with textual(text_then_words) as (running_gateway, simulator):
        model = running_gateway.model(build_program_context("ann"))
        request = request_for(upstream, stream=stream)
        first = collect(await collect_events(model, request))
        text, call = first.parts
        assert (text.text, call.name, json.loads(call.arguments)) == ("I ask.", "weather.of/city", {"city": "Paris"})
        assert first.finish.reason == "tool_calls"
        result = ToolResult(call_id=call.id, content=(Text(text="TOOL_CALL: weather.of/city\n"),))
        turns = (Message(role="assistant", parts=first.parts), Message(role="user", parts=(result,)))
        second = collect(await collect_events(model, structs.replace(request, messages=(*request.messages, *turns))))
        assert not [part for part in second.parts if isinstance(part, ToolCall)]
        assert second.finish.reason == "stop"
        assert {seen.status for seen in simulator.requests} == {200}


@pytest.mark.parametrize("upstream", ["openai", "responses", "anthropic", "gemini"])
@await_result
async def test_fields_of_the_clients_dialect_reach_only_that_dialect_with_tools_as_text(upstream):
    wire = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"modalities":["text"]}'
    read = dialect_named("chat").parse_request(WireCall(wire))
    async with textual(text_then_words) as (running_gateway, simulator):
        request = structs.replace(
            read, model=f"{upstream}/{KINDS[upstream]}", tools=request_for(upstream).tools, stream=True
        )
        model = running_gateway.model(CallContext(ClientRequest(dialect="chat", call=WireCall(wire)), Record()))
        reply = collect(await collect_events(model, request))
        assert [part.name for part in reply.parts if isinstance(part, ToolCall)] == ["weather.of/city"]
        sent = json.loads(simulator.requests[-1].body)
        assert not sent.get("tools")
        assert ("modalities" in sent) is (upstream == "openai")


@await_result
async def test_the_loop_runs_calls_in_text_and_asks_the_model_to_correct_a_wrong_one():
    requested: list[str] = []

    @tool
    def get_weather(city: str) -> str:
        """Tell the weather."""
        requested.append(city)
        return f"sun in {city}"

    def script(received):
        written = received.request.turns[-1].text
        if "sun in" in written:
            return Answer(text="Sun.")
        if "failed" in written:
            return Answer(text='TOOL_CALL: GET_WEATHER\nARGUMENTS: {"city": "Rome"}\n')
        return Answer(text='<tool_call>{"name": "get_wether", "arguments": {"city": "Rome"}}</tool_call>')

    async with textual(script) as (running_gateway, _):
        agent = Agent(running_gateway.model(build_program_context()), Executor(Registry(get_weather)))
        question = Message(role="user", parts=(Text(text="weather?"),))
        request = Request(model="openai/gpt-5.2", messages=(question,), stream=True)
        steps = [step async for step in agent.steps(request)]
    last = steps[-1]
    assert isinstance(last, RunEnded)
    assert (last.stop, last.statistics.turns, last.statistics.failed) == ("finished", 3, 1)
    assert requested == ["Rome"]
    assert last.history[-1].parts[-1].text == "Sun."


@await_result
async def test_an_unparsable_call_is_returned_as_text_and_reported_as_a_loss():
    async with textual(lambda _: Answer(text="TOOL_CALL: f\nARGUMENTS: {,}")) as (running_gateway, _):
        record = Record()
        reply = collect(
            await collect_events(running_gateway.model(build_program_context(record=record)), request_for("openai"))
        )
        assert [part.text for part in reply.parts] == ["TOOL_CALL: f\nARGUMENTS: {,}"]
        assert any("cannot be parsed" in loss.what for loss in record.reply_losses)
        assert reply.finish.reason == "malformed_call"


@await_result
async def test_the_loop_retries_an_unparsable_call():
    requested: list[str] = []

    @tool
    def get_weather(city: str) -> str:
        """Tell the weather."""
        requested.append(city)
        return f"sun in {city}"

    def script(received):
        written = received.request.turns[-1].text
        if "sun in" in written:
            return Answer(text="Sun.")
        comma = "" if "cannot be read" in written else ","
        return Answer(text=f'TOOL_CALL: get_weather\nARGUMENTS: {{"city": "Rome"{comma}}}')

    for upstream in ("openai", "gemini", "anthropic", "responses"):
        async with textual(script) as (running_gateway, _):
            agent = Agent(running_gateway.model(build_program_context()), Executor(Registry(get_weather)))
            ended = await agent.run("weather?", model=f"{upstream}/{KINDS[upstream]}")
        assert (ended.stop, ended.text) == ("finished", "Sun.")
    assert requested == ["Rome"] * 4


@pytest.mark.parametrize("model", ["openai/gemma-3-27b-it", "openai/google/gemma-3-27b-it", "gemini/gemma-3-27b-it"])
@await_result
async def test_an_open_model_gets_tools_as_text_on_every_server(model):
    async with textual(text_then_words) as (running_gateway, simulator):
        request = structs.replace(request_for("openai"), model=model)
        reply = collect(await collect_events(running_gateway.model(build_program_context()), request))
        assert [part.name for part in reply.parts if isinstance(part, ToolCall)] == ["weather.of/city"]
        assert simulator.requests[-1].status == 200
        assert b"<tool_result" in simulator.requests[-1].body, "it is stopped where it makes up results"
