"""Whole replies match the official SDK's types exactly, without unknown fields."""

import json
import warnings

import pytest

from dragoman.simulator.apis.chat import API
from dragoman.simulator.apis.conversation import Answer, AnswerSource, Call
from simulator.apis.chat.answers import (
    CASES,
    FOUND,
    LEGACY,
    NAMED,
    TOOLS,
    USED,
    call,
    extras,
    occasion,
    parse_typed,
    whole,
)
from simulator.apis.chat.bodies import CALCULATOR, WEATHER, require_accepted

ALL = pytest.mark.parametrize(("members", "answer"), CASES.values(), ids=CASES.keys())


@ALL
def test_a_reply_has_only_fields_of_the_sdk(members, answer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(extras(parse_typed(whole(members, answer)))) == []


@ALL
def test_a_reply_contains_the_models_answer(members, answer):
    reply = parse_typed(whole(members, answer))
    assert reply.id == "chatcmpl-0123456789abcdef01234567"
    assert reply.created == 1_790_000_000
    assert len(reply.choices) == members.get("n", 1)
    for index, choice in enumerate(reply.choices):
        assert choice.index == index
        assert choice.message.content == (answer.text or (None if answer.calls or answer.refusal else ""))
        assert choice.message.refusal == (answer.refusal or None)
        called = [each.function for each in choice.message.tool_calls or []]
        called += [choice.message.function_call] if choice.message.function_call else []
        assert [each.name for each in called] == [each.name for each in answer.calls]
        for written, meant in zip(called, answer.calls, strict=True):
            is_text = isinstance(meant.arguments, str)
            assert (written.arguments if is_text else json.loads(written.arguments)) == meant.arguments


def test_a_thought_is_counted_and_not_sent():
    reply = whole({"reasoning_effort": "high"}, Answer(text="Hello.", thought="Secret plan.", usage=USED))
    assert "Secret" not in json.dumps(reply)
    assert reply["usage"]["completion_tokens_details"]["reasoning_tokens"] == 8


def test_usage_counts_as_openai_does():
    assert whole({}, Answer(text="Hi", usage=USED))["usage"] == {
        "prompt_tokens": 40,
        "completion_tokens": 20,
        "total_tokens": 60,
        "prompt_tokens_details": {"cached_tokens": 16, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 8,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def test_usage_counts_all_choices():
    usage = whole({"n": 3}, Answer(text="Hi", usage=USED))["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (40, 60, 100)


def test_cache_writes_are_counted_since_gpt_5_6():
    details = whole({"model": "gpt-5.6-sol"}, Answer(text="Hi", usage=USED))["usage"]["prompt_tokens_details"]
    assert details["cache_write_tokens"] == 0


FINISHES = [
    ({}, Answer(text="a"), "stop"),
    ({}, Answer(text="a", end="length"), "length"),
    ({}, Answer(end="filtered"), "content_filter"),
    ({}, Answer(end="malformed_call"), "stop"),
    (TOOLS, Answer(calls=(call(1),), end="calls"), "tool_calls"),
    (TOOLS, Answer(calls=(call(1),), end="length"), "length"),
    ({**TOOLS, "tool_choice": NAMED}, Answer(calls=(call(1),), end="calls"), "tool_calls"),
    ({**TOOLS, "tool_choice": NAMED, "model": "gpt-4o"}, Answer(calls=(call(1),), end="calls"), "stop"),
    ({"functions": LEGACY}, Answer(calls=(call(1),), end="calls"), "function_call"),
    (
        {"functions": LEGACY, "function_call": {"name": "get_weather"}, "model": "gpt-4o"},
        Answer(calls=(call(1),), end="calls"),
        "stop",
    ),
]


@pytest.mark.parametrize(("members", "answer", "reason"), FINISHES)
def test_an_end_has_openais_finish_reason(members, answer, reason):
    assert whole(members, answer)["choices"][0]["finish_reason"] == reason


def test_ids_of_calls_are_in_openais_style():
    kept = Call(id="call_of_a_script", name="get_weather", arguments={})
    calls = whole(TOOLS, Answer(calls=(kept, call(1), call(1)), end="calls"))["choices"][0]["message"]["tool_calls"]
    ids = [each["id"] for each in calls]
    assert ids[0] == "call_of_a_script"
    assert len(set(ids)) == 3
    assert all(each.startswith("call_") and len(each) == 29 for each in ids[1:])


def test_choices_do_not_share_ids():
    choices = whole({**TOOLS, "n": 2}, Answer(calls=(call(1),), end="calls"))["choices"]
    assert len({choice["message"]["tool_calls"][0]["id"] for choice in choices}) == 2


def test_a_custom_tool_is_called_with_text():
    asked = {"tools": [WEATHER, CALCULATOR]}
    answer = Answer(calls=(Call(id="call_1", name="calculate", arguments="2+3"),), end="calls")
    reply = parse_typed(whole(asked, answer))
    assert list(extras(reply)) == []
    [written] = reply.choices[0].message.tool_calls
    assert (written.type, written.custom.name, written.custom.input) == ("custom", "calculate", "2+3")


def test_a_source_is_cited_where_the_text_quotes_it():
    text = "Well: Paris lies on the Seine."
    unquoted = AnswerSource(url="https://example.com/b", title="B", quote="nowhere to be found")
    reply = parse_typed(whole({"model": "gpt-4o-search-preview"}, Answer(text=text, sources=(FOUND, unquoted))))
    first, second = (each.url_citation for each in reply.choices[0].message.annotations)
    assert text[first.start_index : first.end_index] == FOUND.quote
    assert (first.url, first.title) == (FOUND.url, FOUND.title)
    assert text[second.start_index : second.end_index] == text


@pytest.mark.parametrize(
    ("asked", "result"), [(None, "default"), ("auto", "default"), ("flex", "flex"), ("fast", "priority")]
)
def test_the_service_tier_is_in_the_reply(asked, result):
    assert whole({"service_tier": asked}, Answer(text="a"))["service_tier"] == result


def test_log_probabilities_cover_the_text():
    asked = {"model": "gpt-4o", "logprobs": True, "top_logprobs": 2}
    lines = whole(asked, Answer(text="Hello, wide wörld"))["choices"][0]["logprobs"]["content"]
    assert "".join(token["token"] for token in lines) == "Hello, wide wörld"
    assert all(bytes(token["bytes"]).decode() == token["token"] for token in lines)
    assert all(
        len(token["top_logprobs"]) == 2 and token["top_logprobs"][0]["token"] == token["token"] for token in lines
    )
    assert whole({}, Answer(text="Hello"))["choices"][0]["logprobs"] is None


def test_a_malformed_call_is_forwarded():
    choice = whole(TOOLS, Answer(end="malformed_call"))["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    [written] = choice["message"]["tool_calls"]
    assert written["function"]["name"] == "get_weather"
    with pytest.raises(json.JSONDecodeError):
        json.loads(written["function"]["arguments"])


def test_a_silenced_reply_has_no_choices():
    reply = parse_typed(json.loads(API.drop_answer(json.dumps(whole({}, Answer(text="a", usage=USED))).encode())))
    assert reply.choices == []
    assert reply.usage.total_tokens == 60


def test_tokens_are_not_counted_here():
    error = json.loads(API.render_token_count(require_accepted(), 7))["error"]
    assert error["code"] == "unknown_url"


def test_the_same_occasion_gives_the_same_reply():
    asked, answer = require_accepted(**TOOLS), Answer(calls=(call(1),), end="calls", usage=USED)
    assert API.render_reply(answer, asked, occasion()) == API.render_reply(answer, asked, occasion())
