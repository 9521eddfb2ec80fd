"""Blank fields of a request: no messages, stop sequences of whitespace."""

import json

import pytest

from dragoman.core.losses import Loss
from dragoman.core.request import Sampling
from dragoman.dialects.record import Call
from dragoman.interpreter.request_fields import adapt_sampling
from dragoman.interpreter.translate import translate_request
from interpreter.workbench import adaptation_for, encode


@pytest.mark.parametrize("target", ["chat", "messages", "gemini"])
def test_an_empty_history_starts_with_a_user_message(target):
    translation = translate_request(Call(encode({"model": "m", "input": []})), "responses", target)
    assert "(continued)" in json.dumps(json.loads(translation.call.body))
    assert (
        Loss("", "the request has no messages: a user message '(continued)' is added", "approximated")
        in translation.losses
    )


COMPACTED = {"type": "compaction", "id": "c", "encrypted_content": "X"}
DECLARED = {"type": "additional_tools", "role": "developer", "tools": []}
SYSTEM = {"role": "system", "content": "s"}
HELLO = {"role": "user", "content": "q"}
ANSWER = {"role": "assistant", "content": "a"}
BEGUN = {"role": "user", "content": "(continued)"}


@pytest.mark.parametrize(
    ("items", "messages"),
    [
        ([COMPACTED], [BEGUN]),
        ([SYSTEM, COMPACTED], [SYSTEM, BEGUN]),
        ([COMPACTED, HELLO], [BEGUN, HELLO]),
        ([COMPACTED, ANSWER, HELLO], [BEGUN, ANSWER, HELLO]),
        ([DECLARED], [BEGUN]),
        ([DECLARED, ANSWER, HELLO], [BEGUN, ANSWER, HELLO]),
        ([DECLARED, HELLO], [HELLO]),
        ([HELLO, COMPACTED], [HELLO]),
    ],
)
def test_a_user_message_is_added_if_the_first_message_cannot_be_sent(items, messages):
    result = translate_request(Call(encode({"model": "m", "input": items})), "responses", "chat", model="gpt-4.1")
    assert json.loads(result.call.body)["messages"] == messages
    first = sum(item is SYSTEM for item in items)
    why = "nothing of the first turn can be sent: '(continued)' is sent instead"
    assert any(why in loss.what and loss.where == f"/input/{first}" for loss in result.losses) is (BEGUN in messages)


def test_a_user_message_is_added_for_responses_too_if_nothing_can_be_sent():
    turn = {"role": "user", "content": [{"type": "hologram", "light": 1}]}
    result = translate_request(Call(encode({"max_tokens": 5, "messages": [turn]})), "messages", "responses", model="m")
    assert json.loads(result.call.body)["input"] == [{"type": "message", **BEGUN}]


def test_a_stop_sequence_of_white_space_is_dropped_where_it_is_refused():
    adaptation = adaptation_for("messages", "claude-opus-5", document={"stop": ["\n", "END", " "]}, blank_stops=False)
    assert adapt_sampling(Sampling(stop=("\n", "END", " ")), adaptation, None).stop == ("END",)
    why = "the target rejects stop sequences of only white space"
    assert adaptation.ledger.losses() == (Loss("/stop/0", why, "dropped"), Loss("/stop/2", why, "dropped"))
