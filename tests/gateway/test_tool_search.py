"""The gateway searches deferred tools: official SDKs, and targets without a tool search of their own."""

import json
from itertools import pairwise

import anthropic
import httpx2
import openai
import pytest

from dragoman.core.request import Request, Tool
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.tool_search import GatewaySearch
from dragoman.simulator import Answer, Call
from dragoman.simulator.runner import in_thread
from server.conftest import run_server_gateway

MODELS = {
    "chat": ("openai/gpt-5.2",),
    "old-gpt": ("responses/gpt-5.2",),
    "gemini": ("gemini/gemini-3.8-flash",),
    "old-claude": ("anthropic/claude-sonnet-4",),
}
BM25 = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
REGEX = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
SCHEMA = {
    "type": "object",
    "properties": {f"argument_{at}": {"type": "string", "description": "Some argument of it."} for at in range(6)},
}
CITIES = [f"city{at:03}" for at in range(120)]


def claude_tool(name, **members):
    return {"name": name, "description": f"Weather of {name}.", "input_schema": SCHEMA, **members}


LATE = [claude_tool(f"weather_{city}", defer_loading=True) for city in CITIES]
EARLY = claude_tool("read_file")


def write_script(received):
    """Search for what the user asks, call it, then report its result."""
    turns = received.request.turns
    asked = next(turn.text for turn in reversed(turns) if turn.role == "user" and turn.text).split()
    results = turns[-1].results
    names = [tool.name for tool in received.request.tools]
    search = next((name for name in names if name.startswith("tool_search")), "")
    match asked:
        case ["find", query] if not results:
            arguments = {
                "pattern"
                if received.request.tools[names.index(search)].schema["properties"].get("pattern")
                else "query": query
            }
            return Answer(
                text="I search.", calls=(Call(id=f"s{len(turns)}", name=search, arguments=arguments),), end="calls"
            )
        case ["find", query] if results[-1].name == search and "can be called" in results[-1].text:
            called = next(name for name in reversed(names) if query in name)
            return Answer(calls=(Call(id=f"c{len(turns)}", name=called, arguments={}),), end="calls")
        case _ if results:
            return Answer(text=f"It says {results[-1].text}.")
        case _:
            return Answer(text="Hello.")


@pytest.fixture(scope="module")
def opened():
    with in_thread(script=write_script) as simulator, run_server_gateway(simulator, models=MODELS) as gateway:
        yield gateway.base_url, simulator


@pytest.fixture(scope="module")
def claude(opened):
    with anthropic.Anthropic(base_url=opened[0], api_key="k", max_retries=0) as client:
        yield client


def list_sent(simulator, before: int) -> list[list[dict]]:
    """The tools of each request that reached an upstream."""
    found = []
    for one in list(simulator.requests)[before:]:
        assert one.status == 200, one
        tools = json.loads(one.body)["tools"]
        tools = tools[0].get("functionDeclarations", tools) if tools else tools
        # The mark at the end of the tools moves with them.
        functions = [tool.get("function", tool) for tool in tools]
        found.append([{name: value for name, value in one.items() if name != "cache_control"} for one in functions])
    return found


def names_of(tools: list[dict]) -> list[str]:
    return [tool["name"] for tool in tools]


def ask_claude(client, messages, *, stream, tools, model):
    asked = {"model": model, "max_tokens": 500, "messages": messages, "tools": tools}
    if not stream:
        return client.messages.create(**asked)
    with client.messages.stream(**asked) as events:
        return events.get_final_message()


STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@STREAMS
@pytest.mark.parametrize("search", [BM25, REGEX], ids=["words", "pattern"])
@pytest.mark.parametrize("model", ["chat", "gemini", "old-gpt"])
def test_claudes_search_runs_in_the_gateway_and_tools_only_grow(opened, claude, model, search, stream):
    simulator = opened[1]
    before = len(simulator.requests)
    tools = [search, EARLY, *LATE]
    messages = [{"role": "user", "content": "find city007"}]
    reply = ask_claude(claude, messages, stream=stream, tools=tools, model=model)
    # Gemini's signatures travel in thinking blocks.
    shown = [block for block in reply.content if block.type != "thinking"]
    kinds = [block.type for block in shown]
    assert kinds == ["text", "server_tool_use", "tool_search_tool_result", "tool_use"]
    use, result, call = shown[1:]
    assert use.name == search["name"]
    assert use.input == {"pattern" if search is REGEX else "query": "city007"}
    assert result.tool_use_id == use.id
    assert result.content.tool_references[0].tool_name == "weather_city007"
    assert (call.name, reply.stop_reason) == ("weather_city007", "tool_use")
    messages += [
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}]},
    ]
    reply = ask_claude(claude, messages, stream=stream, tools=tools, model=model)
    assert reply.content[-1].text == "It says sunny."
    messages += [
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]},
        {"role": "user", "content": "find city093"},
    ]
    reply = ask_claude(claude, messages, stream=stream, tools=tools, model=model)
    assert reply.content[-1].name == "weather_city093"
    sent = list_sent(simulator, before)
    assert len(sent) == 5
    assert names_of(sent[0]) == ["read_file", "tool_search"]
    for shorter, longer in pairwise(sent):
        assert longer[: len(shorter)] == shorter
    assert {"weather_city007", "weather_city093"} <= set(names_of(sent[-1]))


@pytest.mark.parametrize("model", ["chat", "gemini", "old-gpt"])
def test_before_a_search_a_tenth_of_the_schema_bytes_goes_upstream(opened, claude, model):
    simulator = opened[1]
    before = len(simulator.requests)
    messages = [{"role": "user", "content": "Hi."}]
    ask_claude(claude, messages, stream=False, tools=[BM25, EARLY, *LATE], model=model)
    body = list(simulator.requests)[before].body
    assert len(body) - len(json.dumps(EARLY)) < 120 * len(json.dumps(SCHEMA)) / 10


@STREAMS
def test_openais_search_runs_in_the_gateway(opened, stream):
    simulator = opened[1]
    before = len(simulator.requests)
    late = [
        {
            "type": "function",
            "name": tool["name"],
            "description": tool["description"],
            "parameters": SCHEMA,
            "defer_loading": True,
        }
        for tool in LATE[:20]
    ]
    with openai.OpenAI(base_url=f"{opened[0]}/v1", api_key="k", max_retries=0) as client:
        asked = {"model": "old-claude", "tools": [*late, {"type": "tool_search"}], "store": False}
        items = [{"role": "user", "content": "find city007"}]

        def ask():
            if not stream:
                return client.responses.create(**asked, input=items)
            with client.responses.stream(**asked, input=items) as events:
                return events.get_final_response()

        reply = ask()
        assert [item.type for item in reply.output] == [
            "message",
            "tool_search_call",
            "tool_search_output",
            "function_call",
        ]
        _, search, output, call = reply.output
        assert (search.arguments, search.execution) == ({"query": "city007"}, "server")
        assert output.tools[0].name == "weather_city007"
        items += [item.model_dump(exclude_none=True, mode="json") for item in reply.output]
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": "sunny"})
        assert ask().output_text == "It says sunny."
    sent = list_sent(simulator, before)
    assert names_of(sent[0]) == ["tool_search"]
    assert sent[1][:1] == sent[0]
    assert sent[2] == sent[1]


@STREAMS
@pytest.mark.parametrize("model", ["chat", "old-gpt"])
def test_of_150_tools_those_beyond_the_limit_are_found_by_a_search(opened, model, stream):
    simulator = opened[1]
    before = len(simulator.requests)
    tools = [
        {
            "type": "function",
            "function": {"name": f"weather_city{at:03}", "description": f"City {at}.", "parameters": SCHEMA},
        }
        for at in range(150)
    ]
    with openai.OpenAI(base_url=f"{opened[0]}/v1", api_key="k", max_retries=0) as client:
        messages = [{"role": "user", "content": "find city140"}]
        # The model of the upstream takes another field for the limit.
        asked = {"model": model, "tools": tools, "max_tokens": 500}
        if stream:
            with client.chat.completions.stream(**asked, messages=messages) as events:
                reply = events.get_final_completion().choices[0].message
        else:
            reply = client.chat.completions.create(**asked, messages=messages).choices[0].message
        assert [call.function.name for call in reply.tool_calls] == ["weather_city140"]
        messages.append({"role": "assistant", "content": reply.content, "tool_calls": [
            {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}
            for call in reply.tool_calls
        ]})  # fmt: skip
        messages.append({"role": "tool", "tool_call_id": reply.tool_calls[0].id, "content": "sunny"})
        assert client.chat.completions.create(**asked, messages=messages).choices[0].message.content == "It says sunny."
    sent = list_sent(simulator, before)
    assert all(len(one) <= 128 for one in sent)
    assert names_of(sent[0])[:-1] == [f"weather_city{at:03}" for at in range(95)]
    assert names_of(sent[0])[-1] == "tool_search"
    assert sent[1][: len(sent[0])] == sent[0]
    assert "weather_city140" in names_of(sent[1])[len(sent[0]) :]
    # The client cannot send the search back, and still the tools only grow.
    assert sent[2] == sent[1]
    member = "input" if model == "old-gpt" else "messages"
    histories = [json.loads(one.body)[member] for one in list(simulator.requests)[before:]]
    for shorter, longer in pairwise(histories):
        assert longer[: len(shorter)] == shorter


def test_too_many_tools_are_an_informational_loss_that_strict_mode_accepts(opened):
    tools = [{"type": "function", "function": {"name": f"f{at}", "parameters": SCHEMA}} for at in range(129)]
    body = {"model": "chat", "messages": [{"role": "user", "content": "Hi."}], "tools": tools}
    reply = httpx2.post(
        f"{opened[0]}/v1/chat/completions", json=body, headers={"x-dragoman-strict": "true"}, timeout=30
    )
    assert reply.status_code == 200, reply.text
    assert "/tools/" in reply.headers["x-dragoman-losses"]


def test_128_tools_are_all_declared_without_a_search(opened):
    simulator = opened[1]
    before = len(simulator.requests)
    tools = [{"type": "function", "function": {"name": f"f{at}", "parameters": SCHEMA}} for at in range(128)]
    body = {"model": "chat", "messages": [{"role": "user", "content": "Hi."}], "tools": tools}
    assert httpx2.post(f"{opened[0]}/v1/chat/completions", json=body, timeout=30).status_code == 200
    assert json.loads(list(simulator.requests)[before].body) == {**body, "model": "gpt-5.2"}


# The search itself


def build_search(count: int, limit: int = 1_000, **options) -> GatewaySearch:
    late = [Tool(name=f"late{at}", description=f"Does {at}.", where=f"/tools/{at}") for at in range(count)]
    return GatewaySearch(Request(model="m", messages=(), tools=tuple(late)), dialect_named("chat"), limit, **options)


def test_the_room_for_found_tools_is_at_most_a_quarter():
    prepared = build_search(10, limit=8)
    function = prepared.build_function().handler.definition
    request = prepared.prepare_request()
    shaped = prepared.shape_request(Request(model="m", messages=(), tools=(*request.tools, function)))
    assert [tool.name for tool in shaped.tools] == [*(f"late{at}" for at in range(5)), "tool_search"]


def test_the_names_of_many_tools_are_not_listed():
    assert "late7" in build_search(10, limit=8).build_function().handler.definition.description
    assert "late7" not in build_search(3_000, limit=8).build_function().handler.definition.description
