"""Only new parts of a growing conversation are searched, and every duplicate key is still found."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway import duplicate_keys as distinct
from dragoman.gateway.duplicate_keys import DuplicateKeyChecker
from dragoman.interpreter.prefix_cache import PrefixCache
from dragoman.interpreter.tools_cache import ToolsCache
from dragoman.interpreter.translate import Caches


@pytest.fixture
def checked_bodies(monkeypatch):
    """The number of searched bytes for each body."""
    sizes: list[int] = []
    whole = distinct.decode_and_search

    def decode(body: bytes) -> tuple[Any, str | None]:
        sizes.append(len(body))
        return whole(body)

    monkeypatch.setattr(distinct, "decode_and_search", decode)
    return sizes


def keys(most: int = 64 << 20) -> DuplicateKeyChecker:
    return DuplicateKeyChecker(Caches(ToolsCache(), PrefixCache(max_bytes=most)))


def require(watch: DuplicateKeyChecker, body: bytes) -> None:
    watch.require_distinct(body, dialect_named("chat"))


def turns(count: int) -> list[dict[str, Any]]:
    return [
        {"role": "user" if at % 2 == 0 else "assistant", "content": f"{at} " + "words " * 200} for at in range(count)
    ]


def body_of(messages: list[dict[str, Any]], **more: Any) -> bytes:
    return json.dumps({"model": "m", "messages": messages, **more}).encode()


def test_only_the_new_part_of_a_long_conversation_is_checked(checked_bodies):
    watch = keys()
    for count in (60, 60, 62, 64, 64):
        require(watch, body_of(turns(count)))
    first, *later = checked_bodies
    assert first > 60_000
    assert max(later) < 10_000


def test_a_duplicate_after_the_checked_prefix_has_its_pointer_in_the_whole_body(checked_bodies):
    watch = keys()
    for _ in range(2):
        require(watch, body_of(turns(60)))
    wrong = body_of(turns(62)).replace(b'"content": "61 ', b'"role":"user","content": "61 ')
    with pytest.raises(Problem) as result:
        require(watch, wrong)
    assert checked_bodies[-1] < 10_000
    assert (result.value.where, result.value.code) == ("/messages/61/role", "duplicate_key")
    assert result.value.message == 'duplicate key "role" in the object at /messages/61'


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
def test_a_change_anywhere_is_checked(changed, where):
    watch = keys()
    body = body_of(turns(60))
    for _ in range(2):
        require(watch, body)
    with pytest.raises(Problem) as result:
        require(watch, changed(body))
    assert result.value.where == where


def test_a_rejected_body_is_not_cached():
    watch = keys()
    wrong = body_of(turns(60)).replace(b'"content": "3 ', b'"role":"user","content": "3 ')
    for _ in range(2):
        with pytest.raises(Problem):
            require(watch, wrong)


def test_the_cache_of_checked_bodies_is_bounded(checked_bodies):
    watch = keys(most=1 << 20)
    bodies = [body_of([{"role": "user", "content": f"number {at}"}, *turns(60)]) for at in range(40)]
    for body in [*(body for body in bodies for _ in range(2)), *bodies[-2:], bodies[0]]:
        require(watch, body)
    assert [size < 10_000 for size in checked_bodies[-3:]] == [True, True, False]


def compact(**members: Any) -> bytes:
    return json.dumps({"model": "m", **members}, separators=(",", ":")).encode()


TOOLS = [{"type": "function", "function": {"name": f"f{at}", "description": "words " * 50}} for at in range(40)]


def test_repeated_tools_are_checked_once(checked_bodies):
    watch = keys()
    for count in (1, 3, 5):
        require(watch, compact(messages=turns(count), tools=TOOLS))
    first, *later = checked_bodies
    assert first > 10_000
    assert max(later) < 10_000


@pytest.mark.parametrize("name", [b"f0", b"f39"])
def test_changed_tools_are_checked_again(name):
    watch = keys()
    body = compact(messages=turns(1), tools=TOOLS)
    require(watch, body)
    for _ in range(2):
        with pytest.raises(Problem, match='duplicate key "name"') as result:
            require(watch, body.replace(b'"name":"%b"' % name, b'"name":"g","name":"%b"' % name))
        assert result.value.where.endswith("/function/name")


def test_fields_next_to_cached_tools_are_checked(checked_bodies):
    watch = keys()
    body = compact(messages=turns(1), tools=TOOLS, user="u")
    require(watch, body)
    with pytest.raises(Problem, match='duplicate key "role"'):
        require(watch, body.replace(b'"role":"user"', b'"role":"user","role":"user"'))
    with pytest.raises(Problem, match='duplicate key "user" in the object at the root'):
        require(watch, body.replace(b'"user":"u"', b'"user":"u","user":"v"'))


def short(*texts: str, **members: Any) -> bytes:
    return compact(messages=[{"role": "user", "content": text} for text in texts], **members)


def test_a_duplicate_key_in_a_new_message_is_found_with_its_pointer_and_not_cached():
    watch = keys()
    for _ in range(3):
        require(watch, short("a", user="u"))
    wrong = short("a", "b", user="u").replace(b'"content":"b"', b'"content":"b","content":"c"')
    for _ in range(2):
        with pytest.raises(Problem) as result:
            require(watch, wrong)
        assert (result.value.where, result.value.code) == ("/messages/1/content", "duplicate_key")


def test_settings_that_were_refused_are_refused_again_however_often_they_come():
    watch = keys()
    wrong = short("a", user="u").replace(b'"user":"u"', b'"user":{"a":1,"a":2}')
    for _ in range(4):
        with pytest.raises(Problem) as result:
            require(watch, wrong)
        assert result.value.where == "/user/a"


def broken(data: st.DataObject, text: str) -> str:
    """A body that may contain duplicate keys."""
    marks = [f'"{name}":' for name in ("model", "role", "content", "user", "x") if f'"{name}":' in text]
    for mark in data.draw(st.lists(st.sampled_from(marks), max_size=1)):
        text = text.replace(mark, f"{mark}1,{mark}", 1)
    return text


@given(data=st.data())
def test_whatever_came_before_a_body_is_refused_as_if_it_were_the_first(data):
    watch = keys()
    settings = st.dictionaries(st.sampled_from(["user", "x"]), st.sampled_from([1, {"x": 1}, [{"x": 2}]]), max_size=2)
    some = [data.draw(settings) for _ in range(2)]
    for _ in range(8):
        texts = data.draw(st.lists(st.sampled_from(["a", "b", '],"x":[1]}']), max_size=3))
        body = broken(data, short(*texts, **data.draw(st.sampled_from(some))).decode()).encode()
        where = distinct.decode_and_search(body)[1]
        if where is None:
            require(watch, body)
            continue
        with pytest.raises(Problem) as result:
            require(watch, body)
        assert result.value.where == where


@pytest.mark.parametrize(
    ("dialect", "history", "tool"),
    [
        ("chat", "messages", {"type": "function", "name": "f"}),
        ("responses", "input", {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_tools_in_the_format_of_the_other_api_are_returned_whenever_they_come(dialect, history, tool):
    watch = keys()
    body = json.dumps({history: [], "tools": [tool], "x": "y" * 10_000}, separators=(",", ":")).encode()
    for _ in range(3):
        assert watch.require_distinct(body, dialect_named(dialect))["tools"] == [tool]
