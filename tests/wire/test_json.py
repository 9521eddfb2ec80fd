"""Raw JSON: a replaced value is at its place, and no other byte changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from dragoman.wire import json as wire
from dragoman.wire import pointer
from dragoman.wire.json import (
    Malformed,
    as_list,
    as_object,
    decode,
    decode_array,
    decode_object,
    first_byte,
    get_text,
    is_json,
    is_object,
    one_line,
    with_members,
)
from dragoman.wire.splice import graft


@pytest.mark.parametrize(
    ("body", "members", "expected"),
    [
        (b"{}", {"a": b"1"}, b'{"a":1}'),
        (b" { } \n", {"a": b"1"}, b' {"a":1}'),
        (b'{"n": 1.50}', {"a": b"[ 1 ]", "b": b"null"}, b'{"n": 1.50,"a":[ 1 ],"b":null}'),
        (b'{"n":{}}', {'q"': b"1"}, b'{"n":{},"q\\"":1}'),
        (b' {"n": 1 } ', {}, b' {"n": 1 } '),
    ],
)
def test_members_are_appended_and_the_rest_keeps_its_bytes(body, members, expected):
    assert with_members(body, members) == expected


@pytest.mark.parametrize(
    ("body", "fields", "expected"),
    [
        ({"a": 1}, {"/b": 2}, {"a": 1, "b": 2}),
        ({"a": {"x": 1}}, {"/a/y": 2, "/a/z": 3}, {"a": {"x": 1, "y": 2, "z": 3}}),
        ({}, {"/a/b/c": 1}, {"a": {"b": {"c": 1}}}),
        ({"a": [{"x": 1}, {"x": 2}]}, {"/a/1/y": 3}, {"a": [{"x": 1}, {"x": 2, "y": 3}]}),
        ({}, {"/a~1b": 1, "/c~0d/e": 2}, {"a/b": 1, "c~d": {"e": 2}}),
        ({"a": {}}, {"/a/": 1}, {"a": {"": 1}}),
        ({}, {"/": 1}, {"": 1}),
        ({"a": [1]}, {"/a/1": 2, "/a/0": 0}, {"a": [0, 2, 1]}),
        ({"a": [{"b": 1}]}, {"/a/0": 0, "/a/1/c": 5}, {"a": [0, {"b": 1, "c": 5}]}),
        ({"a": [1]}, {"/a/7/x": 2, "/a/-": 3}, {"a": [1]}),
        ({"a": "text"}, {"/a/b": 1}, {"a": "text"}),
    ],
)
def test_grafted_values_are_at_their_pointers(body, fields, expected):
    raw = {where: json.dumps(value).encode() for where, value in fields.items()}
    assert json.loads(graft(json.dumps(body).encode(), raw)) == expected


def test_grafting_keeps_the_bytes_of_what_it_passes():
    body = b'{"a": {"n": 1.50 , "m":1e3}, "z":  [1,  2]}'
    grown = graft(body, {"/a/y": b"2.0"})
    assert b'"n": 1.50 , "m":1e3' in grown
    assert b"[1,  2]" in grown
    assert b'"y":2.0' in grown


def test_grafting_nothing_changes_nothing():
    assert graft(b' {"a": 1} ', {}) == b' {"a": 1} '


def cut(value, where, taken, chance):
    """Take members out of a document, as reading does."""
    if isinstance(value, list):
        return [cut(item, f"{where}/{index}", taken, chance) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, member in value.items():
        member_pointer = f"{where}/{pointer.escape(name)}"
        if chance.random() < 0.3:
            taken[member_pointer] = json.dumps(member).encode()
        else:
            kept[name] = cut(member, member_pointer, taken, chance)
    return kept


@given(strategies.json_objects, st.randoms(use_true_random=False))
def test_what_is_taken_out_anywhere_can_be_put_back(value, chance):
    taken = {}
    kept = cut(value, "", taken, chance)
    assert json.loads(graft(json.dumps(kept).encode(), taken)) == value


@pytest.mark.parametrize("token", ["", "a", "a/b", "~", "~1", "/~0/", "a~b/c"])
def test_a_token_survives_escaping(token):
    assert pointer.unescape(pointer.escape(token)) == token
    assert "/" not in pointer.escape(token)
    assert pointer.split("/x/" + pointer.escape(token)) == ["x", token]


@pytest.mark.parametrize(
    ("path", "expected"),
    [("$", ""), ("$.messages[0].content", "/messages/0/content"), ("$[2][3]", "/2/3"), ("$.map[...].x", "/map/.../x")],
)
def test_a_path_becomes_a_pointer(path, expected):
    assert pointer.from_path(path) == expected


@pytest.mark.parametrize("body", [b"", b"{", b"[1,]", b'"\xff"', b"nul", b"[" * 100_000, b"{} {}"])
def test_whatever_is_wrong_with_a_document_is_malformed(body):
    with pytest.raises(Malformed):
        decode(body)
    assert not is_json(body)
    assert not is_object(body)


@pytest.mark.parametrize("reader", [decode_object, decode_array])
def test_a_document_of_another_shape_is_malformed(reader):
    with pytest.raises(Malformed):
        reader(b"1")


def test_one_level_is_decoded_and_the_next_stays_raw():
    assert {name: bytes(raw) for name, raw in decode_object(b'{"a": {"n": 1.0}}').items()} == {"a": b'{"n": 1.0}'}
    assert [bytes(raw) for raw in decode_array(b"[ 1.0 , {}]")] == [b"1.0", b"{}"]


def test_the_first_byte_skips_white_space():
    assert [first_byte(body) for body in (b" \n{", b"[", b"", b'\t"')] == [b"{", b"[", b"", b'"']


@given(strategies.json_texts(strategies.json_values))
def test_one_line_takes_out_line_breaks_and_nothing_else(text):
    flat = one_line(text.encode())
    assert b"\n" not in flat
    assert json.loads(flat) == json.loads(text)


def test_one_line_keeps_number_tokens_and_flat_documents():
    assert one_line(b'{\n"n":\n1.50e+2}') == b'{"n":1.50e+2}'
    assert one_line(b'{"n" :  1.50}') == b'{"n" :  1.50}'


def test_is_object_distinguishes_objects_from_other_values():
    assert is_object(' {"a":1} ')
    assert not is_object("[]")
    assert is_json("[]")
    assert not is_json('{"a":')


@pytest.mark.parametrize("value", [None, [{"a": 1}], "text", 1, True])
def test_a_value_that_is_no_object_counts_as_an_empty_one(value):
    assert as_object(value) == {}


def test_an_object_is_returned_as_it_is():
    value = {"a": 1}
    assert as_object(value) is value


@pytest.mark.parametrize("value", [None, {"a": 1}, "text", 1, True])
def test_a_value_that_is_no_array_counts_as_an_empty_one(value):
    assert as_list(value) == []


def test_an_array_is_returned_as_it_is():
    value = [1]
    assert as_list(value) is value


@pytest.mark.parametrize(("members", "text"), [({"a": "b"}, "b"), ({"a": 1}, ""), ({"a": None}, ""), ({}, "")])
def test_only_a_string_is_the_text_of_a_member(members, text):
    assert get_text(members, "a") == text


@pytest.mark.parametrize("opening", ["[", '{"a":', '[1,{"b":"}]","c":'])
def test_nesting_is_counted_in_objects_and_arrays_but_not_in_strings(opening):
    per_round = opening.count("[") + opening.count("{")
    closing = "".join({"[": "]", "{": "}"}[mark] for mark in reversed(opening) if mark in "[{")

    def nest(levels):
        rounds, left = divmod(levels, per_round)
        return "[" * left + opening * rounds + '"[{[{\\"[{[{"' + closing * rounds + "]" * left

    for limit in (wire.MAX_NESTING, wire.MAX_REPLY_NESTING):
        text = nest(limit)
        assert not wire.is_nested_too_deeply(text, limit)
        assert wire.is_nested_too_deeply(nest(limit + 1), limit)
        assert wire.is_nested_too_deeply(nest(limit + 1).encode(), limit)
    assert wire.is_json(nest(wire.MAX_REPLY_NESTING))
    assert not wire.is_json(nest(wire.MAX_REPLY_NESTING + 1))


@pytest.mark.parametrize("more", [b"1", b"1e999", b'"' + b"x" * (1 << 20) + b'"', b"[" + b"[],{}," * 500 + b"1]"])
def test_a_body_is_accepted_to_the_nesting_limit_and_no_deeper(more):
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        deepest = wire.MAX_NESTING - 1
        wire.decode_distinct(b'{"a":%b,"b":%b}' % (more, opening * deepest + b"1.5" + closing * deepest))
        wire.decode_distinct(b'{"a":%b,"b":%b}' % (more, opening * (deepest - 1) + b"{}" + closing * (deepest - 1)))
        for levels in (deepest + 1, 500):
            with pytest.raises(wire.Malformed, match="at most 200 levels"):
                wire.decode_distinct(b'{"a":%b,"b":%b}' % (more, opening * levels + b"1.5" + closing * levels))
