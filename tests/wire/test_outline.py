"""Bodies taken apart around an array: when their surroundings are remembered, told apart and forgotten."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.outline import Outlines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def body(items, **rest):
    return json.dumps({"model": "m", "a": items, **rest}).encode()


def test_what_stands_around_an_array_is_known_from_the_second_time_on():
    outlines = Outlines()
    assert outlines.of(body([1]), "a") is None
    second, third = outlines.of(body([2, 3]), "a"), outlines.of(body([]), "a")
    assert (second.items, third.items) == ((b"2", b"3"), ())
    assert second.around is third.around
    assert second.array(body([2, 3])) == b"[2, 3]"


@given(
    items=st.lists(st.lists(JSON, max_size=4), min_size=3, max_size=3),
    before=JSON,
    behind=JSON,
    spaced=st.booleans(),
    wide=st.booleans(),
)
def test_the_items_of_a_known_body_are_those_that_a_reader_of_all_of_it_finds(items, before, behind, spaced, wide):
    outlines = Outlines()
    for some in items:
        document = {"before": before, "a": some, "behind": behind}
        written = json.dumps(document, separators=None if spaced else (",", ":"), ensure_ascii=not wide)
        outline = outlines.of(written.encode("utf-8", "surrogatepass"), "a")
        if outline is not None:
            assert [json.loads(item) for item in outline.items] == some


def test_surroundings_that_end_alike_are_told_apart():
    outlines = Outlines()
    bare, longer = body([1]), body([1], tools=[2])
    for _ in range(2):
        outlines.of(bare, "a")
        outlines.of(longer, "a")
    assert outlines.of(bare, "a").around is not outlines.of(longer, "a").around
    assert outlines.of(longer, "a").items == (b"1",)


@pytest.mark.parametrize(
    "other",
    [
        b'{"model": "m", "a": [1], "a": [2]}',
        b'{"model": "m", "a": [1}',
        b'{"model": "m", "a": [1]]}',
        b'{"model": "m", "a": [1] [2]}',
        b'{"model": "m", "a": ]}',
        b'{"model": "m", "a": [1], "b": [2]}',
        b'{"model": "m", "b": {"a": [1]}}',
        b'{"model": "m", "a": "no list"}',
        b'{"model": "m"}',
        b"",
    ],
)
def test_what_is_not_the_same_around_one_whole_array_is_not_known(other):
    outlines = Outlines()
    for _ in range(3):
        outlines.of(body([1]), "a")
    assert outlines.of(other, "a") is None


def test_what_was_not_used_for_longest_is_forgotten():
    outlines = Outlines(most=1000)
    several = [body([1], pad=f"{number}" + "x" * 270) for number in range(4)]
    for one in several[:3]:
        outlines.of(one, "a")
        outlines.of(one, "a")
    assert outlines.of(several[0], "a") is not None
    assert outlines.of(several[3], "a") is None
    assert outlines.of(several[3], "a") is not None
    assert [outlines.of(one, "a") is not None for one in (several[0], several[3])] == [True, True]
    assert outlines.of(several[1], "a") is not None, "its mark is still there: it is learned at once"


def test_what_was_made_of_surroundings_is_forgotten_with_them():
    outlines = Outlines(most=1)
    outlines.of(body([1]), "a")
    outline = outlines.of(body([1]), "a")
    outline.around.keep("name", "made")
    again = outlines.of(body([1]), "a")
    assert again.around is not outline.around
    assert again.around.made == {}


def test_marks_of_what_came_once_are_bounded():
    outlines = Outlines(marks=2)
    for number in range(3):
        assert outlines.of(body([1], user=number), "a") is None
    assert outlines.of(body([1], user=0), "a") is None, "two others came since"
    assert outlines.of(body([1], user=0), "a") is not None


def test_where_each_body_is_another_only_some_are_looked_at(monkeypatch):
    outlines = Outlines()
    for number in range(200):
        outlines.of(body([1], user=number), "a")
    looked = []
    monkeypatch.setattr(outlines, "_is_new", lambda head, tail: looked.append(tail) or True)
    for number in range(70):
        outlines.of(body([1], user=1000 + number), "a")
    assert len(looked) == 10


def test_what_is_kept_again_makes_nothing_else_forgotten():
    outlines = Outlines()
    outlines.of(body([1]), "a")
    around = outlines.of(body([1]), "a").around
    for number in range(64):
        around.keep(number, None)
    around.keep(5, "again")
    assert len(around.made) == 64
    around.keep(64, None)
    assert around.made == {64: None}
