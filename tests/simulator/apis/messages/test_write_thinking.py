"""Thinking blocks come back as they were signed, in the conversation they belong to."""

import json

import pytest

from dragoman.simulator.apis.api import ReplyMeta
from dragoman.simulator.apis.conversation import Answer, AnswerSource, Call, TokenSigner
from dragoman.simulator.apis.messages import API
from dragoman.simulator.apis.messages.write import REDACTED_THINKING_TRIGGER
from simulator.apis.messages.bodies import (
    NEWEST,
    WEATHER,
    asks,
    assistant,
    require_accepted,
    require_rejected,
    text,
    user,
)

SIGNER = TokenSigner(3)
THINKING = Answer(
    thought="Paris, then.", calls=(Call(id="", name="get_weather", arguments={"city": "Paris"}),), end="calls"
)


def reply_to(body, answer=THINKING, number=1):
    occasion = ReplyMeta(id=f"{number:024x}", created=1, signer=SIGNER)
    return json.loads(API.render_reply(answer, require_accepted(body, SIGNER), occasion))


def answer_calls(body, reply, **members):
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "18"}
        for block in reply["content"]
        if block["type"] == "tool_use"
    ]
    output = [
        *body["messages"],
        {"role": "assistant", "content": reply["content"]},
        user(*results) if results else user("Go on."),
    ]
    return {**body, "messages": output, **members}


@pytest.fixture(params=[NEWEST, "claude-opus-4-7", "claude-sonnet-4-6"])
def body(request):
    return asks(
        model=request.param, tools=[WEATHER], thinking={"type": "adaptive", "display": "summarized"}, system="Be brief."
    )


def test_a_thought_that_comes_back_as_it_was_is_accepted(body):
    once = answer_calls(body, reply_to(body))
    require_accepted(once, SIGNER)
    twice = answer_calls(once, reply_to(once, number=2))
    require_accepted(twice, SIGNER)


def test_a_thought_that_was_edited_is_refused(body):
    once = answer_calls(body, reply_to(body))
    once["messages"][1]["content"][0]["thinking"] += " Or London."
    found = require_rejected(once, SIGNER)
    assert found.rule == "messages.thinking-modified"
    assert found.message.startswith("messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest")


@pytest.mark.parametrize(
    "spoil",
    [lambda token: token[:40] + "xy" + token[42:], lambda token: token[:-8], lambda _: "EqQBopaque==", lambda _: ""],
)
def test_a_foreign_signature_is_rejected(body, spoil):
    once = answer_calls(body, reply_to(body))
    thought = once["messages"][1]["content"][0]
    thought["signature"] = spoil(thought["signature"])
    found = require_rejected(once, SIGNER)
    assert (found.rule, found.message) == (
        "messages.thinking-signature",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    )


def test_a_signature_of_the_real_vendor_passes_in_a_recording(body):
    once = answer_calls(body, reply_to(body))
    once["messages"][1]["content"][0]["signature"] = "EqQBopaque=="
    require_accepted(once, SIGNER, recorded=True)


def test_a_thought_of_another_simulator_is_refused(body):
    assert require_rejected(answer_calls(body, reply_to(body)), TokenSigner(4)).rule == "messages.thinking-signature"


def test_a_thought_appears_once(body):
    first = reply_to(body)
    once = answer_calls(body, first)
    again = answer_calls(once, {"content": [first["content"][0], text("18.")]})
    assert require_rejected(again, SIGNER).rule == "messages.thinking-reused"


@pytest.mark.parametrize(
    "change",
    [
        {"system": "Be verbose."},
        {"tools": [{**WEATHER, "description": "Weather"}]},
        {"messages": [user("What is the weather in London?")]},
    ],
)
def test_the_newest_models_bind_a_thought_to_its_conversation(change):
    body = asks(tools=[WEATHER], system="Be brief.")
    reply = reply_to(body)
    found = require_rejected(answer_calls({**body, **change}, reply), SIGNER)
    assert found.rule == "messages.thinking-prefix"
    assert "bound to a different conversation" in found.message


def test_older_models_do_not_bind_a_thought_to_its_conversation():
    body = asks(tools=[WEATHER], model="claude-opus-4-8", thinking={"type": "adaptive"})
    require_accepted(answer_calls({**body, "system": "Other."}, reply_to(body)), SIGNER)


def test_what_the_vendor_does_not_count_as_a_change_is_none():
    body = asks(tools=[WEATHER], system=[text("x-anthropic-billing-header: a=1;"), text("Be brief.")])
    reply = reply_to(body)
    moved = answer_calls(body, reply, output_config={"effort": "low"}, max_tokens=99)
    moved["system"] = [text("x-anthropic-billing-header: a=2;"), text("Be brief.", cache_control={"type": "ephemeral"})]
    moved["messages"][0] = user(text("What is the weather in Paris?", cache_control={"type": "ephemeral"}))
    moved["tools"] = [dict(reversed(WEATHER.items())), {**WEATHER, "name": "later", "defer_loading": True}]
    require_accepted(moved, SIGNER)


def test_a_caller_may_request_that_thoughts_of_other_conversations_are_dropped():
    body = asks(tools=[WEATHER], system="Be brief.")
    moved = answer_calls({**body, "system": "Other."}, reply_to(body))
    binding = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    require_accepted({**moved, "thinking": {"type": "adaptive", **binding}}, SIGNER)


@pytest.mark.parametrize("other", ["claude-sonnet-5-5", "claude-fable-5-1", "never-heard-of"])
def test_the_newest_models_leave_out_a_thought_of_another_model_and_refuse_none(other):
    body = asks(tools=[WEATHER], system="Be brief.")
    switched = answer_calls({**body, "system": "Other.", "model": other}, reply_to(body))
    require_accepted(switched, SIGNER)
    assert "input_transformations" not in reply_to(switched)


def test_with_the_beta_a_reply_reports_thoughts_of_another_model():
    older = asks(tools=[WEATHER], model="claude-opus-4-8", thinking={"type": "adaptive"})
    switched = {**answer_calls(older, reply_to(older)), "model": NEWEST}
    found = require_accepted(switched, SIGNER, betas=("thinking-binding-controls-2026-08-01",))
    occasion = ReplyMeta(id="2" * 24, created=1, signer=SIGNER)
    rendered = json.loads(API.render_reply(THINKING, found, occasion))["input_transformations"]
    dropped = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "model_binding_mismatch"}
    assert rendered == [dropped]


def test_a_thought_of_the_same_model_is_bound_to_its_conversation_under_another_name():
    body = asks(tools=[WEATHER], system="Be brief.")
    moved = answer_calls({**body, "system": "Other.", "model": f"{NEWEST}-20260901"}, reply_to(body))
    assert require_rejected(moved, SIGNER).rule == "messages.thinking-prefix"


def test_a_signature_without_its_last_token_is_refused():
    body = asks(tools=[WEATHER])
    once = answer_calls(body, reply_to(body))
    thought = once["messages"][1]["content"][0]
    thought["signature"] = thought["signature"][:144]
    assert require_rejected(once, SIGNER).rule == "messages.thinking-signature"


def test_thoughts_are_left_out_where_the_model_does_so_and_still_come_back():
    body = asks(tools=[WEATHER])
    reply = reply_to(body)
    assert reply["content"][0]["thinking"] == ""
    require_accepted(answer_calls(body, reply), SIGNER)


def test_text_added_to_a_thought_without_text_is_ignored():
    body = asks(tools=[WEATHER])
    once = answer_calls(body, reply_to(body))
    once["messages"][1]["content"][0]["thinking"] = "Something."
    require_accepted(once, SIGNER)


def test_a_thought_can_be_sealed_and_comes_back_sealed():
    body = asks(user(f"{REDACTED_THINKING_TRIGGER} Paris?"), tools=[WEATHER])
    reply = reply_to(body)
    assert reply["content"][0]["type"] == "redacted_thinking"
    once = answer_calls(body, reply)
    require_accepted(once, SIGNER)
    once["messages"][1]["content"][0]["data"] = "abcdefgh"
    assert require_rejected(once, SIGNER).message == "messages.1.content.0: Invalid `data` in `redacted_thinking` block"


def test_with_a_budget_the_turn_that_is_being_answered_starts_with_a_thought():
    body = asks(model="claude-sonnet-4-5", tools=[WEATHER], thinking={"type": "enabled", "budget_tokens": 1024})
    once = answer_calls(body, reply_to(body))
    require_accepted(once, SIGNER)
    del once["messages"][1]["content"][0]
    assert require_rejected(once, SIGNER).message.startswith(
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    )
    require_accepted({**once, "messages": [*once["messages"], assistant("18."), user("And London?")]}, SIGNER)


def test_what_a_search_found_comes_back_as_it_was_sealed():
    tool = {"type": "web_search_20260318", "name": "web_search"}
    body = asks(tools=[tool])
    page = AnswerSource(url="https://example.com/a", title="A", quote="It is sunny.")
    reply = reply_to(body, Answer(text="It is sunny.", query="weather", sources=(page,)))
    once = answer_calls(body, reply)
    require_accepted(once, SIGNER)
    once["messages"][1]["content"][1]["content"][0]["url"] = "https://example.com/b"
    assert require_rejected(once, SIGNER).rule == "messages.search-sealed"
