"""Any upstream as one function: a request of the core in, events of the core out."""

import asyncio
import functools
import json
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory

import pytest
from msgspec import structs

from dragoman.config import Config, RetriesTable, ServerTable, SessionsTable, UpstreamTable
from dragoman.core.events import Failed, Finished, Started
from dragoman.core.parts import Opaque, Reasoning, Signature, Text, ToolCall, ToolResult
from dragoman.core.request import Message, Request, Tool, ToolChoice
from dragoman.core.stream import collect
from dragoman.dialects.record import Call as WireCall
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.context import CallContext, RequestContext, build_program_context
from dragoman.gateway.record import Record
from dragoman.http.exchange import Exchange
from dragoman.http.message import Request as HttpRequest
from dragoman.server.services import open_gateway_services
from dragoman.simulator import Answer, running
from dragoman.simulator import Call as Scripted
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
WEATHER = Tool(
    name="weather.of/city",
    description="Get the weather",
    parameters=b'{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}',
)
QUESTION = Message(role="user", parts=(Text(text="What is the weather in Paris and in Rome?"),))


def weather_then_words(received):
    """Call a tool twice in parallel, then repeat its results."""
    results = received.request.turns[-1].results
    if results:
        return Answer(text=" and ".join(result.text for result in results))
    name = next(tool.name for tool in received.request.tools if "weather" in tool.name)
    calls = [Scripted(id=f"c{at}", name=name, arguments={"city": city}) for at, city in enumerate(("Paris", "Rome"))]
    return Answer(thought="Both at once.", calls=tuple(calls), end="calls")


def await_result(test):
    """Let pytest run a coroutine function."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    return run


@asynccontextmanager
async def open_gateway(script=None, *, models=None, more=None, text_calls=None, **simulate):
    """A gateway without an HTTP server, and the simulator behind it."""
    with TemporaryDirectory() as folder:
        async with running(script=script, **simulate) as simulator:
            config = Config(
                server=ServerTable(retries=RetriesTable(first_wait=0.01)),
                upstreams={
                    name: structs.replace(table, text_calls=text_calls)
                    for name, table in (upstreams(simulator.base_url) | (more or {})).items()
                },
                models=models or {},
                sessions=SessionsTable(url=f"sqlite:///{folder}/s.db"),
            )
            async with open_gateway_services(config) as opened:
                yield opened.gateway, simulator


async def collect_events(model, request):
    """Return all events of a reply, after checking their order."""
    return list(check_events([event async for event in model(request)]))


def request_for(upstream, *, stream=True, **more):
    sent = {"messages": (QUESTION,), "tools": (WEATHER,), "stream": stream} | more
    return Request(model=f"{upstream}/{KINDS[upstream]}", **sent)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("upstream", KINDS)
@await_result
async def test_every_kind_of_upstream_takes_part_in_a_loop_of_calls_and_results(upstream, stream):
    async with open_gateway(weather_then_words) as (running_gateway, simulator):
        record = Record()
        model = running_gateway.model(build_program_context("ann", record))
        request = request_for(upstream, stream=stream)
        first = collect(await collect_events(model, request))
        calls = [part for part in first.parts if isinstance(part, ToolCall)]
        assert [call.name for call in calls] == ["weather.of/city"] * 2
        assert [json.loads(call.arguments) for call in calls] == [{"city": "Paris"}, {"city": "Rome"}]
        assert len({call.id for call in calls} - {""}) == 2
        assert first.finish.reason == "tool_calls"
        assert first.usage is not None
        assert first.usage.input

        results = tuple(ToolResult(call_id=call.id, content=(Text(text=f"sun {call.id}"),)) for call in calls)
        written = Message(role="assistant", parts=first.parts)
        following = structs.replace(request, messages=(QUESTION, written, Message(role="user", parts=results)))
        second = collect(await collect_events(model, following))
        texts = [part.text for part in second.parts if isinstance(part, Text)]
        assert "".join(texts) == f"sun {calls[0].id} and sun {calls[1].id}"
        assert second.finish.reason == "stop"
        assert {seen.status for seen in simulator.requests} == {200}
        assert record.upstream == upstream
        # Its own thoughts and signatures went back to it, and the skip value stood for none.
        assert not [loss for loss in record.losses if "sign" in loss.what or "reasoning" in loss.what]


@pytest.mark.parametrize("client", ["chat", "responses", "messages", "gemini"])
@pytest.mark.parametrize("upstream", KINDS)
@await_result
async def test_added_turns_continue_the_request_of_a_client(client, upstream):
    async with open_gateway(weather_then_words) as (running_gateway, simulator):
        wire = WRITTEN[client]
        read = dialect_named(client).parse_request(WireCall(wire))
        request = structs.replace(
            read, model=f"{upstream}/{KINDS[upstream]}", stream=True, tools=(WEATHER, *read.tools)
        )
        record = Record()
        model = running_gateway.model(
            CallContext(ClientRequest(dialect=client, call=WireCall(wire), owner="ann"), record)
        )
        first = collect(await collect_events(model, request))
        calls = [part for part in first.parts if isinstance(part, ToolCall)]
        assert [call.name for call in calls] == ["weather.of/city"] * 2
        results = tuple(ToolResult(call_id=call.id, content=(Text(text="sun"),)) for call in calls)
        added = (Message(role="assistant", parts=first.parts), Message(role="user", parts=results))
        second = collect(await collect_events(model, structs.replace(request, messages=(*request.messages, *added))))
        assert [part.text for part in second.parts if isinstance(part, Text)] == ["sun and sun"]
        tools = simulator.requests[-1].json()
        assert "own_tool" in json.dumps(tools)
        assert all(not loss.where.startswith("/dragoman") for loss in record.losses)


WRITTEN = {
    "chat": json.dumps(
        {
            "model": "m",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather?"}],
            "tools": [{"type": "function", "function": {"name": "own_tool", "parameters": {"type": "object"}}}],
        }
    ).encode(),
    "responses": json.dumps(
        {
            "model": "m",
            "instructions": "Be brief.",
            "input": "Weather?",
            "tools": [{"type": "function", "name": "own_tool", "parameters": {"type": "object"}, "strict": False}],
        }
    ).encode(),
    "messages": json.dumps(
        {
            "model": "m",
            "max_tokens": 300,
            "system": "Be brief.",
            "messages": [{"role": "user", "content": "Weather?"}],
            "tools": [{"name": "own_tool", "input_schema": {"type": "object"}}],
        }
    ).encode(),
    "gemini": json.dumps(
        {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [{"role": "user", "parts": [{"text": "Weather?"}]}],
            "tools": [{"functionDeclarations": [{"name": "own_tool"}]}],
        }
    ).encode(),
}


@await_result
async def test_a_transient_error_is_retried_before_any_event():
    async with open_gateway(models={"busy": ("openai/gpt-5.2~503,times=2",)}) as (running_gateway, simulator):
        record = Record()
        request = Request(model="busy", messages=(QUESTION,), stream=True)
        events = await collect_events(running_gateway.model(build_program_context(record=record)), request)
        assert isinstance(events[0], Started)
        assert isinstance(events[-1], Finished)
        assert [seen.status for seen in simulator.requests] == [503, 503, 200]
        assert record.tries == 3


@await_result
async def test_a_call_for_a_client_that_has_received_a_part_of_its_response_is_retried_too():
    async with open_gateway(models={"busy": ("openai/gpt-5.2~503,times=1",)}) as (running_gateway, simulator):
        exchange = Exchange(HttpRequest("POST", "/", ()), asyncio.Transport(), keeps_alive=False, supports_chunks=False)
        exchange.started = True
        client = ClientRequest(dialect="chat", call=WireCall(WRITTEN["chat"]))
        model = running_gateway.model(RequestContext(client, Record(), exchange))
        events = await collect_events(model, Request(model="busy", messages=(QUESTION,), stream=True))
        assert isinstance(events[-1], Finished)
        assert [seen.status for seen in simulator.requests] == [503, 200]


@await_result
async def test_the_next_upstream_is_used_if_the_first_fails():
    models = {"either": ("openai/gpt-5.2~503", "anthropic/claude-opus-4-8")}
    async with open_gateway(models=models) as (running_gateway, simulator):
        record = Record()
        events = await collect_events(
            running_gateway.model(build_program_context(record=record)), Request(model="either", messages=(QUESTION,))
        )
        assert isinstance(events[-1], Finished)
        assert record.upstream == "anthropic"
        assert [seen.api for seen in simulator.requests] == ["chat", "messages"]


@pytest.mark.parametrize("stream", [True, False])
@await_result
async def test_an_error_is_the_last_event_and_is_not_raised(stream):
    async with open_gateway(models={"broken": ("gemini/gemini-3.8-flash~400",)}) as (running_gateway, simulator):
        request = Request(model="broken", messages=(QUESTION,), stream=stream)
        (event,) = await collect_events(running_gateway.model(build_program_context()), request)
        assert isinstance(event, Failed)
        assert event.problem.kind == "invalid_request"
        assert len(simulator.requests) == 1


@await_result
async def test_a_stream_that_breaks_after_its_start_is_not_retried():
    models = {"cut": ("openai/gpt-5.2~cut,after=3",)}
    async with open_gateway(models=models, chunk=4) as (running_gateway, simulator):
        events = await collect_events(
            running_gateway.model(build_program_context()), Request(model="cut", messages=(QUESTION,), stream=True)
        )
        assert isinstance(events[0], Started)
        assert isinstance(events[-1], Failed)
        assert len(simulator.requests) == 1


@await_result
async def test_an_unknown_model_is_an_error_event():
    async with open_gateway() as (running_gateway, simulator):
        (event,) = await collect_events(
            running_gateway.model(build_program_context()), Request(model="nothing-such", messages=(QUESTION,))
        )
        assert isinstance(event, Failed)
        assert event.problem.code == "model_not_found"
        assert not simulator.requests


@await_result
async def test_credentials_that_an_upstream_refuses_are_a_bad_gateway():
    locked = {"locked": UpstreamTable(kind="openai", base_url="", api_key="invalid")}
    async with open_gateway() as (_, simulator):
        locked["locked"] = structs.replace(locked["locked"], base_url=f"{simulator.base_url}/v1")
        async with open_gateway(more=locked) as (running_gateway, _):
            (event,) = await collect_events(
                running_gateway.model(build_program_context()), Request(model="locked/gpt-5.2", messages=(QUESTION,))
            )
    assert isinstance(event, Failed)
    assert (event.problem.status, event.problem.code) == (502, "credentials")


@await_result
async def test_an_upstream_that_falls_silent_is_given_up_in_time():
    async with open_gateway() as (_, simulator):
        table = UpstreamTable(kind="openai", base_url=f"{simulator.base_url}/v1", api_key="k", first_byte=0.05)
        async with open_gateway(more={"silent": table}, models={"m": ("silent/gpt-5.2~hang",)}) as (running_gateway, _):
            (event,) = await collect_events(
                running_gateway.model(build_program_context()), Request(model="m", messages=(QUESTION,), stream=True)
            )
    assert isinstance(event, Failed)
    assert event.problem.kind == "timeout"


@await_result
async def test_closing_the_events_closes_the_connection_to_the_upstream():
    async with open_gateway(chunk=1, delay=0.01) as (running_gateway, simulator):
        events = running_gateway.model(build_program_context())(
            Request(model="openai/gpt-5.2", messages=(QUESTION,), stream=True)
        )
        assert isinstance(await anext(events), Started)
        await events.aclose()
        again = await collect_events(
            running_gateway.model(build_program_context()), Request(model="openai/gpt-5.2", messages=(QUESTION,))
        )
        assert isinstance(again[-1], Finished)
        assert len(simulator.requests) == 2


@await_result
async def test_an_upstream_may_be_forced_to_call_one_of_the_added_tools_by_its_name_there():
    async with open_gateway(weather_then_words) as (running_gateway, simulator):
        wire = WRITTEN["chat"]
        read = dialect_named("chat").parse_request(WireCall(wire))
        choice = ToolChoice(mode="required", names=("weather.of/city",))
        request = structs.replace(read, model="openai/gpt-5.2", tools=(WEATHER, *read.tools), tool_choice=choice)
        await collect_events(
            running_gateway.model(CallContext(ClientRequest(dialect="chat", call=WireCall(wire)), Record())), request
        )
        body = simulator.requests[-1].json()
        called = body["tool_choice"]["function"]["name"]
        assert called in {tool["function"]["name"] for tool in body["tools"]}
        assert called != "weather.of/city"


@await_result
async def test_turns_of_another_vendor_are_sent_as_far_as_the_target_accepts_them():
    foreign = (
        Reasoning(texts=("hm",), signature=Signature("google", "abc")),
        Opaque(dialect="gemini", raw=b'{"executableCode":{"code":"1"}}'),
        Text(text="I am Gemini."),
    )
    added = (Message(role="assistant", parts=foreign), Message(role="user", parts=(Text(text="Go on."),)))
    async with open_gateway() as (running_gateway, simulator):
        record = Record()
        wire = WRITTEN["messages"]
        read = dialect_named("messages").parse_request(WireCall(wire))
        model = running_gateway.model(CallContext(ClientRequest(dialect="messages", call=WireCall(wire)), record))
        request = structs.replace(read, model="anthropic/claude-opus-4-8", messages=(*read.messages, *added))
        assert isinstance((await collect_events(model, request))[-1], Finished)
        assert simulator.requests[-1].json()["messages"][1]["content"] == "I am Gemini."
        assert {loss.where for loss in record.losses} == {
            "/dragoman/messages/2/parts/0",
            "/dragoman/messages/2/parts/1",
        }


@await_result
async def test_many_questions_at_once_get_their_own_answers():
    def echo(received):
        return Answer(text=received.request.turns[-1].text)

    async with open_gateway(echo) as (running_gateway, _):
        model = running_gateway.model(build_program_context())

        async def one(number):
            upstream = list(KINDS)[number % len(KINDS)]
            question = Message(role="user", parts=(Text(text=f"number {number}"),))
            sent = Request(model=f"{upstream}/{KINDS[upstream]}", messages=(question,), stream=bool(number % 2))
            return collect(await collect_events(model, sent)).parts[-1]

        output = await asyncio.gather(*map(one, range(28)))
    assert [part.text for part in output] == [f"number {number}" for number in range(28)]
