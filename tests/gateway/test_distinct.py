"""Of a conversation that goes on only what is new is looked at, and a name that stands twice is found all the same."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.problems import Problem
from dragoman.gateway import distinct
from dragoman.gateway.distinct import Distinct


@pytest.fixture
def looked_at(monkeypatch):
    """How many bytes were looked at, one number a body."""
    sizes: list[int] = []
    whole = distinct.duplicate

    def duplicate(body: bytes) -> str | None:
        sizes.append(len(body))
        return whole(body)

    monkeypatch.setattr(distinct, "duplicate", duplicate)
    return sizes


def turns(count: int) -> list[dict[str, Any]]:
    return [
        {"role": "user" if at % 2 == 0 else "assistant", "content": f"{at} " + "words " * 200} for at in range(count)
    ]


def body_of(messages: list[dict[str, Any]], **more: Any) -> bytes:
    return json.dumps({"model": "m", "messages": messages, **more}).encode()


def test_only_what_is_new_of_a_long_conversation_is_looked_at(looked_at):
    watch = Distinct()
    for count in (60, 62, 64, 64):
        watch.require(body_of(turns(count)), "messages")
    whole, *later = looked_at
    assert whole > 60_000
    assert max(later) < 10_000


def test_what_comes_after_the_known_beginning_is_found_with_its_place_in_the_whole(looked_at):
    watch = Distinct()
    watch.require(body_of(turns(60)), "messages")
    wrong = body_of(turns(62)).replace(b'"content": "61 ', b'"role":"user","content": "61 ')
    with pytest.raises(Problem) as told:
        watch.require(wrong, "messages")
    assert looked_at[-1] < 10_000
    assert (told.value.where, told.value.code) == ("/messages/61/role", "duplicate_key")
    assert told.value.message == 'the key "role" stands twice in the object at /messages/61'


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        (lambda body: body[:-1] + b',"model":"n"}', "/model"),
        (lambda body: body[:-1] + b',"messages":[]}', "/messages"),
        (lambda body: body.replace(b'"content": "3 ', b'"role":"user","content": "3 '), "/messages/3/role"),
        (lambda body: body.replace(b'{"model"', b'{"tools":[{"a":1,"a":1}],"model"'), "/tools/0/a"),
    ],
    ids=["behind", "the history twice", "within what was known", "before"],
)
def test_a_change_anywhere_is_looked_at(changed, where):
    watch = Distinct()
    body = body_of(turns(60))
    watch.require(body, "messages")
    with pytest.raises(Problem) as told:
        watch.require(changed(body), "messages")
    assert told.value.where == where


def test_what_was_refused_is_not_remembered():
    watch = Distinct()
    wrong = body_of(turns(60)).replace(b'"content": "3 ', b'"role":"user","content": "3 ')
    for _ in range(2):
        with pytest.raises(Problem):
            watch.require(wrong, "messages")


def test_what_is_remembered_is_bounded(looked_at):
    watch = Distinct(most=1 << 20)
    bodies = [body_of([{"role": "user", "content": f"number {at}"}, *turns(60)]) for at in range(40)]
    for body in [*bodies, *bodies[-2:], bodies[0]]:
        watch.require(body, "messages")
    assert [size < 10_000 for size in looked_at[-3:]] == [True, True, False]


def compact(**members: Any) -> bytes:
    return json.dumps({"model": "m", **members}, separators=(",", ":")).encode()


TOOLS = [{"type": "function", "function": {"name": f"f{at}", "description": "words " * 50}} for at in range(40)]


def test_tools_that_come_again_are_looked_at_once(looked_at):
    watch = Distinct()
    for count in (1, 3, 5):
        watch.require(compact(messages=turns(count), tools=TOOLS), "messages")
    first, *later = looked_at
    assert first > 10_000
    assert max(later) < 10_000


@pytest.mark.parametrize("name", [b"f0", b"f39"])
def test_tools_that_have_changed_are_looked_at_again(name):
    watch = Distinct()
    body = compact(messages=turns(1), tools=TOOLS)
    watch.require(body, "messages")
    for _ in range(2):
        with pytest.raises(Problem, match='the key "name" stands twice') as told:
            watch.require(body.replace(b'"name":"%b"' % name, b'"name":"g","name":"%b"' % name), "messages")
        assert told.value.where.endswith("/function/name")


def test_what_is_said_beside_known_tools_is_looked_at(looked_at):
    watch = Distinct()
    body = compact(messages=turns(1), tools=TOOLS, user="u")
    watch.require(body, "messages")
    with pytest.raises(Problem, match='the key "role" stands twice'):
        watch.require(body.replace(b'"role":"user"', b'"role":"user","role":"user"'), "messages")
    with pytest.raises(Problem, match='the key "user" stands twice in the object at the root'):
        watch.require(body.replace(b'"user":"u"', b'"user":"u","user":"v"'), "messages")


def short(*texts: str, **members: Any) -> bytes:
    return compact(messages=[{"role": "user", "content": text} for text in texts], **members)


def test_of_a_short_conversation_among_known_settings_only_new_messages_are_looked_at(looked_at):
    watch = Distinct()
    for texts in (["a"], ["a", "b"], ["a", "b"], ["a", "b", "c" * 50, "d"]):
        watch.require(short(*texts, tools=TOOLS[:5]), "messages")
    *whole, last = looked_at
    assert len(whole) == 2, "the third has nothing new"
    assert min(whole) > 1_000
    assert last < 150


def test_a_new_message_in_which_a_name_stands_twice_is_found_with_its_place_and_not_remembered():
    watch = Distinct()
    for _ in range(3):
        watch.require(short("a", user="u"), "messages")
    wrong = short("a", "b", user="u").replace(b'"content":"b"', b'"content":"b","content":"c"')
    for _ in range(2):
        with pytest.raises(Problem) as told:
            watch.require(wrong, "messages")
        assert (told.value.where, told.value.code) == ("/messages/1/content", "duplicate_key")


def test_settings_that_were_refused_are_refused_again_however_often_they_come():
    watch = Distinct()
    wrong = short("a", user="u").replace(b'"user":"u"', b'"user":{"a":1,"a":2}')
    for _ in range(4):
        with pytest.raises(Problem) as told:
            watch.require(wrong, "messages")
        assert told.value.where == "/user/a"


def test_messages_of_short_conversations_are_remembered_up_to_a_bound(looked_at):
    watch = Distinct(most=40_000)
    bodies = [short(f"{number}" + "x" * 1_000) for number in range(20)]
    for body in [*bodies, bodies[-1]]:
        watch.require(body, "messages")
    assert len(looked_at) == 20
    watch.require(bodies[0], "messages")
    assert len(looked_at) == 21


def broken(data: st.DataObject, text: str) -> str:
    """A body in which some names may stand twice."""
    marks = [f'"{name}":' for name in ("model", "role", "content", "user", "x") if f'"{name}":' in text]
    for mark in data.draw(st.lists(st.sampled_from(marks), max_size=1)):
        text = text.replace(mark, f"{mark}1,{mark}", 1)
    return text


@given(data=st.data())
def test_whatever_came_before_a_body_is_refused_as_if_it_were_the_first(data):
    watch = Distinct()
    settings = st.dictionaries(st.sampled_from(["user", "x"]), st.sampled_from([1, {"x": 1}, [{"x": 2}]]), max_size=2)
    some = [data.draw(settings) for _ in range(2)]
    for _ in range(8):
        texts = data.draw(st.lists(st.sampled_from(["a", "b", '],"x":[1]}']), max_size=3))
        body = broken(data, short(*texts, **data.draw(st.sampled_from(some))).decode()).encode()
        where = distinct.duplicate(body)
        if where is None:
            assert watch.require(body, "messages").shorter == body
            continue
        with pytest.raises(Problem) as told:
            watch.require(body, "messages")
        assert told.value.where == where
