"""A conversation that goes on is parsed, adapted and rendered only where it is new."""

import json
from typing import Any

import pytest

from dragoman.core.problems import Problem
from dragoman.core.request import count_leading_systems
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter import translate
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.prefix_cache import NO_PREFIX, Prefix, PrefixCache
from dragoman.interpreter.request_history import RequestHistory
from dragoman.interpreter.tools_cache import ToolsCache
from dragoman.interpreter.translate import Caches
from dragoman.interpreter.translation import TranslationTask

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
        self.cache = PrefixCache(min_bytes=64)

    def at(self, messages: list[dict[str, Any]], **others: Any) -> RequestHistory:
        return self.body(json.dumps({"model": "m", "messages": messages, **others}).encode())

    def body(self, body: bytes) -> RequestHistory:
        return history_of(body, "chat", self.cache)

    def prefix(self, messages: list[dict[str, Any]]) -> Prefix:
        return prefix_of(self.at(messages))


def history_of(body: bytes, source: str, cache: PrefixCache) -> RequestHistory:
    first = dialect_named(source)
    task = TranslationTask(Call(body), first, dialect_named("gemini"))
    return RequestHistory(task, cache, first.read_tools)


def prefix_of(history: RequestHistory, traits: Traits = GEMINI) -> Prefix:
    return history.translate_prefix(history.request.messages, dialect_named("gemini"), traits, {}, None)


@pytest.fixture
def talk() -> Talk:
    """A conversation that has come before, and whose prefix is cached."""
    started = Talk()
    started.at(LOOP)
    started.prefix(LOOP)
    return started


def test_the_prefix_of_a_history_is_stored_the_first_time_it_comes():
    started = Talk()
    assert started.prefix(LOOP) is not NO_PREFIX
    assert started.at(LOOP).prefix_length == 4


def test_a_small_request_is_not_looked_up_in_the_cache(monkeypatch):
    cache = PrefixCache(min_bytes=1 << 20)
    monkeypatch.setattr(translate, "CACHES", Caches(ToolsCache(), cache))
    body = json.dumps({"model": "m", "messages": LOOP}).encode()
    for _ in range(3):
        translate.translate_request(Call(body), "chat", "gemini")
    assert not cache._prefixes


def test_a_prefix_ends_where_the_model_began_its_last_answer():
    started = Talk()
    started.at(LOOP)
    beginning = started.prefix(LOOP)
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


def test_a_prefix_grows_with_the_conversation(talk):
    longer = talk.prefix([*LOOP, call("c"), result("c"), DONE, USER])
    assert len(longer.messages) == 8
    assert longer.ids == {"a", "b", "c"}
    again = talk.prefix([*LOOP, call("c"), result("c"), DONE, USER])
    assert again is longer


def test_losses_of_what_is_known_are_kept(talk):
    odd = [SYSTEM, USER | {"name": "bob"}, call("a"), result("a"), DONE | {"audio": {"id": "x"}}, USER]
    talk.at(odd)
    beginning = talk.prefix(odd)
    assert [(loss.kind, loss.where) for loss in beginning.losses] == [
        ("dropped", "/messages/1/name"),
        ("approximated", "/messages/2/tool_calls/0"),
    ]
    longer = talk.prefix([*odd, DONE, USER])
    assert longer.losses[:2] == beginning.losses
    assert [loss.where for loss in longer.losses[2:]] == ["/messages/4/audio"]


def test_an_alias_of_a_name_is_kept(talk):
    strange = call("a")
    strange["tool_calls"][0]["function"]["name"] = "f g"
    talk.at([SYSTEM, USER, strange, result("a"), DONE, USER])
    beginning = talk.prefix([SYSTEM, USER, strange, result("a"), DONE, USER])
    assert list(beginning.names.values()) == [("", "f g")]
    longer = talk.prefix([SYSTEM, USER, strange, result("a"), DONE, USER, DONE, USER])
    assert longer.names == beginning.names


def test_system_messages_at_the_head_are_adapted_anew_each_time(talk):
    beginning = talk.prefix(LOOP)
    assert count_leading_systems(beginning.messages) == 1
    assert b"Be brief" not in beginning.written


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param([call("a"), result("a")], id="an id is used again"),
        pytest.param([DONE, result("a")], id="a call is answered again"),
    ],
)
def test_a_rest_that_touches_what_is_known_is_translated_with_it(talk, rest):
    conversation = talk.at([*LOOP[:4], *rest])
    assert prefix_of(conversation) is NO_PREFIX
    assert len(conversation.request.messages) == 6


def test_a_rest_that_continues_the_user_turn_is_translated_with_the_cached_prefix(talk):
    conversation = talk.at([*LOOP[:4], USER, DONE])
    assert len(conversation.request.messages) == 6
    assert len(prefix_of(conversation).messages) == 5


def test_a_prefix_without_all_its_results_is_not_kept():
    started = Talk()
    history = [SYSTEM, USER, call("a"), USER, DONE, USER]
    started.at(history)
    assert started.prefix(history) is NO_PREFIX


def test_a_prefix_without_ids_is_not_kept():
    started = Talk()
    history = [SYSTEM, USER, call(""), result(""), DONE, USER]
    started.at(history)
    assert started.prefix(history) is NO_PREFIX


def test_a_prefix_is_not_used_for_another_row_of_traits(talk):
    assert prefix_of(talk.at(LOOP), traits_for("gemini", "gemini-2.5-flash")) is NO_PREFIX


def test_a_request_that_ends_with_what_is_known_is_read_whole(talk):
    request = talk.at(LOOP[:4]).request
    assert len(request.messages) == 4


def test_a_duplicate_key_is_read_as_the_json_parser_does(talk):
    body = (
        json.dumps({"model": "m", "messages": LOOP}).encode()[:-1] + b',"messages":[{"role":"user","content":"other"}]}'
    )
    assert [part.text for message in talk.body(body).request.messages for part in message.parts] == ["other"]


def test_an_error_after_the_cached_prefix_has_a_pointer_into_the_whole_document(talk):
    with pytest.raises(Problem) as caught:
        talk.at([*LOOP, DONE, {"role": "user", "content": 5}])
    assert caught.value.where == "/messages/7/content"


def test_extras_behind_the_known_are_found_at_their_places(talk):
    request = talk.at([*LOOP, DONE | {"strange": 1}, USER]).request
    assert request.messages[6].extras.fields == {"/strange": b"1"}
    assert request.messages[6].where == "/messages/6"


def test_system_instructions_outside_the_history_may_change():
    cache = PrefixCache(min_bytes=64)
    turns = [{"role": role, "content": "y" * 64} for role in ("user", "assistant", "user", "assistant", "user")]
    bodies = [{"system": "one"}, {"system": "one"}, {}, {"system": "two"}]
    actual = []
    for others in bodies:
        body = json.dumps({"model": "m", "max_tokens": 9, "messages": turns, **others}).encode()
        conversation = history_of(body, "messages", cache)
        actual.append((prefix_of(conversation), conversation.request.messages))
    assert len(actual[0][0].messages) == 3
    assert actual[1][0] is actual[0][0]
    assert actual[2][0] is actual[3][0] is actual[1][0]
    assert [len(messages) for _, messages in actual] == [6, 6, 5, 6]
    assert actual[3][1][0].parts[0].text == "two"
    assert actual[1][0].find_end(actual[3][1]) == 4


def test_calls_without_ids_are_kept_where_each_is_answered_in_the_next_turn():
    cache = PrefixCache(min_bytes=64)
    sent = {"role": "user", "parts": [{"text": "y" * 80}]}
    rounds = [
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}, {"functionCall": {"name": "g"}}]},
        {"role": "user", "parts": [answer("g"), answer("f")]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
    ]
    bodies = [json.dumps({"contents": [sent, *rounds]}).encode() for _ in range(2)]
    _, prefix = [prefix_to_chat(history_of(body, "gemini", cache)) for body in bodies]
    assert (prefix.length, prefix.runs, prefix.unnamed) == (3, 1, 2)


def test_calls_without_ids_are_not_kept_where_one_is_not_answered():
    cache = PrefixCache(min_bytes=64)
    sent = {"role": "user", "parts": [{"text": "y" * 80}]}
    called = {"role": "model", "parts": [{"functionCall": {"name": "f"}}, {"functionCall": {"name": "g"}}]}
    contents = [sent, called, {"role": "user", "parts": [answer("f")]}, called, sent]
    bodies = [json.dumps({"contents": contents}).encode() for _ in range(2)]
    assert [prefix_to_chat(history_of(body, "gemini", cache)) for body in bodies] == [NO_PREFIX, NO_PREFIX]


def answer(name: str) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": "x"}}}


def prefix_to_chat(history: RequestHistory) -> Prefix:
    traits = traits_for("chat", "gpt-4.1")
    return history.translate_prefix(history.request.messages, dialect_named("chat"), traits, {}, None)
