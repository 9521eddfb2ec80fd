"""Typed reading that loses nothing: what a shape does not name is found again by pointer, at every depth."""

import json

import pytest
from msgspec import Raw

from dragoman.wire import unread as levels
from dragoman.wire.json import Malformed
from dragoman.wire.shape import ABSENT, Shape, Wire, get_raw_members
from dragoman.wire.splice import graft
from dragoman.wire.unread import RawMember, Unknown, Unread


class TextBlock(Wire, tag_field="type", tag="text"):
    text: str


class CallBlock(Wire, tag_field="type", tag="call"):
    name: str
    input: Raw = Raw(b"{}")


class Line(Wire):
    role: str
    content: str | list[TextBlock | CallBlock | Unknown] = ""


class Options(Wire, rename="camel"):
    top_p: float | None = None
    stop_words: list[str] | None = None


class Document(Wire, rename="camel"):
    lines: list[Line]
    options: Options | None = None
    labels: dict[str, Options] | None = None
    max_tokens: int | None = None


class Parcel(Wire, rename="camel"):
    weight: int | None = None
    from_name: RawMember = ABSENT
    to_name: RawMember = ABSENT


class Letter(Wire):
    stamp: RawMember = ABSENT


DOCUMENT = Shape(Document)
SNAKE = Shape(Document, snake=True)
LINE = {"role": "user", "content": [{"type": "text", "text": "hi"}]}


def encode(value) -> bytes:
    return json.dumps(value).encode()


def test_a_document_of_known_members_has_nothing_unread():
    document, unread = DOCUMENT.read(encode({"lines": [LINE], "options": {"topP": 0.5}}))
    assert unread is None
    assert document.lines[0].content == [TextBlock(text="hi")]
    assert document.options == Options(top_p=0.5)


def test_a_document_of_known_members_is_decoded_once(monkeypatch):
    monkeypatch.setattr(levels, "_decode", None)
    DOCUMENT.read(encode({"lines": [LINE]}))


DEEP = {
    "lines": [
        {"role": "user", "content": "x", "novel": 1},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "a", "deep": {"n": [1]}},
                {"type": "call", "name": "f", "input": {"free": {"form": 1}}, "a/b": 2},
            ],
        },
    ],
    "options": {"topP": 0.5, "novel~": None},
    "labels": {"one/two": {"topP": 1, "x": True}},
    "top": "level",
    "": "unnamed",
}
DEEP_UNREAD = {
    "/lines/0/novel": 1,
    "/lines/1/content/0/deep": {"n": [1]},
    "/lines/1/content/1/a~1b": 2,
    "/options/novel~0": None,
    "/labels/one~1two/x": True,
    "/top": "level",
    "/": "unnamed",
}


def test_unknown_members_are_found_at_every_depth():
    document, unread = DOCUMENT.read(encode(DEEP))
    assert {where: json.loads(raw) for where, raw in unread.rest().items()} == DEEP_UNREAD
    assert document.lines[1].content[1].name == "f"
    assert json.loads(bytes(document.lines[1].content[1].input)) == {"free": {"form": 1}}
    assert document.labels == {"one/two": Options(top_p=1)}


def test_what_is_read_and_what_is_unread_make_the_document_again():
    body = encode(DEEP)
    document, unread = DOCUMENT.read(body)
    again = graft(levels.json.encode(document), unread.rest())
    assert json.loads(again) == DEEP


def test_the_bytes_of_an_unread_member_are_kept():
    _, unread = DOCUMENT.read(b'{"lines":[],"n": {"x" : 1.50e+2} }')
    assert unread.rest() == {"/n": b'{"x" : 1.50e+2}'}


def test_a_block_with_an_unknown_tag_is_kept_whole_next_to_known_ones():
    novel = {"type": "hologram", "depth": [1, 2]}
    document, unread = DOCUMENT.read(encode({"lines": [{"role": "user", "content": [novel, LINE["content"][0]]}]}))
    unknown, known = document.lines[0].content
    assert json.loads(bytes(unknown.raw)) == novel
    assert known == TextBlock(text="hi")
    assert unread is None


@pytest.mark.parametrize("block", [{"text": "no tag"}, {"type": None, "text": "x"}])
def test_a_block_without_a_tag_is_unknown(block):
    document, _ = DOCUMENT.read(encode({"lines": [{"role": "user", "content": [block]}]}))
    assert json.loads(bytes(document.lines[0].content[0].raw)) == block


@pytest.mark.parametrize("tag", [7, [5], {"type": [5]}, True])
def test_a_tag_that_is_no_string_is_an_error_at_its_pointer(tag):
    with pytest.raises(Malformed, match="type must be a string") as caught:
        DOCUMENT.read(encode({"lines": [{"role": "user", "content": [{"type": tag}]}]}))
    assert caught.value.where == "/lines/0/content/0/type"


def test_snake_case_is_accepted_for_camel_case_where_the_shape_allows_it():
    document, unread = SNAKE.read(encode({"lines": [], "max_tokens": 5, "options": {"top_p": 1, "stop_words": ["x"]}}))
    assert document == Document(lines=[], max_tokens=5, options=Options(top_p=1, stop_words=["x"]))
    assert unread is None


def test_snake_case_is_unread_where_the_shape_does_not_allow_it():
    document, unread = DOCUMENT.read(encode({"lines": [], "max_tokens": 5}))
    assert document.max_tokens is None
    assert unread.rest() == {"/max_tokens": b"5"}


@pytest.mark.parametrize(
    "body", [{"lines": [], "max_tokens": 5, "maxTokens": 6}, {"lines": [], "maxTokens": 6, "max_tokens": 5}]
)
def test_a_name_given_in_both_spellings_loses_neither(body):
    document, unread = SNAKE.read(encode(body))
    assert document.max_tokens == 6
    assert unread.rest() == {"/max_tokens": b"5"}


@pytest.mark.parametrize(
    ("struct", "body", "found"),
    [
        (Parcel, b'{"weight":1}', None),
        (Parcel, b'{"toName": {"x" : 1},"weight":1}', {"/toName": b'{"x" : 1}'}),
        (Parcel, b'{"toName":null,"fromName":2}', {"/fromName": b"2", "/toName": b"null"}),
        (Letter, b"{}", None),
        (Letter, b'{"stamp":1}', {"/stamp": b"1"}),
        (Options, b'{"topP":1}', None),
    ],
)
def test_raw_members_are_found_by_pointer_with_their_bytes(struct, body, found):
    value, unread = Shape(struct).read(body)
    assert unread is None
    assert get_raw_members(value) == found


def test_a_raw_member_keeps_the_spelling_it_was_sent_in():
    parcel, unread = Shape(Parcel, snake=True).read(b'{"to_name":1,"fromName":2,"novel":3}')
    assert get_raw_members(parcel) == {"/fromName": b"2"}
    assert unread.rest() == {"/to_name": b"1", "/novel": b"3"}


def test_a_tuple_is_read_level_by_level():
    letters, unread = Shape(tuple[Letter, ...]).read(b'[{"stamp":1},{"novel":2}]')
    assert letters == (Letter(Raw(b"1")), Letter())
    assert unread.rest() == {"/1/novel": b"2"}


def test_an_unknown_tag_is_malformed_where_unknown_tags_are_not_allowed():
    with pytest.raises(Malformed) as caught:
        Shape(list[TextBlock | CallBlock]).read(b'[{"type":"novel"}]')
    assert (caught.value.message, caught.value.where) == ("Invalid value 'novel'", "/0/type")


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"lines": [{"role": 1}]}, "/lines/0/role"),
        ({"novel": 1, "lines": [{"role": 1}]}, "/lines/0/role"),
        ({"lines": [{"content": "x"}]}, "/lines/0"),
        ({"lines": "x", "novel": 1}, "/lines"),
        ({"novel": 1}, ""),
    ],
)
def test_a_wrong_type_is_malformed_at_its_pointer(body, where):
    with pytest.raises(Malformed) as caught:
        DOCUMENT.read(encode(body))
    assert caught.value.where == where


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"novel":1,"lines":[}',
        b'{"lines":[{"role":"\xff"}]}',
        b'{"novel":1,"lines":[{"role":"\xff"}]}',
        b'{"novel":' + b"[" * 100_000,
    ],
)
def test_what_is_not_json_is_malformed(body):
    with pytest.raises(Malformed):
        DOCUMENT.read(body)


@pytest.mark.parametrize("size", [10, 200])
def test_decoding_level_by_level_takes_linear_work(monkeypatch, size):
    """Each value is visited once: the number of visits is linear in the number of values."""
    visits = 0
    decode = levels._decode

    def count_reads(raw, plan, where, unread):
        nonlocal visits
        visits += 1
        return decode(raw, plan, where, unread)

    monkeypatch.setattr(levels, "_decode", count_reads)
    lines = [{"role": "user", "content": [{"type": "text", "text": "a", "novel": 1}], "novel": 2}] * size
    Shape(Document).read(encode({"lines": lines}))
    assert visits <= 2 + size * 6


def test_owners_take_what_lies_below_them_and_the_rest_is_the_documents():
    _, unread = DOCUMENT.read(encode(DEEP))
    assert unread.take("/lines/1/content/0") == {"/deep": b'{"n": [1]}'}
    assert unread.take("/lines/1/content/1") == {"/a~1b": b"2"}
    assert unread.take("/lines/1") is None
    assert unread.take("/lines/0") == {"/novel": b"1"}
    assert unread.take("/lines/0") is None
    assert unread.take("/nowhere/0") is None
    assert set(unread.rest()) == {"/options/novel~0", "/labels/one~1two/x", "/top", "/"}


def test_a_member_is_not_below_itself():
    unread = Unread()
    assert not unread
    unread.add("/a/b", b"1")
    assert unread
    assert unread.take("/a/b") is None
    assert unread.take("/a/b/c") is None
    assert unread.rest() == {"/a/b": b"1"}


def test_items_of_which_the_first_were_taken_out_are_counted_from_there():
    unread = Unread()
    unread.add("/a/0/x", b"1")
    unread.add("/a/2/y/z", b"2")
    unread.add("/b/0", b"3")
    unread.renumber("a", 5)
    unread.renumber("c", 5)
    assert unread.take("/a/5") == {"/x": b"1"}
    assert unread.rest() == {"/a/7/y/z": b"2", "/b/0": b"3"}
