"""Replies that are read straight say what they say when they are read with whatever they may hold."""

import json
from typing import Any

import pytest
from hypothesis import given

import strategies
from dragoman.core.problems import Problem
from dragoman.dialects.chat.plain_reply import read_plain
from dragoman.dialects.chat.response import build_response, parse_response, read_any
from shelf import needs_shelf


def assert_read_alike(body: bytes) -> bool:
    plain = read_plain(body)
    if plain is not None:
        other = read_any(body)
        assert plain == other
        assert [part.where for part in plain.parts] == [part.where for part in other.parts]
    return plain is not None


def reply(
    message: dict[str, Any], finish: str | None = "stop", choice: dict[str, Any] | None = None, **fields: Any
) -> bytes:
    said = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish, **(choice or {})}
    return json.dumps({"id": "chatcmpl-1", "created": 5, "model": "m", "choices": [said], **fields}).encode()


def call(arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}, **more}


USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 4,
    "total_tokens": 13,
    "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 0},
    "completion_tokens_details": {
        "reasoning_tokens": 2,
        "audio_tokens": None,
        "accepted_prediction_tokens": 1,
        "rejected_prediction_tokens": 0,
    },
}


@needs_shelf
def test_every_recorded_reply_is_read_alike_and_most_are_plain(replies):
    found = []
    for _, body in replies:
        try:
            read_any(body)
        except Problem:
            assert read_plain(body) is None
        else:
            found.append(assert_read_alike(body))
    assert sum(found) > len(found) / 2


@given(strategies.responses("chat"))
def test_every_generated_reply_is_read_alike(response):
    try:
        body = build_response(response, None)
        read_any(body)
    except Problem:
        return
    assert_read_alike(body)


@pytest.mark.parametrize(
    "body",
    [
        reply({"content": "a"}),
        reply(
            {"content": None, "refusal": None, "annotations": [], "tool_calls": [call(), call("", index=1)]},
            "tool_calls",
        ),
        reply({"content": "a", "tool_calls": [call()]}, "stop"),
        reply({"content": "", "reasoning_content": "hm", "tool_calls": None}),
        reply({"content": "a"}, "length"),
        reply({"content": "a"}, "content_filter", {"logprobs": None, "stop_reason": None}),
        reply({"content": "a"}, "odd"),
        reply({"content": "a"}, usage=USAGE, service_tier="default", system_fingerprint="fp", object="chat.completion"),
        reply({"content": "a"}, usage={**USAGE, "total_tokens": 99}, service_tier=None, error=None),
        reply({"content": "a"}, usage={**USAGE, "total_tokens": 15}),
        reply({"content": "a"}, created=0, id=None, model=None, usage=None),
        reply({}),
    ],
)
def test_plain_replies_are_read_straight(body):
    assert assert_read_alike(body)


@pytest.mark.parametrize(
    "body",
    [
        reply({"content": [{"type": "text", "text": "a"}]}),
        reply({"refusal": "no"}),
        reply({"content": "a", "annotations": [{"type": "url_citation", "url_citation": {"url": "u"}}]}),
        reply({"content": "a", "reasoning": "hm"}),
        reply({"content": "a", "unheard": 1}),
        reply({"content": "a", "function_call": {"name": "f", "arguments": "{}"}}),
        reply({"tool_calls": [call({"an": "object"})]}),
        reply({"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "f", "input": "x"}}]}),
        reply({"tool_calls": [call(extra_content={"google": {"thought_signature": "c2ln"}})]}),
        reply({"tool_calls": [call("{")]}, "length"),
        reply({"tool_calls": [{**call(), "type": None}]}),
        reply({"content": "a"}, None),
        reply({"content": "a"}, choice={"index": 1}),
        reply({"content": "a"}, choice={"stop_reason": "END"}),
        reply({"content": "a"}, choice={"logprobs": {"content": []}}),
        reply({"content": "a"}, usage={"prompt_tokens": "many"}),
        reply({"content": "a"}, error={"message": "half"}),
        reply({"content": "a"}, created=5.5),
        b'{"choices":[]}',
        b'{"error":{"message":"no"}}',
        b"<html>",
        b"[]",
    ],
)
def test_whatever_is_not_quite_plain_is_looked_at_closely(body):
    assert read_plain(body) is None


@pytest.mark.parametrize(
    "body",
    [
        reply({"content": "a"}).replace(b'"a"', b'"\xff"'),
        reply({"content": "a"}, service_tier="x").replace(b'"x"', b'"\xff"'),
        reply({"content": "a"}, usage={"prompt_tokens_details": {"audio_tokens": "x"}}).replace(b'"x"', b'"\xff"'),
    ],
)
def test_a_plain_reply_must_be_text(body):
    assert read_plain(body) is None
    with pytest.raises(Problem):
        parse_response(body)
