"""Arrays found by their bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire import array
from dragoman.wire.json import encode


@pytest.mark.parametrize(
    ("body", "start"),
    [
        (b'{"a":[1,2]}', 6),
        (b'{ "a" : [ 1 ] }', 9),
        (b'{"b":{"c":"}"},"a":[]}', 20),
        (b'{"b":"\\"a\\":[","a":[1]}', 20),
    ],
)
def test_the_items_of_a_top_level_array_begin_behind_its_bracket(body, start):
    assert array.find_top_array(body, "a") == start
    assert body[start - 1 : start] == b"["


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"a":1}',
        b'{"a":"[1]"}',
        b'{"b":{"a":[1]},"a":[2]}',
        b'{"b":[{"a":[1]}],"a":[2]}',
        b'[{"a":[1]}]',
        b'{"b":nonsense,"a":[1]}',
    ],
)
def test_an_array_that_is_not_the_first_of_its_name_at_the_top_is_not_found(body):
    assert array.find_top_array(body, "a") is None


def test_a_name_is_taken_as_it_is_written():
    assert array.find_top_array(b'{"a.b":[1]}', "a.b") == 8
    assert array.find_top_array(b'{"axb":[1]}', "a.b") is None


@pytest.mark.parametrize(
    ("body", "items", "tail"),
    [
        (b'{"a":[1, {"b":[2]} ,"]"],"c":3}', [b"1", b'{"b":[2]}', b'"]"'], b'],"c":3}'),
        (b'{"a":[1]}', [b"1"], b"]}"),
        (b'{"a":[] , "c":{"a":[4]}}', [], b'] , "c":{"a":[4]}}'),
    ],
)
def test_items_come_with_the_length_of_what_follows_the_last(body, items, tail):
    found, length = array.read_items(body, "a", 6)
    assert [bytes(item) for item in found] == items
    assert body[-length:] == tail


@pytest.mark.parametrize("body", [b'{"a":[1,2],"a":[3]}', b'{"a":[1],"b":0,"a":[1]}', b'{"a":[1],"a":{}}'])
def test_items_of_a_duplicate_key_are_not_returned(body):
    assert array.read_items(body, "a", 6) is None


@pytest.mark.parametrize(("body", "following"), [(b"[1,2]", 3), (b"[1 ,\n 2]", 6), (b"[1]", None), (b"[1 ]", None)])
def test_the_next_item_begins_behind_the_comma(body, following):
    assert array.find_next_item(body, 2) == following


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    before=st.lists(JSON, min_size=1, max_size=5),
    last=st.lists(JSON, max_size=5),
    gap=st.sampled_from([b",", b" , ", b",\n"]),
)
def test_where_an_item_ends_is_found_from_the_end_of_the_array(before, last, gap):
    head = b'{"a":[' + gap.join(map(encode, before))
    body = head + b"".join(gap + encode(item) for item in last) + b'],"b":[{}, 1]}'
    items, tail = array.read_items(body, "a", 6)
    end = array.find_end_before(body, len(body) - tail, items[len(before) :])
    assert body[:end] == head
