"""Every duplicate key in an object is found, at any depth and in any spelling, and nothing else is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.duplicates import decode_and_search
from dragoman.wire.json import Malformed


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b'{"a":1,"a":2}', "/a"),
        (b'{"a":1,"\\u0061":2}', "/a"),
        (b'{ "a" : 1 ,\n "a" : 1 }', "/a"),
        (b'{"b":[{"c":0},{"c":0,"d":{},"c":0}]}', "/b/1/c"),
        (b'{"x":{"a":1,"a":1},"x":{}}', "/x/a"),
        (b'{"a/b":{"~":1,"~":1}}', "/a~1b/~0"),
        (b'{"":1,"":1}', "/"),
        (b'{"a\\\\":1,"a\\\\":1}', "/a\\"),
        ('{"ä":1,"\\u00e4":1}'.encode(), "/ä"),
        (b'{"\\ud800":1,"\\ud800":2}', "/?"),
        # As many bytes are gained by numbers, if they are written out, as are lost by the name.
        (b'{"a":1e5,"b":0,"b":0}', "/b"),
        (b'{"a":%s,"b":0,"b":0}' % (b"9" * 5000), "/b"),
        (b'[{"a":1},{"a":1,"a":1}]', "/1/a"),
    ],
)
def test_the_second_place_of_a_name_is_found(body, where):
    assert decode_and_search(body)[1] == where


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"A":2,"b":{"a":1},"c":[{"a":1},{"a":1}]}',
        rb'{"a":"{\"a\":1,\"a\":2}","b":"\"a\":1,\"a\":2"}',
        rb'{"a":"\\","\\":"\":","b\\":1}',
        b'{"a":1.50,"b":-0,"c":1e999,"d":"\\u00e4\\/"}',
        b'{"a":%s}' % (b"9" * 5000),
        b'{ "a" : [ 1 , 2 ] }',
        b"null",
        b'{"a":1,"a"',
        b'\xff{"a":1,"a":1}',
        b"",
    ],
)
def test_what_only_looks_like_one_is_none(body):
    assert decode_and_search(body)[1] is None


def test_a_document_beyond_the_depth_limit_is_reported_as_too_deep():
    with pytest.raises(Malformed, match="deep"):
        decode_and_search(b'{"a":' * 100_000)[1]


def write(value: Any, draw: Any) -> str:
    """Write JSON in one of the ways there are: blanks, escapes, and the same member twice."""
    match value:
        case dict():
            members = [(name, write(member, draw)) for name, member in value.items()]
            blank = draw(st.sampled_from(["", " ", "\n"]))
            return "{" + f",{blank}".join(f"{key(name, draw)}{blank}:{text}" for name, text in members) + "}"
        case list():
            return "[" + ",".join(write(item, draw) for item in value) + "]"
        case str():
            return key(value, draw)
        case _:
            return json.dumps(value)


def key(name: str, draw: Any) -> str:
    return json.dumps(name, ensure_ascii=draw(st.booleans()))


WORDS = st.text(st.sampled_from('ab"\\:{}/ä€😀'), max_size=3)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), WORDS),
    lambda below: st.one_of(st.lists(below, max_size=4), st.dictionaries(WORDS, below, max_size=4)),
    max_leaves=20,
)


@given(st.data())
def test_any_document_without_one_passes_and_with_one_does_not(data):
    value = {"x": data.draw(VALUES), "y": data.draw(VALUES)}
    body = write(value, data.draw)
    assert decode_and_search(body.encode())[1] is None
    more = json.dumps({**value, "z": 0}, ensure_ascii=data.draw(st.booleans()))
    twice = data.draw(st.sampled_from(["x", "y", "z"]))
    assert decode_and_search(f'{more[:-1]},"{twice}":{json.dumps(data.draw(VALUES))}}}'.encode())[1] == f"/{twice}"
    inner = f'{{"a":[{body},{{"b":{{"c":1,"d":{body},"c":2}}}}]}}'
    assert decode_and_search(inner.encode())[1] == "/a/1/b/c"
