"""A conversation that goes on is read, fitted and written only where it is new."""

import json
from typing import Any

import pytest

from dragoman.core.problems import Problem
from dragoman.core.request import leading_systems
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.conversation import Conversation
from dragoman.interpreter.recall import NOTHING, Recall
from dragoman.interpreter.traits import traits_for

GEMINI = traits_for("gemini", "gemini-3-flash")
SYSTEM = {"role": "system", "content": "Be brief. " + "x" * 64}
USER = {"role": "user", "content": "go"}
DONE = {"role": "assistant", "content": "done"}


def call(name: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": name, "type": "function", "function": function}],
    }


def result(name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": f"result {name}"}


LOOP = [SYSTEM, USER, call("a"), result("a"), call("b"), result("b")]


class Talk:
    """One conversation from Chat to Gemini, turn by turn."""

    def __init__(self) -> None:
        self.recall = Recall(least=64)

    def at(self, messages: list[dict[str, Any]], **others: Any) -> Conversation:
        return self.body(json.dumps({"model": "m", "messages": messages, **others}).encode())

    def body(self, body: bytes) -> Conversation:
        return Conversation(Call(body), dialect_named("chat"), dialect_named("gemini"), "", self.recall)


@pytest.fixture
def talk() -> Talk:
    """A conversation that has come before, and whose beginning was remembered when it came again."""
    begun = Talk()
    begun.at(LOOP)
    begun.at(LOOP).beginning(GEMINI, {})
    return begun


def test_a_history_that_comes_for_the_first_time_is_translated_as_one():
    assert Talk().at(LOOP).beginning(GEMINI, {}) is NOTHING


def test_a_small_request_is_not_looked_at():
    recall = Recall(least=1 << 20)
    for _ in range(3):
        body = json.dumps({"model": "m", "messages": LOOP}).encode()
        conversation = Conversation(Call(body), dialect_named("chat"), dialect_named("gemini"), "", recall)
        assert conversation.beginning(GEMINI, {}) is NOTHING


def test_a_beginning_ends_where_the_model_began_its_last_answer():
    begun = Talk()
    begun.at(LOOP)
    beginning = begun.at(LOOP).beginning(GEMINI, {})
    assert [message.where for message in beginning.messages] == [f"/messages/{number}" for number in range(4)]
    assert beginning.ids == {"a"}
    turns = json.loads(b"[" + beginning.written + b"]")
    assert [turn["role"] for turn in turns] == ["user", "model", "user"]
    assert beginning.traits is GEMINI


def test_what_is_known_is_not_read_again(talk):
    first, second = talk.at(LOOP).request, talk.at([*LOOP, DONE, USER]).request
    assert all(one is other for one, other in zip(first.messages[:4], second.messages[:4], strict=True))
    assert first.messages[4] is not second.messages[4]
    assert [message.where for message in second.messages] == [f"/messages/{number}" for number in range(8)]


def test_a_beginning_grows_with_the_conversation(talk):
    longer = talk.at([*LOOP, call("c"), result("c"), DONE, USER]).beginning(GEMINI, {})
    assert len(longer.messages) == 8
    assert longer.ids == {"a", "b", "c"}
    again = talk.at([*LOOP, call("c"), result("c"), DONE, USER]).beginning(GEMINI, {})
    assert again is longer


def test_losses_of_what_is_known_are_remembered(talk):
    odd = [SYSTEM, USER | {"name": "bob"}, call("a"), result("a"), DONE | {"audio": {"id": "x"}}, USER]
    talk.at(odd)
    beginning = talk.at(odd).beginning(GEMINI, {})
    assert [(loss.kind, loss.where) for loss in beginning.losses] == [
        ("dropped", "/messages/1/name"),
        ("approximated", "/messages/2/tool_calls/0"),
    ]
    longer = talk.at([*odd, DONE, USER]).beginning(GEMINI, {})
    assert longer.losses[:2] == beginning.losses
    assert [loss.where for loss in longer.losses[2:]] == ["/messages/4/audio/id"]


def test_a_stand_in_for_a_name_is_remembered(talk):
    strange = call("a")
    strange["tool_calls"][0]["function"]["name"] = "f g"
    talk.at([SYSTEM, USER, strange, result("a"), DONE, USER])
    beginning = talk.at([SYSTEM, USER, strange, result("a"), DONE, USER]).beginning(GEMINI, {})
    assert list(beginning.names.values()) == [("", "f g")]
    longer = talk.at([SYSTEM, USER, strange, result("a"), DONE, USER, DONE, USER]).beginning(GEMINI, {})
    assert longer.names == beginning.names


def test_system_messages_at_the_head_are_fitted_anew_each_time(talk):
    beginning = talk.at(LOOP).beginning(GEMINI, {})
    assert leading_systems(beginning.messages) == 1
    assert b"Be brief" not in beginning.written


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param([call("a"), result("a")], id="an id is used again"),
        pytest.param([DONE, result("a")], id="a call is answered again"),
        pytest.param([call(""), result("")], id="a call has no id"),
    ],
)
def test_a_rest_that_touches_what_is_known_is_translated_with_it(talk, rest):
    conversation = talk.at([*LOOP[:4], *rest])
    assert conversation.beginning(GEMINI, {}) is NOTHING
    assert len(conversation.request.messages) == 6


def test_a_rest_in_which_the_user_goes_on_is_read_and_translated_with_what_was_known(talk):
    conversation = talk.at([*LOOP[:4], USER, DONE])
    assert len(conversation.request.messages) == 6
    assert len(conversation.beginning(GEMINI, {}).messages) == 5


def test_a_beginning_without_all_its_results_is_not_remembered():
    begun = Talk()
    history = [SYSTEM, USER, call("a"), USER, DONE, USER]
    begun.at(history)
    assert begun.at(history).beginning(GEMINI, {}) is NOTHING


def test_a_beginning_without_ids_is_not_remembered():
    begun = Talk()
    history = [SYSTEM, USER, call(""), result(""), DONE, USER]
    begun.at(history)
    assert begun.at(history).beginning(GEMINI, {}) is NOTHING


def test_a_beginning_is_not_used_for_another_row_of_traits(talk):
    assert talk.at(LOOP).beginning(traits_for("gemini", "gemini-2.5-flash"), {}) is NOTHING


def test_a_request_that_ends_with_what_is_known_is_read_whole(talk):
    request = talk.at(LOOP[:4]).request
    assert len(request.messages) == 4


def test_a_member_that_stands_twice_is_read_as_the_reader_does(talk):
    body = (
        json.dumps({"model": "m", "messages": LOOP}).encode()[:-1] + b',"messages":[{"role":"user","content":"other"}]}'
    )
    assert [part.text for message in talk.body(body).request.messages for part in message.parts] == ["other"]


def test_what_is_wrong_behind_the_known_is_told_of_the_whole_document(talk):
    with pytest.raises(Problem) as caught:
        talk.at([*LOOP, DONE, {"role": "user", "content": 5}])
    assert caught.value.where == "/messages/7/content"


def test_extras_behind_the_known_are_found_at_their_places(talk):
    request = talk.at([*LOOP, DONE | {"strange": 1}, USER]).request
    assert request.messages[6].extras.fields == {"/strange": b"1"}
    assert request.messages[6].where == "/messages/6"


def test_system_instructions_outside_the_history_may_change():
    recall = Recall(least=64)
    turns = [{"role": role, "content": "y" * 64} for role in ("user", "assistant", "user", "assistant", "user")]
    bodies = [{"system": "one"}, {"system": "one"}, {}, {"system": "two"}]
    told = []
    for others in bodies:
        body = json.dumps({"model": "m", "max_tokens": 9, "messages": turns, **others}).encode()
        conversation = Conversation(Call(body), dialect_named("messages"), dialect_named("gemini"), "", recall)
        told.append((conversation.beginning(GEMINI, {}), conversation.request.messages))
    assert told[0][0] is NOTHING
    assert len(told[1][0].messages) == 3
    assert told[2][0] is told[3][0] is told[1][0]
    assert [len(messages) for _, messages in told] == [6, 6, 5, 6]
    assert told[3][1][0].parts[0].text == "two"
    assert told[1][0].end_in(told[3][1]) == 4
