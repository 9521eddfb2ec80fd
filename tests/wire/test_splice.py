"""Changing one member keeps every other byte."""

import json

import pytest
from hypothesis import given

import strategies
from dragoman.wire.json import Malformed
from dragoman.wire.pointer import escape
from dragoman.wire.splice import edit, remove_member, replace_member, set_member


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model":"a"}', b'{"model":"new"}'),
        (
            b' { "x" : 1.50 , "model" :  "a,}\\"" , "y":[ 1,2 ] } \n',
            b' { "x" : 1.50 , "model" :  "new" , "y":[ 1,2 ] } \n',
        ),
        (b'{"deep":{"model":"a"},"model":null}', b'{"deep":{"model":"a"},"model":"new"}'),
        (b'{"list":["model",{"model":1}],"model":{"a":[1]}}', b'{"list":["model",{"model":1}],"model":"new"}'),
        (b'{"mod\\u0065l":"a"}', b'{"mod\\u0065l":"new"}'),
        (b'{"model":"a","model":"b"}', b'{"model":"new","model":"new"}'),
        (b"{}", b'{"model":"new"}'),
        (b'{ "x": {} }\n', b'{ "x": {},"model":"new"}\n'),
    ],
)
def test_one_member_changes_and_every_other_byte_stays(body, expected):
    assert set_member(body, "model", b'"new"') == expected


def test_a_member_that_is_not_there_is_not_replaced():
    assert replace_member(b'{"x":{"model":"a"}}', "model", b'"new"') is None
    assert replace_member(b'{"model":"a"}', "model", b'"new"') == b'{"model":"new"}'


@given(strategies.json_texts(), strategies.words)
def test_the_result_is_the_document_with_that_member(text, name):
    value = json.loads(text)
    changed = json.loads(set_member(text.encode(), name, b'"new"'))
    assert changed == value | {name: "new"}


@given(strategies.json_texts())
def test_each_member_can_be_set_to_itself(text):
    for name, member in json.loads(text).items():
        assert json.loads(set_member(text.encode(), name, json.dumps(member).encode())) == json.loads(text)


@pytest.mark.parametrize("body", [b"[]", b"", b'{"model":', b'{"model":"a', b"{", b'"x"'])
def test_what_is_not_an_object_is_malformed(body):
    with pytest.raises(Malformed):
        set_member(body, "model", b"1")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model":"x","a":1}', b'{"a":1}'),
        (b'{"a":1, "model" : "x" }', b'{"a":1 }'),
        (b'{"model":"x"}', b"{}"),
        (b'{"a":1,"model":{"model":[2,"}"]},"b":[3]}', b'{"a":1,"b":[3]}'),
        (b'{"model":1,"a":{"model":2},"model":3}', b'{"a":{"model":2}}'),
        (b'{"a":1}', b'{"a":1}'),
    ],
)
def test_a_member_that_is_taken_out_leaves_every_other_byte(body, expected):
    assert remove_member(body, "model") == expected


@given(strategies.json_texts())
def test_the_rest_is_equal_without_the_removed_member(text):
    value = json.loads(text)
    for name in value:
        left = {key: item for key, item in value.items() if key != name}
        assert json.loads(remove_member(text.encode(), name)) == left


TEXT = b'{ "a" : 1 ,\n "b":{"x":1.50, "y":[1, 2 ,3]}, "c":"z" }'


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, TEXT),
        ({"/a": None}, TEXT.replace(b'"a" : 1 ,\n ', b"")),
        ({"/c": None}, TEXT.replace(b', "c":"z"', b"")),
        ({"/a": b"[2]", "/c": None}, TEXT.replace(b" 1 ", b" [2] ").replace(b', "c":"z"', b"")),
        ({"/b/x": b"2"}, TEXT.replace(b"1.50", b"2")),
        ({"/b/x": None}, TEXT.replace(b'"x":1.50, ', b"")),
        ({"/b/x": None, "/b/y": None}, TEXT.replace(b',\n "b":{"x":1.50, "y":[1, 2 ,3]}', b"").replace(b"1 ", b"1")),
        ({"/b/y/1": None}, TEXT.replace(b", 2 ,", b" ,")),
        ({"/b/y/0": None, "/b/y/2": b"9"}, TEXT.replace(b"[1, 2 ,3]", b"[2 ,9]")),
        ({"/b/n": b"1"}, TEXT.replace(b"]}", b'],"n":1}')),
        ({"/n/m": b"1", "/n/o": None}, TEXT.replace(b'"z" ', b'"z","n":{"m":1} ')),
        ({"/q": None, "/q/r": None}, TEXT),
        ({"/a": None, "/b": None, "/c": None, "/d": b"1"}, b'{ "d":1 }'),
    ],
)
def test_edits_set_and_remove_values_and_keep_every_other_byte(changes, expected):
    assert edit(TEXT, changes) == expected


def test_edits_create_the_object_that_null_leaves_out_and_change_a_duplicate_twice():
    assert edit(b'{"a":null}', {"/a/b": b"1"}) == b'{"a":{"b":1}}'
    assert edit(b'{"a":1,"b":2,"a":3}', {"/a": b"0"}) == b'{"a":0,"b":2,"a":0}'
    assert edit(b'{"a":1,"b":2,"a":3}', {"/a": None}) == b'{"b":2}'


@given(strategies.json_texts(), strategies.words)
def test_an_edit_of_each_member_gives_the_document_with_that_change(text, name):
    value = json.loads(text)
    pointer = f"/{escape(name)}"
    assert json.loads(edit(text.encode(), {pointer: b'"new"'})) == value | {name: "new"}
    assert json.loads(edit(text.encode(), {pointer: None})) == {key: kept for key, kept in value.items() if key != name}
