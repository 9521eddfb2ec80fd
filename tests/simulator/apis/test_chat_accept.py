"""Requests that OpenAI accepted are accepted, and those it rejected are rejected."""

import json

import pytest

from dragoman.simulator.apis.api import AcceptedRequest
from dragoman.simulator.apis.rule import Violation
from shelf import needs_shelf, samples
from simulator.apis.chat.bodies import (
    CALCULATOR,
    WEATHER,
    assistant_calls,
    body,
    judge,
    recordings,
    require_accepted,
    tool_result,
)

NOT_IN_THE_BODY = {
    "openai_chat/openllmetry-0041": "the image could not be downloaded",
    **dict.fromkeys(
        (
            "openai_chat/braintrust-sdk-ruby-0001",
            "openai_chat/braintrust-sdk-ruby-0005",
            "openai_chat/dd-trace-py-0029",
            "openai_chat/dd-trace-py-0038",
            "openai_chat/mirascope-0001",
        ),
        "the key was wrong",
    ),
}
OTHER_WORDS = {
    "openai_chat/ai-gateway-0003": "three errors at once, of which another is reported: max_tokens is also out of bounds",
}


@needs_shelf
@pytest.mark.parametrize("path", samples("chat", ".request.json"), ids=lambda path: path.name)
def test_a_sample_is_accepted(path):
    assert isinstance(judge(path.read_bytes()), AcceptedRequest)


@needs_shelf
def test_what_openai_answered_is_accepted():
    answered_by_openai = recordings(200)
    refused = {
        exchange["id"]: result
        for exchange in answered_by_openai
        if isinstance(result := judge(exchange["request"], recorded=True), Violation)
    }
    assert answered_by_openai
    assert refused == {}


@needs_shelf
def test_requests_that_openai_rejected_are_rejected_with_its_wording():
    for exchange in recordings(400, 401, 404):
        result = judge(exchange["request"])
        if exchange["id"] in NOT_IN_THE_BODY:
            assert isinstance(result, AcceptedRequest)
            continue
        assert isinstance(result, Violation), exchange["id"]
        assert result.status == exchange["status"]
        same = result.message == exchange["response"]["error"]["message"]
        assert same is (exchange["id"] not in OTHER_WORDS), exchange["id"]


@needs_shelf
def test_every_recording_that_cannot_be_judged_is_there():
    ids = {exchange["id"] for exchange in recordings(200, 400, 401)}
    assert {*NOT_IN_THE_BODY, *OTHER_WORDS} <= ids


# @openai/agents stores the fields of a message with its text, and sends them back in the part.
KEPT_BY_AN_AGENT = {
    "role": "assistant",
    "content": [{"type": "text", "text": "x", "role": "assistant", "refusal": None, "annotations": []}],
}


@pytest.mark.parametrize(
    "members",
    [
        {"messages": [{"role": "user", "content": ""}]},
        {"messages": [{"role": "user", "content": []}]},
        {"messages": [{"role": "developer", "content": [{"type": "text", "text": "Be brief."}], "name": "me"}]},
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "refusal": "No."}]},
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": None, "audio": {"id": "a1"}}]},
        {"messages": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}]},
        {"messages": [assistant_calls("b", "a"), tool_result("a"), tool_result("b", [{"type": "text", "text": "x"}])]},
        {"messages": [assistant_calls("a"), tool_result("a"), assistant_calls("a"), tool_result("a")]},
        {"messages": [assistant_calls("x" * 64), tool_result("x" * 64)]},
        {"messages": [{"role": "user", "content": "a"}, {"role": "function", "name": "f", "content": "{}"}]},
        {"messages": [{"role": "user", "content": "a"}, KEPT_BY_AN_AGENT, {"role": "user", "content": "b"}]},
        {"tools": [{"type": "function", "function": {"name": "now"}}]},
        {"tools": [{"type": "function", "function": {"name": "now", "parameters": {}, "strict": None}}]},
        {"tools": [{"type": "function", "function": {"name": f"t{number}"}} for number in range(128)]},
        {"tools": [WEATHER, CALCULATOR], "tool_choice": {"type": "custom", "custom": {"name": "calculate"}}},
        {"model": "gpt-4.1", "stop": ["a", "b", "c", "d"]},
        {"stop": []},
        {"model": "gpt-5", "temperature": 1, "top_p": 1, "presence_penalty": 0, "logprobs": False},
        {"model": "gpt-5.1", "temperature": 0.2, "logprobs": True, "top_logprobs": 20},
        {"model": "gpt-5.6-sol", "reasoning_effort": "none", "frequency_penalty": 2, "presence_penalty": -2},
        {"model": "gpt-5.6-sol", "n": 8},
        {"model": "gpt-4o", "n": 128},
        {"model": "gpt-5.4", "tools": [WEATHER]},
        {"model": "gpt-5.4", "tools": [WEATHER], "reasoning_effort": "none"},
        {"model": "gpt-6-luna", "tools": [WEATHER], "reasoning_effort": "none"},
        {"model": "gpt-6-astra", "reasoning_effort": "max"},
        {"model": "gpt-5.2", "tools": [WEATHER], "reasoning_effort": "high"},
        {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}},
        {"stream_options": None, "tools": None, "tool_choice": None, "metadata": None, "stop": None},
        {"metadata": {f"{number:064}": "v" * 512 for number in range(16)}},
        {"prompt_cache_key": "k" * 64, "safety_identifier": "s" * 128},
        {"model": "gpt-4o-search-preview", "web_search_options": {"search_context_size": "low"}},
        {"model": "gpt-audio", "modalities": ["text", "audio"], "audio": {"voice": {"id": "v"}, "format": "mp3"}},
        {"model": "ft:gpt-4o-mini-2024-07-18:me::1", "max_tokens": 5},
        {"model": "gpt-6-luna", "prompt_cache_options": {"mode": "explicit"}, "prompt_cache_retention": "24h"},
        {"moderation": {"model": "omni-moderation-latest", "policy": {"input": {"mode": "block"}}}},
        {"model": "gpt-4o", "prediction": {"type": "content", "content": [{"type": "text", "text": "Hello"}]}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "any", "schema": {"type": "object"}}}},
        {"messages": [{"role": "user", "content": "As JSON."}], "response_format": {"type": "json_object"}},
    ],
    ids=json.dumps,
)
def test_the_valid_side_of_a_rule_is_accepted(members):
    require_accepted(**members)


@pytest.mark.parametrize(
    ("syntax", "definition"),
    [
        ("regex", r"^\+?\d{1,3} [*+?]? \??$"),
        ("lark", 'start: begin hunk+ end?\nbegin: "*?"? LF\nhunk: /(.*)/ LF -> line\n%import common.LF\n'),
        ("regex", r"(?<word>\p{Greek}+)"),
        ("lark", '?start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]+/\n'),
    ],
)
def test_a_grammar_may_mention_the_forbidden_characters(syntax, definition):
    grammar = {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
    require_accepted(tools=[{"type": "custom", "custom": {"name": "by_grammar", "format": grammar}}])


def test_a_stream_is_requested_in_the_body():
    assert require_accepted(stream=True).stream
    assert not require_accepted().stream
    assert not require_accepted(stream=None).stream


def test_the_model_is_the_bodys_own():
    assert require_accepted(model="gpt-4.1-mini").model_request.model == "gpt-4.1-mini"


DEEP = (
    b'{"model": "gpt-4o", "tools": [{"type": "function", "function": {"name": "f", "parameters": ' + b'{"a": ' * 100_000
)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b'{"model": "gpt-4o", "messages": [}', b"\xff\xfe", DEEP], ids=lambda raw: repr(raw[:20])
)
def test_what_is_no_json_is_refused(raw):
    result = judge(raw)
    assert isinstance(result, Violation)
    assert result.rule == "chat.json"
    assert result.message.startswith("We could not parse the JSON body of your request.")


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4", "grok-4-fast", "Qwen/Qwen3.5-9B", "my-own-model"])
def test_a_model_that_is_not_openais_takes_tools_and_sampling(model):
    require_accepted(model=model, tools=[WEATHER], temperature=0.2, max_tokens=9, reasoning_effort="low")


def test_a_router_may_name_the_vendor_before_the_model():
    require_accepted(model="openai/gpt-4o", tools=[WEATHER], temperature=0.2)
    assert not isinstance(judge(body(model="openai/gpt-5.6-sol", tools=[WEATHER])), AcceptedRequest)


def test_what_is_no_object_is_refused():
    result = judge(json.dumps([body()]).encode())
    assert isinstance(result, Violation)
    assert result.rule == "chat.type"
