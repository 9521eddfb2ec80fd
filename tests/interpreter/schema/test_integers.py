"""Where a schema says integer."""

import pytest

from dragoman.interpreter.schema.arguments import ArgumentUndo, restore_arguments
from dragoman.interpreter.schema.gemini_json import find_integers, merge_undos

INTEGER = ArgumentUndo(integer=True)


def back(schema, sent):
    undo = find_integers(schema)
    return sent if undo is None else restore_arguments(sent, undo)


@pytest.mark.parametrize(
    ("schema", "sent", "meant"),
    [
        ({"type": "integer"}, "5.0", "5"),
        ({"type": ["integer", "null"]}, "5.0", "5"),
        ({"type": "INTEGER"}, "5.0", "5"),
        ({"properties": {"a": {"type": "integer"}}}, '{"a":5.0,"b":5.0}', '{"a":5,"b":5.0}'),
        ({"additionalProperties": {"type": "integer"}}, '{"a":5.0}', '{"a":5}'),
        (
            {"properties": {"a": {"type": "number"}}, "additionalProperties": {"type": "integer"}},
            '{"a":5.0,"b":5.0}',
            '{"a":5.0,"b":5}',
        ),
        ({"items": {"type": "integer"}}, "[5.0,6.0]", "[5,6]"),
        ({"items": [{"type": "number"}, {"type": "integer"}]}, "[5.0,6.0,7.0]", "[5.0,6,7.0]"),
        (
            {"prefixItems": [{"type": "integer"}, {"type": "number"}], "items": {"type": "integer"}},
            "[5.0,6.0,7.0]",
            "[5,6.0,7]",
        ),
        ({"prefixItems": [{"type": "number"}], "items": {"type": "integer"}}, "[5.0,6.0]", "[5.0,6]"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "5.0", "5"),
        ({"oneOf": [{"items": {"type": "integer"}}]}, "[5.0]", "[5]"),
        ({"allOf": [{"type": "number"}, {"type": "integer"}]}, "5.0", "5"),
        (
            {"anyOf": [{"items": [{"type": "integer"}]}, {"items": {"type": "integer"}}]},
            "[5.0,6.0]",
            "[5,6]",
        ),
        (
            {"anyOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "integer"}}}]},
            '{"a":5.0,"b":6.0}',
            '{"a":5,"b":6}',
        ),
        (
            {"anyOf": [{"properties": {"a": {"items": {"type": "integer"}}}}, {"properties": {"a": {"type": "integer"}}}]},
            '{"a":[5.0]}',
            '{"a":[5]}',
        ),
        (
            {"anyOf": [{"properties": {"a": {"items": {"type": "integer"}}}}, {"additionalProperties": {"type": "integer"}}]},
            '{"a":5.0}',
            '{"a":5}',
        ),
        (
            {
                "properties": {"a": {"$ref": "#/$defs/N"}, "b": {"$ref": "#/$defs/S"}},
                "$defs": {"N": {"type": "integer"}, "S": {"type": "string"}},
            },
            '{"a":5.0,"b":6.0}',
            '{"a":5,"b":6.0}',
        ),
        (
            {"$ref": "#/$defs/N", "$defs": {"N": {"properties": {"v": {"type": "integer"}, "n": {"$ref": "#/$defs/N"}}}}},
            '{"v":1.0,"n":{"v":2.0,"n":{"v":3.0}}}',
            '{"v":1,"n":{"v":2,"n":{"v":3}}}',
        ),
        (
            {"properties": {"a": {"type": "integer"}, "b": {"$ref": "#"}}},
            '{"a":1.0,"b":{"a":2.0,"b":{"a":3.0}}}',
            '{"a":1,"b":{"a":2,"b":{"a":3}}}',
        ),
    ],
)  # fmt: skip
def test_a_double_is_written_as_an_integer_where_the_schema_requires_it(schema, sent, meant):
    assert back(schema, sent) == meant


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "number"},
        {"properties": {"a": {"type": "string"}}, "items": True, "additionalProperties": False},
        {"prefixItems": [{"type": "number"}]},
        {"properties": {"a": {"$ref": "#/$defs/ghost"}}},
        {"properties": {"a": {"$ref": "#/$defs/S"}}, "$defs": {"S": {"type": "string"}}},
        {"not": {"type": "integer"}},
        {"enum": ["integer"]},
    ],
)
def test_a_schema_without_integers_needs_nothing_undone(schema):
    assert find_integers(schema) is None


def test_a_schema_is_searched_as_deep_as_schemas_are_read():
    def find(levels):
        schema = {"type": "integer"}
        for _ in range(levels):
            schema = {"items": schema}
        return find_integers(schema) is not None

    assert find(64)
    assert not find(65)


def test_a_tree_is_searched_once():
    tree = {name: {"$ref": "#/$defs/T"} for name in ("left", "right")}
    schema = {"$ref": "#/$defs/T", "$defs": {"T": {"properties": {**tree, "n": {"type": "integer"}}}}}
    assert back(schema, '{"right":{"left":{"n":5.0}}}') == '{"right":{"left":{"n":5}}}'


def test_one_undo_is_itself_and_none_is_none():
    assert merge_undos([]) is None
    assert merge_undos([INTEGER]) is INTEGER


def test_several_undos_of_one_value_become_one():
    first = ArgumentUndo(properties={"a": INTEGER}, prefix=(None, INTEGER), references=("x", "y"))
    second = ArgumentUndo(properties={"b": INTEGER}, others=INTEGER, items=INTEGER, references=("y",), integer=True)
    assert merge_undos([first, second], {"x": INTEGER}) == ArgumentUndo(
        properties={"a": ArgumentUndo(integer=True), "b": INTEGER},
        others=INTEGER,
        prefix=(INTEGER, ArgumentUndo(integer=True)),
        items=INTEGER,
        references=("x", "y"),
        integer=True,
        definitions={"x": INTEGER},
    )


def test_a_single_undo_with_definitions_is_given_them():
    undo = merge_undos([ArgumentUndo(references=("x",))], {"x": INTEGER})
    assert undo == ArgumentUndo(references=("x",), definitions={"x": INTEGER})
