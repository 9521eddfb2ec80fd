"""Objects, maps, arrays and tuples on their way into Google's `Schema`."""

import json

import pytest

from dragoman.interpreter.schema.arguments import restore_arguments
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.schema.openapi import to_openapi

TEXT = {"type": "string"}
MAP = "(a JSON object, written as JSON text{})"


def convert(schema, *, vertex=False):
    outcome = to_openapi(json.dumps({"type": "object", "properties": {"p": schema}}).encode(), vertex=vertex)
    return json.loads(outcome.schema or b"")["properties"]["p"], outcome


def convert_with_notes(outcome):
    return [(note.where.removeprefix("/properties/p"), note.what) for note in outcome.notes]


def came_back(schema, sent, *, vertex=False):
    undo = convert(schema, vertex=vertex)[1].undo
    text = f'{{"p":{sent}}}'
    return (text if undo is None else restore_arguments(text, undo))[5:-1]


def test_the_given_property_order_comes_first_and_contains_only_existing_names():
    properties = {"a": TEXT, "b": TEXT, "c": TEXT}
    found, _ = convert({"properties": properties, "propertyOrdering": ["c", "ghost", "a", "c"]})
    assert found["propertyOrdering"] == ["c", "a", "b"]
    assert list(found["properties"]) == ["a", "b", "c"]


def test_required_names_what_is_declared_and_the_rest_is_noted():
    found, outcome = convert({"properties": {"a": TEXT, "no": False}, "required": ["ghost", "a", "no", 5, "a"]})
    assert found["required"] == ["a"]
    assert outcome.notes == (
        Note("/properties/p/properties/no", "a property that accepts no value", "dropped"),
        Note("/properties/p/required/0", '"ghost" is required but not declared', "dropped"),
        Note("/properties/p/required/2", '"no" is required but not declared', "dropped"),
        Note("/properties/p/required/3", '"5" is required but not declared', "dropped"),
    )
    assert "required" not in convert({"properties": {"a": TEXT}, "required": ["ghost"]})[0]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"additionalProperties": True}, MAP.format("")),
        ({"additionalProperties": {}}, MAP.format("")),
        ({"additionalProperties": TEXT}, MAP.format('; members match {"type":"string"}')),
        (
            {"patternProperties": {"^a": TEXT}},
            '(members named like ^a must match {"type":"string"}) ' + MAP.format(""),
        ),
        ({"additionalProperties": True, "description": "d", "title": "t"}, "d " + MAP.format("")),
    ],
)
def test_a_map_on_ai_studio_is_json_text(schema, words):
    found, outcome = convert({"type": "object", **schema})
    title = {"title": "t"} if "title" in schema else {}
    assert found == {"type": "STRING", "description": words, **title}
    assert ("/additionalProperties" if "additionalProperties" in schema else "", "a map is sent as JSON text and parsed back") in convert_with_notes(outcome)  # fmt: skip
    assert came_back({"type": "object", **schema}, '"{\\"a\\":[1]}"') == '{"a":[1]}'


def test_a_long_schema_of_properties_is_cut_in_the_description():
    found, _ = convert({"additionalProperties": {"type": "string", "description": "x" * 400}})
    content = found["description"].partition("members match ")[2]
    assert len(content) == 301
    assert content.startswith('{"type":"string","description":"xx')


@pytest.mark.parametrize("members", [False, TEXT, {}, None])
def test_additional_properties_next_to_declared_ones_have_no_counterpart_on_ai_studio(members):
    found, outcome = convert({"properties": {"a": TEXT}, "additionalProperties": members})
    assert found == {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "propertyOrdering": ["a"]}
    assert outcome.notes == (
        Note("/properties/p/additionalProperties", "Gemini's Schema has no additionalProperties", "dropped"),
    )
    assert convert({"properties": {"a": TEXT}, "additionalProperties": True})[1].notes == ()
    assert convert({"type": "object", "additionalProperties": False})[0] == {"type": "OBJECT"}


@pytest.mark.parametrize(
    ("members", "becomes"),
    [(True, True), (False, False), ({}, True), ({"type": "integer"}, {"type": "INTEGER"})],
)
def test_other_members_stay_on_vertex(members, becomes):
    found, outcome = convert({"properties": {"a": TEXT}, "additionalProperties": members}, vertex=True)
    assert found["additionalProperties"] == becomes
    assert type(found["additionalProperties"]) is type(becomes)
    assert outcome.notes == ()
    assert "additionalProperties" not in convert({"properties": {"a": TEXT}}, vertex=True)[0]


def test_members_of_a_map_on_vertex_come_back_typed():
    schema = {"properties": {"a": {"enum": [1]}}, "additionalProperties": {"type": "integer"}}
    assert came_back(schema, '{"a":"1","b":5.0}', vertex=True) == '{"a":1,"b":5}'


def test_an_array_without_items_is_noted_and_one_without_any_item_is_not():
    found, outcome = convert({"type": "array", "maxItems": 3})
    assert found == {"type": "ARRAY", "items": {"type": "STRING"}, "maxItems": 3}
    assert outcome.notes == (
        Note("/properties/p", "an array without items: its items are declared as strings", "approximated"),
    )
    found, outcome = convert({"type": "array", "items": False, "maxItems": 3})
    assert found == {"type": "ARRAY", "items": {"type": "STRING"}, "maxItems": 0}
    assert outcome.notes == ()


def test_the_description_of_an_array_is_kept():
    schema = {"items": TEXT, "contains": {"const": 1}, "minContains": 1, "maxContains": 2, "title": "t"}
    found, outcome = convert(schema)
    assert found["description"] == (
        '(must contain an item that matches {"const":1}; at least 1 such items; at most 2 such items)'
    )
    assert found["title"] == "t"
    content = "is moved to the description"
    assert convert_with_notes(outcome) == [
        (f"/{word}", f"{word} {content}") for word in ("contains", "minContains", "maxContains")
    ]


@pytest.mark.parametrize(
    ("schema", "items", "bounds"),
    [
        ({"prefixItems": [TEXT, TEXT]}, {"type": "STRING"}, {"minItems": 2, "maxItems": 2}),
        ({"prefixItems": [TEXT], "items": False}, {"type": "STRING"}, {"minItems": 1, "maxItems": 1}),
        ({"prefixItems": [TEXT], "items": True}, {"type": "STRING"}, {}),
        ({"items": [TEXT], "additionalItems": False}, {"type": "STRING"}, {"minItems": 1, "maxItems": 1}),
        ({"items": [TEXT], "additionalItems": TEXT}, {"type": "STRING"}, {}),
        ({"prefixItems": [TEXT], "items": {"type": "boolean"}, "minItems": 4}, {"anyOf": [{"type": "STRING"}, {"type": "BOOLEAN"}]}, {"minItems": 4}),
        ({"prefixItems": [TEXT, TEXT, TEXT], "minItems": 1}, {"type": "STRING"}, {"minItems": 1, "maxItems": 3}),
        ({"prefixItems": [TEXT, TEXT, TEXT], "maxItems": 2}, {"type": "STRING"}, {"minItems": 2, "maxItems": 2}),
        ({"prefixItems": [TEXT], "maxItems": 9}, {"type": "STRING"}, {"minItems": 1, "maxItems": 1}),
    ],
)  # fmt: skip
def test_a_tuple_has_the_length_of_its_positions_unless_more_may_follow(schema, items, bounds):
    found, _ = convert(schema)
    assert found["items"] == items
    assert {name: found[name] for name in ("minItems", "maxItems") if name in found} == bounds


@pytest.mark.parametrize("keyword", ["prefixItems", "items"])
def test_positions_of_a_tuple_are_described_and_noted(keyword):
    positions = [
        {"type": "string", "title": "city"},
        {"type": "string", "description": "zip"},
        {"type": "boolean"},
        {"const": "x"},
        {"type": ["string", "null"]},
        {},
        True,
    ]
    found, outcome = convert({keyword: positions, "uniqueItems": True, "description": "d"})
    assert (
        found["description"] == "d (items in order: city, zip, boolean, must be x, any, any, any; items must be unique)"
    )
    assert (f"/{keyword}", "the item positions of a tuple are moved to the description") in convert_with_notes(outcome)


def test_items_of_a_tuple_come_back_by_position_and_after():
    schema = {"prefixItems": [TEXT, {"enum": [1]}], "items": {"type": "integer"}}
    assert came_back(schema, '["1","1",5.0]') == '["1",1,5]'
    assert came_back({"prefixItems": [TEXT], "items": {"enum": [1]}}, '["1","1"]') == '["1",1]'
    assert convert({"prefixItems": [TEXT], "items": TEXT})[1].undo is None


def test_what_is_noted_inside_a_tuple_or_map_has_its_place():
    assert convert_with_notes(convert({"prefixItems": [TEXT, {"type": "integer", "multipleOf": 2}]})[1])[1:] == [
        ("/prefixItems/1/multipleOf", "multipleOf is moved to the description")
    ]
    wheres = [where for where, _ in convert_with_notes(convert({"prefixItems": [TEXT], "items": {"type": "array"}})[1])]
    assert wheres == ["/prefixItems", "/items"]
    wheres = [
        where for where, _ in convert_with_notes(convert({"items": [TEXT], "additionalItems": {"type": "array"}})[1])
    ]
    assert wheres == ["/items", "/additionalItems"]
    wheres = [
        where for where, _ in convert_with_notes(convert({"additionalProperties": {"type": "array"}}, vertex=True)[1])
    ]
    assert wheres == ["/additionalProperties"]
    wheres = [where for where, _ in convert_with_notes(convert({"items": {"items": {"type": "array"}}})[1])]
    assert wheres == ["/items/items"]
