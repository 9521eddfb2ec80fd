"""Find the new turns in a history that a client may have sent again."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.conversations.history import match_history

SYSTEM = {"role": "system", "content": "Be brief."}
ASKED = {"role": "user", "content": "Hello"}
SAID = {"role": "assistant", "content": "Good day.", "reasoning_content": "a greeting"}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1,"b":2}'}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "7"}
MORE = {"role": "user", "content": "And now?"}


def read(*messages):
    body = json.dumps({"model": "m", "messages": list(messages)}).encode()
    return dialect_named("chat").parse_request(Call(body)).messages


def new(sent, kept, of_last=2):
    return match_history(read(*sent), read(*kept), of_last, "c")


@pytest.mark.parametrize(
    ("sent", "kept", "begins"),
    [
        ([ASKED], [], 0),
        ([MORE], [ASKED, SAID], 0),
        ([ASKED, SAID, MORE], [ASKED, SAID], 2),
        ([SAID, MORE], [ASKED, SAID], 1),
        ([SYSTEM, ASKED, SAID, MORE], [SYSTEM, ASKED, SAID], 3),
        ([SYSTEM, MORE], [SYSTEM, ASKED, SAID], 1),
        ([ASKED, CALLED, RESULT], [ASKED, CALLED], 2),
        ([CALLED, RESULT], [ASKED, CALLED], 1),
        ([RESULT], [ASKED, CALLED], 0),
        ([ASKED], [ASKED, SAID], 0),
    ],
)
def test_what_is_new_begins_behind_what_is_known(sent, kept, begins):
    found = new(sent, kept)
    assert (found.first_new, found.is_repeat) == (begins, False)


def test_an_answer_is_known_again_without_what_its_client_dropped_and_however_it_lays_it_out():
    bare = {"role": "assistant", "content": [{"type": "text", "text": "Good day."}]}
    laid_out = json.loads(json.dumps(CALLED).replace("null", '""'))
    laid_out["tool_calls"][0]["function"]["arguments"] = '{ "b": 2,\n "a": 1 }'
    assert new([ASKED, bare, MORE], [ASKED, SAID]).first_new == 2
    assert new([ASKED, laid_out, RESULT], [ASKED, CALLED]).first_new == 2


def test_a_changed_system_message_replaces_the_stored_one():
    other = {"role": "system", "content": "It is Monday."}
    for sent in ([other, MORE], [other, ASKED, SAID, MORE]):
        found = new(sent, [SYSTEM, ASKED, SAID])
        assert (found.first_new, found.new_systems) == (len(sent) - 1, 1)
    assert new([SYSTEM, MORE], [SYSTEM, ASKED, SAID]).new_systems == 0


def test_an_answer_in_the_pieces_it_was_streamed_in_is_known_again():
    pieces = [{"role": "assistant", "content": "Good "}, {"role": "assistant", "content": "day."}]
    assert new([ASKED, *pieces, MORE], [ASKED, SAID]).first_new == 3


def test_a_repeated_last_question_with_its_history_is_a_retry():
    assert new([ASKED, SAID, MORE], [ASKED, SAID, MORE, SAID]).is_repeat
    assert new([ASKED, CALLED, RESULT], [ASKED, CALLED, RESULT, SAID]).is_repeat


@pytest.mark.parametrize(
    "sent",
    [
        [ASKED, {**SAID, "content": "Good night."}, MORE],
        [ASKED, CALLED, RESULT],
        [{**ASKED, "content": "Hi"}, SAID, {**SAID, "content": "x"}],
    ],
)
def test_a_history_that_differs_from_the_stored_one_is_a_conflict(sent):
    with pytest.raises(Problem) as caught:
        new(sent, [ASKED, SAID])
    assert caught.value.kind == "conflict"
