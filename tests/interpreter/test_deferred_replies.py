"""A search for deferred tools in a reply reaches the client in the form of its dialect, whole and streamed."""

import itertools
import json

import pytest
from anthropic.types import Message as AnthropicMessage
from openai.types.responses import Response as OpenAIResponse

from dragoman.core.events import PartStarted
from dragoman.core.parts import FoundTools, ToolSearch
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.deferred_replies import adapt_search_reply
from dragoman.interpreter.ledger import open_reply_ledger
from dragoman.interpreter.reply_adapter import Context, ReplyAdapter, ReplyOptions
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.translate import translate_request
from shelf import exchanges, needs_shelf

REGEX = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
BM25 = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
WEATHER = {"name": "get_weather", "description": "Weather.", "input_schema": {"type": "object", "properties": {}}}
RECIPE = {**WEATHER, "name": "get_recipe"}


def read_recording(name: str) -> dict:
    dialect = {"anthropic": "messages"}.get(name.partition("/")[0], "responses")
    return next(one for one in exchanges(dialect) if one["id"] == name)


def ask_anthropic(*searches: dict) -> Context:
    """The context of a request of an Anthropic client, for a GPT model."""
    late = [{**tool, "defer_loading": True} for tool in (WEATHER, RECIPE)]
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}], "tools": [*searches, *late]}
    translation = translate_request(Call(json.dumps(body).encode()), "messages", "responses", model="gpt-5.5")
    return Context(translation.request, translation.undo)


def ask_openai() -> Context:
    """The context of a request of an OpenAI client, for a Claude model."""
    late = [
        {"type": "function", "name": tool["name"], "parameters": tool["input_schema"], "defer_loading": True}
        for tool in (WEATHER, RECIPE)
    ]
    body = {"model": "m", "input": "q", "tools": [{"type": "tool_search"}, *late]}
    translation = translate_request(Call(json.dumps(body).encode()), "responses", "messages", model="claude-opus-5")
    return Context(translation.request, translation.undo)


def stream(sse: str, source: str, target: str, context: Context) -> tuple[str, StreamTranslator]:
    translator = StreamTranslator(source, target, context)
    return (translator.feed(sse.encode()) + translator.close()).decode(), translator


def read_events(text: str) -> list[dict]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


@needs_shelf
def test_anthropics_search_is_openais_in_a_whole_reply():
    body = json.dumps(read_recording("anthropic/crewai-0033")["response"]).encode()
    translated = translate_response(body, "messages", "responses", ask_openai())
    reply = OpenAIResponse.model_validate(json.loads(translated.body))
    assert [item.type for item in reply.output] == [
        "message",
        "tool_search_call",
        "tool_search_output",
        "message",
        "function_call",
    ]
    call, output = reply.output[1:3]
    assert (call.execution, call.arguments) == ("server", {"query": "weather Tokyo current conditions forecast"})
    assert call.id.startswith("tsc_")
    assert [tool.name for tool in output.tools] == ["get_weather"]
    assert all(loss.grade == "informational" for loss in translated.losses), translated.losses


@needs_shelf
def test_anthropics_search_is_openais_in_a_stream():
    text, translator = stream(
        read_recording("anthropic/dd-trace-py-0004")["sse"], "messages", "responses", ask_openai()
    )
    events = read_events(text)
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert [item["type"] for item in done][1:3] == ["tool_search_call", "tool_search_output"]
    assert done[1]["arguments"] == {"pattern": "weather"}
    assert [tool["name"] for tool in done[2]["tools"]] == ["get_weather"]
    final = OpenAIResponse.model_validate(events[-1]["response"])
    assert [item.model_dump(exclude_unset=True) for item in final.output] == done
    assert all(loss.grade == "informational" for loss in translator.losses)


@needs_shelf
@pytest.mark.parametrize("is_regex", [False, True])
def test_openais_search_is_anthropics_in_a_stream(is_regex):
    recorded = next(one for one in exchanges("responses") if "out:tool_search_output" in one["tags"] and "sse" in one)
    text, _ = stream(recorded["sse"], "responses", "messages", ask_anthropic(REGEX if is_regex else BM25))
    events = read_events(text)
    started = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    search, result = next(
        (one, other)
        for one, other in itertools.pairwise(started)
        if (one["type"], other["type"]) == ("server_tool_use", "tool_search_tool_result")
    )
    assert search["name"] == f"tool_search_tool_{'regex' if is_regex else 'bm25'}"
    assert search["input"] == {}
    assert result["tool_use_id"] == search["id"]
    deltas = [event["delta"]["partial_json"] for event in events if event.get("delta", {}).get("partial_json")]
    assert set(json.loads(deltas[0])) == {"pattern" if is_regex else "query"}


@needs_shelf
def test_openais_search_is_anthropics_in_a_whole_reply():
    recorded = next(
        one for one in exchanges("responses") if "out:tool_search_output" in one["tags"] and "response" in one
    )
    body = json.dumps(recorded["response"]).encode()
    reply = AnthropicMessage.model_validate(
        json.loads(translate_response(body, "responses", "messages", ask_anthropic(BM25)).body)
    )
    kinds = [block.type for block in reply.content]
    at = kinds.index("server_tool_use")
    assert kinds[at + 1] == "tool_search_tool_result"
    assert reply.content[at + 1].tool_use_id == reply.content[at].id
    assert reply.content[at + 1].content.tool_references


@needs_shelf
def test_a_client_without_such_blocks_gets_none_and_the_loss_is_reported():
    body = json.dumps(read_recording("anthropic/crewai-0033")["response"]).encode()
    translated = translate_response(body, "messages", "chat")
    assert b"tool_search" not in translated.body
    assert {"/content/1", "/content/2"} <= {loss.where for loss in translated.losses}


def adapter(client: str, **options) -> ReplyAdapter:
    source = dialect_named("responses" if client == "messages" else "messages")
    return ReplyAdapter(source, dialect_named(client), open_reply_ledger(source), ReplyOptions(**options))


def test_a_query_becomes_a_pattern_that_matches_each_of_its_words():
    tools = dialect_named("messages").read_tools(json.dumps([REGEX]).encode(), "/tools")
    found = adapt_search_reply(ToolSearch(dialect="responses", query="a.b c"), adapter("messages", tools=tools))
    assert (found.pattern, found.query) == (True, r"a\.b|c")


def test_a_client_with_both_searches_gets_the_query_as_it_is():
    tools = dialect_named("messages").read_tools(json.dumps([REGEX, BM25]).encode(), "/tools")
    found = adapt_search_reply(ToolSearch(dialect="responses", query="a.b c"), adapter("messages", tools=tools))
    assert (found.pattern, found.query) == (False, "a.b c")


def test_each_result_has_the_id_of_the_search_before_it():
    client = adapter("messages")
    parts = [ToolSearch(dialect="responses", id="1"), FoundTools(dialect="responses")]
    parts += [ToolSearch(dialect="responses", id="2"), FoundTools(dialect="responses")]
    assert [adapt_search_reply(part, client).id for part in parts] == [
        "1",
        "1",
        "2",
        "2",
    ]


def test_the_names_of_found_tools_are_the_clients():
    client = adapter("responses", names={"ns__a": ("ns", "a")})
    found = adapt_search_reply(FoundTools(dialect="messages", id="s", names=("ns__a",)), client)
    assert found.names == ("ns__a",)
    (group,) = json.loads(found.tools)
    assert (group["name"], [tool["name"] for tool in group["tools"]]) == ("ns", ["a"])


@needs_shelf
def test_a_streamed_search_of_the_same_dialect_is_decoded_with_its_query():
    events = dialect_named("messages").decoder().feed(read_recording("anthropic/dd-trace-py-0004")["sse"].encode())
    parts = [event.part for event in events if isinstance(event, PartStarted)]
    assert next(part for part in parts if isinstance(part, ToolSearch)).query == "weather"
    assert next(part for part in parts if isinstance(part, FoundTools)).names == ("get_weather",)
