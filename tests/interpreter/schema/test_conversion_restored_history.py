"""Arguments in a history are converted back to the form in which the model wrote them."""

import json

import pytest

from dragoman.interpreter.schema.arguments import Alternative, ArgumentUndo, restore_arguments
from dragoman.interpreter.schema.conversion import convert_history_arguments
from dragoman.interpreter.schema.openapi import to_openapi
from dragoman.interpreter.schema.roots import to_openai_strict

NUMBER = ArgumentUndo(values={"1": "1", "2.5": "2.5", "true": "true", '"1"': '"1"', '{"a":1}': '{"a":1}'})
ANY = ArgumentUndo(parse=True)
MAP = ArgumentUndo(parse=True, parsed_kind="object")
WRAPPED = ArgumentUndo(wrapped="value", wrapped_kinds=frozenset({"array"}))


@pytest.mark.parametrize(
    ("undo", "meant", "content"),
    [
        pytest.param(WRAPPED, "[1, 2]", '{"value":[1, 2]}', id="wrapped"),
        pytest.param(ArgumentUndo(wrapped="value"), ' "hi" ', '{"value":"hi"}', id="wrapped text"),
        pytest.param(ArgumentUndo(renamed={"_top": "$top"}), '{"$top":5}', '{"_top":5}', id="renamed"),
        pytest.param(ArgumentUndo(items=NUMBER), '[1,2.5,true,"1",{"a": 1}]', None, id="listed"),
        pytest.param(ANY, '{"x": [1]}', '"{\\"x\\": [1]}"', id="any value"),
        pytest.param(ANY, '"é"', '"\\"é\\""', id="any text"),
        pytest.param(ANY, "null", '"null"', id="null as any value"),
        pytest.param(MAP, '{"x":1}', '"{\\"x\\":1}"', id="map"),
        pytest.param(ArgumentUndo(prefix=(None, MAP), items=ANY), "[{},{},{}]", '[{},"{}","{}"]', id="positions"),
        pytest.param(ArgumentUndo(others=MAP), '{"a":{}}', '{"a":"{}"}', id="others"),
    ],
)
def test_what_was_changed_back_is_changed_again(undo, meant, content):
    content = content or '["1","2.5","true","\\"1\\"","{\\"a\\":1}"]'
    assert convert_history_arguments(meant, undo) == content
    assert json.loads(restore_arguments(content, undo)) == json.loads(meant)


def test_where_nothing_changes_the_very_same_text_is_returned():
    text = '{ "a" : 5.0 , "b":["x",  2], "c":{} }'
    undo = ArgumentUndo(properties={"a": ArgumentUndo(integer=True), "b": ArgumentUndo(items=NUMBER), "d": ANY})
    assert convert_history_arguments(text, undo) is text


def test_unchanged_parts_keep_their_bytes():
    text = '{"a":1,"b":{ "x" : 1.50,"y":"\\u00e9" },"c":12345678901234567890123}'
    content = convert_history_arguments(text, ArgumentUndo(properties={"a": NUMBER}))
    assert content == '{"a":"1","b":{ "x" : 1.50,"y":"\\u00e9" },"c":12345678901234567890123}'


@pytest.mark.parametrize("text", ["", "{", "[1, 2", "hello", "[1] trailing", "\ud800", "[" * 5000])
def test_what_is_not_json_is_returned_unchanged(text):
    assert convert_history_arguments(text, ArgumentUndo(wrapped="value")) is text


@pytest.mark.parametrize("text", ['{"other":1}', "null", '"[1]"', "{}"])
def test_a_value_of_another_kind_is_not_wrapped(text):
    assert convert_history_arguments(text, WRAPPED) is text


@pytest.mark.parametrize("text", ['["2","other",3]', '["x"]', "[false]", "[1.5]"])
def test_a_value_that_is_not_listed_stays(text):
    assert convert_history_arguments(text, ArgumentUndo(items=NUMBER)) is text


def test_true_is_not_taken_for_one():
    assert convert_history_arguments("[true,1]", ArgumentUndo(items=ArgumentUndo(values={"1": "1"}))) == '[true,"1"]'
    assert convert_history_arguments('[{"a":true}]', ArgumentUndo(items=NUMBER)) == '[{"a":true}]'


def test_a_map_that_is_none_stays():
    assert convert_history_arguments('{"m":"x"}', ArgumentUndo(properties={"m": MAP})) == '{"m":"x"}'


def test_a_name_that_is_there_already_is_not_taken_by_another():
    text = '{"$top":1,"_top":2}'
    assert convert_history_arguments(text, ArgumentUndo(renamed={"_top": "$top"})) is text


def test_members_that_are_absent_are_null_in_the_order_of_the_schema():
    undo = ArgumentUndo(optional=frozenset({"d", "b"}), order=("a", "b", "c", "d"))
    assert convert_history_arguments('{"c":3,"x":0,"a":1}', undo) == '{"a":1,"b":null,"c":3,"d":null,"x":0}'
    assert convert_history_arguments("{}", ArgumentUndo(optional=frozenset({"z", "y"}))) == '{"y":null,"z":null}'
    whole = '{"d":1,"c":2,"b":3,"a":4}'
    assert convert_history_arguments(whole, undo) is whole


def test_the_alternative_that_restores_to_the_value_is_used():
    numbers = Alternative(kinds=frozenset({"string"}), texts=frozenset({"1"}), undo=ArgumentUndo(values={"1": "1"}))
    text = Alternative(kinds=frozenset({"string"}))
    listed = Alternative(kinds=frozenset({"array"}), undo=ArgumentUndo(items=NUMBER))
    undo = ArgumentUndo(items=ArgumentUndo(choices=(numbers, text, listed)))
    assert convert_history_arguments('[1,"x",[1],true]', undo) == '["1","x",["1"],true]'
    assert convert_history_arguments('["1"]', undo) == '["1"]'


def test_an_alternative_of_objects_is_known_by_its_members():
    def one(name, optional):
        return Alternative(
            kinds=frozenset({"object"}),
            required=frozenset({name, optional}),
            undo=ArgumentUndo(optional=frozenset({optional}), order=(name, optional)),
        )

    undo = ArgumentUndo(choices=(one("a", "x"), one("b", "y")))
    assert convert_history_arguments('{"b":1}', undo) == '{"b":1,"y":null}'
    assert convert_history_arguments('{"a":1}', undo) == '{"a":1,"x":null}'
    assert convert_history_arguments('{"c":1}', undo) == '{"c":1}'


def test_an_alternative_of_optional_members_only_is_known_by_what_it_has():
    schema = {
        "type": "object",
        "properties": {"p": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}},
        "required": ["p"],
        "$defs": {
            "A": {"type": "object", "properties": {"a": {"type": "string"}, "c": {"type": "string"}}},
            "B": {"type": "object", "properties": {"b": {"type": "string"}, "c": {"type": "string"}}},
        },
    }
    undo = to_openai_strict(json.dumps(schema).encode()).undo
    for content, meant in (
        ('{"p":{"b":null,"c":"x"}}', '{"p":{"c":"x"}}'),
        ('{"p":{"b":"x","c":null}}', '{"p":{"b":"x"}}'),
        ('{"p":{"a":"x","c":null}}', '{"p":{"a":"x"}}'),
    ):
        assert restore_arguments(content, undo) == meant
    assert convert_history_arguments('{"p":{"b":"x"}}', undo) == '{"p":{"b":"x","c":null}}'


def test_a_recursive_undo_follows_the_arguments():
    node = ArgumentUndo(properties={"n": NUMBER, "next": ArgumentUndo(references=("N",))})
    undo = ArgumentUndo(references=("N", "M"), definitions={"N": node})
    assert convert_history_arguments('{"n":1,"next":{"n":2.5}}', undo) == '{"n":"1","next":{"n":"2.5"}}'


def test_arguments_beyond_measure_are_returned_unchanged():
    ring = {"A": ArgumentUndo(references=("A", "B")), "B": ArgumentUndo(references=("B", "A"))}
    text = '{"a":1}'
    assert convert_history_arguments(text, ArgumentUndo(references=("A",), definitions=ring)) is text
    many = "[" + ",".join(["1"] * 100_000) + "]"
    assert convert_history_arguments(many, ArgumentUndo(items=NUMBER)) is many


def test_nested_unions_are_converted_in_bounded_time():
    leaf = Alternative(kinds=frozenset({"string"}), texts=frozenset({"1"}), undo=ArgumentUndo(values={"1": "1"}))
    undo = ArgumentUndo(choices=(leaf,))
    for _ in range(40):
        alike = Alternative(kinds=frozenset({"array"}), undo=ArgumentUndo(items=undo))
        undo = ArgumentUndo(choices=(alike, alike, alike))
    text = "[" * 40 + "2" + "]" * 40
    assert convert_history_arguments(text, undo) is text


RECURSIVE = {
    "type": "object",
    "properties": {"t": {"$ref": "#/$defs/N"}},
    "$defs": {
        "N": {
            "type": "object",
            "properties": {"v": {"enum": [1, 2]}, "kids": {"type": "array", "items": {"$ref": "#/$defs/N"}}},
        }
    },
}


def test_values_behind_the_cut_of_a_recursion_are_changed_both_ways():
    undo = to_openapi(json.dumps(RECURSIVE).encode()).undo
    content = '{"v":"2"}'
    for _ in range(6):
        content = f'{{"v":"1","kids":[{content}]}}'
    content = f'{{"t":{content}}}'
    meant = restore_arguments(content, undo)
    assert meant == content.replace('"1"', "1").replace('"2"', "2")
    assert convert_history_arguments(meant, undo) == content


def test_a_recursion_in_which_nothing_changes_needs_no_undo():
    plain = json.loads(json.dumps(RECURSIVE).replace("[1, 2]", '["a", "b"]'))
    assert to_openapi(json.dumps(plain).encode()).undo is None


def test_a_recursion_with_changes_only_in_siblings_is_cut_as_usual():
    beside = {**RECURSIVE, "properties": {"n": {"type": "integer"}, **RECURSIVE["properties"]}}
    beside = json.loads(json.dumps(beside).replace("[1, 2]", '["a", "b"]'))
    undo = to_openapi(json.dumps(beside).encode()).undo
    assert restore_arguments('{"n":5.0,"t":{"kids":[{"kids":[{"v":"a"}]}]}}', undo) == (
        '{"n":5,"t":{"kids":[{"kids":[{"v":"a"}]}]}}'
    )


def test_strict_members_inside_unions_and_definitions_are_null_again():
    leaf = {"type": "object", "properties": {"k": {"const": "leaf"}, "n": {"type": "integer"}}, "required": ["k"]}
    tree = {
        "type": "object",
        "properties": {
            "k": {"const": "tree"},
            "l": {"$ref": "#/$defs/N"},
            "r": {"$ref": "#/$defs/N"},
        },
        "required": ["k", "l"],
    }
    schema = {
        "type": "object",
        "properties": {"t": {"$ref": "#/$defs/N"}},
        "$defs": {"N": {"anyOf": [{"$ref": "#/$defs/leaf"}, {"$ref": "#/$defs/tree"}]}, "leaf": leaf, "tree": tree},
        "required": ["t"],
    }
    undo = to_openai_strict(json.dumps(schema).encode()).undo
    content = '{"t":{"k":"tree","l":{"k":"leaf","n":null},"r":null}}'
    assert convert_history_arguments(restore_arguments(content, undo), undo) == content
