"""Functions that the gateway runs within a turn: the official SDK, a Chat upstream, and a function with fixed results."""

import asyncio
import json
from contextlib import asynccontextmanager, contextmanager
from tempfile import TemporaryDirectory

import anthropic
import pytest
from msgspec import structs

from dragoman.config import Config, RetriesTable, ServerTable, SessionsTable
from dragoman.core.losses import Loss
from dragoman.core.parts import Opaque
from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool, Tool
from dragoman.core.response import Usage
from dragoman.gateway.agents.turn_runner import TurnRunner
from dragoman.gateway.client_request import ClientRequest, read_call
from dragoman.gateway.context import RequestContext
from dragoman.gateway.generate import Gateway
from dragoman.gateway.record import Record
from dragoman.gateway.turn_functions import PreparedRequest, TurnFunction, choose_name
from dragoman.http.server import listen, run_in_thread
from dragoman.server.handlers import send_error
from dragoman.server.services import open_gateway_services
from dragoman.simulator import Answer, Call, read_fault
from dragoman.simulator.runner import in_thread
from dragoman.tools import Executor, Handler, Registry
from dragoman.tools.handler import ToolFailure
from server.conftest import upstreams

SEARCH = {"type": "web_search_20250305", "name": "web_search"}
WEATHER = {
    "name": "get_weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
PARAMETERS = b'{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}'


class FixedSearch:
    """Replaces a web search by a function with fixed results."""

    def __init__(self, *, timeout=5.0, losses=()):
        self.timeout = timeout
        self.losses = losses

    def prepare(self, request, client_request):
        assert client_request.dialect == "messages"
        kept = tuple(tool for tool in request.tools if not isinstance(tool, NativeTool))
        name = choose_name("web_search", request)
        handler = Handler(
            definition=Tool(name=name, description="Search the web.", parameters=PARAMETERS),
            run=self.search,
            timeout=self.timeout,
        )
        prepared = structs.replace(request, tools=kept)
        function = TurnFunction(handler=handler, render_result=self.render, count_usage=lambda _: Usage(reasoning=7))
        return PreparedRequest(request=prepared, functions=(function,), losses=self.losses)

    async def search(self, arguments):
        query = arguments["query"]
        if query == "hang":
            await asyncio.Event().wait()
        if query == "fail":
            raise ToolFailure("the search failed")
        return f"found {query}"

    def render(self, call, execution):
        found = [] if execution.result.failed else [page(call)]
        asked = {"type": "server_tool_use", "id": f"srvtoolu_{call.id}", "name": "web_search"}
        asked["input"] = json.loads(call.arguments)
        given = {"type": "web_search_tool_result", "tool_use_id": asked["id"], "content": found}
        return [Opaque(dialect="messages", raw=json.dumps(block).encode()) for block in (asked, given)]


def page(call):
    query = json.loads(call.arguments)["query"]
    return {"type": "web_search_result", "url": f"https://{query}.example", "title": query, "encrypted_content": "e"}


def search_calls(*queries):
    return tuple(
        Call(id=f"s{at}_{query}", name="web_search", arguments={"query": query}) for at, query in enumerate(queries)
    )


def write_script(received):
    """Follow the last user message: call functions turn by turn, then report the results."""
    turns = received.request.turns
    asked = next(turn.text for turn in reversed(turns) if turn.role == "user" and turn.text)
    results = [result.text for result in turns[-1].results]
    weather = Call(id="w1", name="get_weather", arguments={"city": "Oslo"})
    match asked.split():
        case ["once", query] if not results:
            return Answer(text="I look.", calls=search_calls(query), end="calls")
        case ["both"] if not results:
            return Answer(calls=search_calls("one", "two"), end="calls")
        case ["mixed"] if not results:
            first, second = search_calls("one", "two")
            return Answer(text="I look.", calls=(first, weather, second), end="calls")
        case ["later"] if not results:
            return Answer(calls=search_calls("one"), end="calls")
        case ["later"] if results == ["found one"]:
            return Answer(calls=(weather,), end="calls")
        case ["forever"]:
            return Answer(calls=search_calls(f"q{len(turns)}"), end="calls")
        case ["named"] if not results:
            names = [tool.name for tool in received.request.tools]
            return Answer(calls=(Call(id="n1", name=names[-1], arguments={"query": "named"}),), end="calls")
        case ["die"] if results:
            return read_fault("503")
        case ["die"]:
            return Answer(text="I look.", calls=search_calls("one"), end="calls")
        case _:
            return Answer(text="It said: " + ", ".join(results))


@asynccontextmanager
async def serve(simulator, provider):
    """Serve the Messages API of a gateway that has one function, in front of a Chat upstream."""
    with TemporaryDirectory() as folder:
        config = Config(
            server=ServerTable(retries=RetriesTable(most=0)),
            upstreams=upstreams(simulator.base_url),
            models={"gpt": ("openai/gpt-5.2",)},
            sessions=SessionsTable(url=f"sqlite:///{folder}/s.db"),
        )
        async with open_gateway_services(config) as services:
            runner = TurnRunner({"search": provider}, Executor(Registry()), None)
            gateway = Gateway(services.gateway.routes, services.client, turn_answers=runner)

            async def handle(exchange):
                record = Record(dialect="messages")
                strict = bool(exchange.request.header("x-strict"))
                request = ClientRequest(dialect="messages", call=read_call(exchange.request.body), strict=strict)
                try:
                    await gateway.generate(RequestContext(request, record, exchange))
                except Problem as problem:
                    await send_error(problem, exchange, record)

            async with listen(handle, ("127.0.0.1", 0)) as server:
                yield server


@contextmanager
def open_client(provider=None):
    with (
        in_thread(script=write_script) as simulator,
        run_in_thread(lambda: serve(simulator, provider or FixedSearch()), "gateway") as server,
        anthropic.Anthropic(base_url=server.base_url, api_key="k", max_retries=0) as client,
    ):
        yield client, simulator


@pytest.fixture(scope="module")
def opened():
    with open_client() as both:
        yield both


def ask(client, prompt, *, stream, tools=(SEARCH, WEATHER), **more):
    asked = {"model": "gpt", "max_tokens": 500, "messages": [{"role": "user", "content": prompt}], "tools": list(tools)}
    if not stream:
        return client.messages.create(**asked, **more)
    with client.messages.stream(**asked, **more) as events:
        return events.get_final_message()


def outline(reply):
    """What each block of a reply is and says."""
    shown = []
    for block in reply.content:
        match block.type:
            case "text":
                shown.append(block.text)
            case "server_tool_use":
                shown.append(f"search {block.input['query']}")
            case "web_search_tool_result":
                shown.append([found.url for found in block.content])
            case kind:
                shown.append(f"{kind} {block.name}")
    return shown


STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@STREAMS
def test_the_client_gets_one_reply_with_the_call_its_result_and_the_answer(opened, stream):
    client, simulator = opened
    before = len(simulator.requests)
    reply = ask(client, "once fjords", stream=stream)
    assert outline(reply) == [
        "I look.",
        "search fjords",
        ["https://fjords.example"],
        "\n\nIt said: found fjords",
    ]
    assert reply.stop_reason == "end_turn"
    seen = list(simulator.requests)[before:]
    assert [one.status for one in seen] == [200, 200]
    tools = [tool["function"]["name"] for tool in json.loads(seen[0].body)["tools"]]
    assert tools == ["get_weather", "web_search"]


@STREAMS
def test_usage_is_the_sum_of_all_inner_requests(opened, stream):
    client, _ = opened
    plain = ask(client, "plain", stream=stream)
    searched = ask(client, "once fjords", stream=stream)
    assert searched.usage.input_tokens > plain.usage.input_tokens
    assert searched.usage.output_tokens > plain.usage.output_tokens


@STREAMS
def test_two_calls_of_one_turn_are_both_run(opened, stream):
    found = ask(opened[0], "both", stream=stream)
    shown = outline(found)
    assert sorted(map(str, shown[:-1])) == sorted(
        map(str, ["search one", ["https://one.example"], "search two", ["https://two.example"]])
    )
    assert shown[-1] == "It said: found one, found two"


@STREAMS
def test_calls_of_the_client_follow_the_results_of_the_functions_in_the_same_reply(opened, stream):
    reply = ask(opened[0], "mixed", stream=stream)
    shown = outline(reply)
    assert shown[0] == "I look."
    assert shown[-1] == "tool_use get_weather"
    assert sorted(map(str, shown[1:-1])) == sorted(
        map(str, ["search one", ["https://one.example"], "search two", ["https://two.example"]])
    )
    assert reply.stop_reason == "tool_use"


@STREAMS
def test_a_later_turn_can_call_a_tool_of_the_client(opened, stream):
    reply = ask(opened[0], "later", stream=stream)
    assert outline(reply) == ["search one", ["https://one.example"], "tool_use get_weather"]
    assert reply.stop_reason == "tool_use"


@STREAMS
def test_a_function_that_fails_is_a_result_for_the_model_and_the_reply_goes_on(opened, stream):
    reply = ask(opened[0], "once fail", stream=stream)
    assert outline(reply) == ["I look.", "search fail", [], "\n\nIt said: Error: the search failed"]


@STREAMS
def test_a_function_that_hangs_costs_its_timeout_and_nothing_else(stream):
    with open_client(FixedSearch(timeout=0.3)) as (client, _):
        reply = ask(client, "once hang", stream=stream)
        assert outline(reply)[:3] == ["I look.", "search hang", []]
        assert "took longer than 0.3 seconds" in reply.content[-1].text


def test_the_number_of_turns_is_limited(opened):
    client, simulator = opened
    before = len(simulator.requests)
    reply = ask(client, "forever", stream=True)
    assert len(simulator.requests) - before <= 18
    assert reply.stop_reason in {"max_tokens", "end_turn"}


@STREAMS
def test_the_function_gets_another_name_if_the_client_has_a_tool_of_its_name(opened, stream):
    client, simulator = opened
    own = {**WEATHER, "name": "web_search"}
    other = {"type": "web_search_20250305", "name": "web_search"}
    before = len(simulator.requests)
    reply = ask(client, "named", stream=stream, tools=(own, other))
    assert outline(reply) == ["search named", ["https://named.example"], "It said: found named"]
    seen = json.loads(list(simulator.requests)[before].body)
    assert [tool["function"]["name"] for tool in seen["tools"]] == ["web_search", "web_search_2"]


def test_a_forced_choice_of_the_declared_tool_forces_the_function(opened):
    client, simulator = opened
    before = len(simulator.requests)
    ask(client, "once fjords", stream=False, tool_choice={"type": "tool", "name": "web_search"})
    first, second = (json.loads(one.body) for one in list(simulator.requests)[before:])
    assert first["tool_choice"] == {"type": "function", "function": {"name": "web_search"}}
    assert second.get("tool_choice", "auto") == "auto"


def test_a_choice_that_forbids_calls_needs_no_function(opened):
    client, simulator = opened
    before = len(simulator.requests)
    ask(client, "plain", stream=False, tool_choice={"type": "none"})
    assert len(simulator.requests) - before == 1


def test_losses_of_the_preparation_are_reported_and_refused_in_strict_mode():
    with open_client(FixedSearch(losses=(Loss("/tools/0/max_uses", "not counted", "dropped"),))) as (client, _):
        asked = {
            "model": "gpt",
            "max_tokens": 50,
            "messages": [{"role": "user", "content": "once x"}],
            "tools": [SEARCH],
        }
        raw = client.messages.with_raw_response.create(**asked)
        assert "/tools/0/max_uses" in raw.headers["x-dragoman-losses"]
        with pytest.raises(anthropic.BadRequestError, match="max_uses"):
            client.messages.create(**asked, extra_headers={"x-strict": "1"})


def test_an_error_of_an_inner_request_ends_the_stream_with_an_error(opened):
    with pytest.raises(anthropic.APIStatusError):
        ask(opened[0], "die", stream=True)
    with pytest.raises(anthropic.APIStatusError):
        ask(opened[0], "die", stream=False)
