"""Each row of the down-conversion table."""

import json

import pytest

from dragoman.interpreter.schema.arguments import restore_arguments
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.schema.openapi import to_openapi


def convert(schema, *, vertex=False):
    """Convert one property's schema; return what became of it and the notes about it."""
    document = {"type": "object", "properties": {"p": schema}}
    converted = to_openapi(json.dumps(document).encode(), vertex=vertex)
    assert converted.schema is not None
    return json.loads(converted.schema)["properties"]["p"], converted


def become(schema, *, vertex=False):
    return convert(schema, vertex=vertex)[0]


def came_back(schema, value, *, vertex=False):
    """What the caller gets when the model says `value` for the converted property."""
    undo = convert(schema, vertex=vertex)[1].undo
    text = json.dumps({"p": value})
    return json.loads(restore_arguments(text, undo) if undo else text)["p"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, {"type": "STRING"}),
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}),
        (
            {"type": ["string", "integer", "null"], "minLength": 2, "minimum": 3, "description": "d"},
            {
                "anyOf": [{"type": "STRING", "minLength": 2}, {"type": "INTEGER", "minimum": 3}],
                "description": "d",
                "nullable": True,
            },
        ),
        ({"type": "null"}, {"type": "NULL"}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "STRING", "nullable": True}),
        ({"anyOf": [{"type": "string"}], "description": "d"}, {"type": "STRING", "description": "d"}),
        (
            {"anyOf": [{"type": "string"}, {"type": "boolean"}], "description": "d"},
            {"anyOf": [{"type": "STRING"}, {"type": "BOOLEAN"}], "description": "d"},
        ),
        ({"oneOf": [{"type": "string"}, {"type": "boolean"}]}, {"anyOf": [{"type": "STRING"}, {"type": "BOOLEAN"}]}),
        ({"const": "x"}, {"type": "STRING", "enum": ["x"]}),
        ({"const": 5}, {"type": "STRING", "enum": ["5"]}),
        ({"const": True}, {"type": "BOOLEAN", "description": "(must be true)"}),
        ({"const": None}, {"type": "NULL"}),
        ({"enum": ["a", "b", "a"]}, {"type": "STRING", "enum": ["a", "b"]}),
        ({"enum": ["a", ""]}, {"type": "STRING", "enum": ["a"]}),
        ({"enum": ["a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "STRING", "enum": ["1", "2"]}),
        ({"enum": ["a", 1, True]}, {"type": "STRING", "enum": ["a", "1", "true"]}),
        ({"enum": ["1", 1]}, {"type": "STRING", "enum": ['"1"', "1"]}),
        ({"enum": [True, False]}, {"type": "BOOLEAN"}),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "INTEGER", "minimum": 1}),
        ({"type": "integer", "exclusiveMaximum": 9.5}, {"type": "INTEGER", "maximum": 9}),
        ({"type": "integer", "exclusiveMinimum": 0, "minimum": 7}, {"type": "INTEGER", "minimum": 7}),
        (
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "NUMBER", "minimum": 0, "description": "(must be greater than 0)"},
        ),
        ({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, {"type": "INTEGER", "minimum": 4}),
        ({"type": "integer", "multipleOf": 5}, {"type": "INTEGER", "description": "(must be a multiple of 5)"}),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            {"type": "ARRAY", "items": {"type": "STRING"}, "description": "(items must be unique)"},
        ),
        ({"type": "array"}, {"type": "ARRAY", "items": {"type": "STRING"}}),
        (
            {"type": "array", "items": {"type": "integer"}, "minItems": 1.0},
            {"type": "ARRAY", "items": {"type": "INTEGER"}, "minItems": 1},
        ),
        ({"type": "array", "items": False}, {"type": "ARRAY", "items": {"type": "STRING"}, "maxItems": 0}),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
            {
                "type": "ARRAY",
                "items": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]},
                "minItems": 2,
                "maxItems": 2,
                "description": "(items in order: string, integer)",
            },
        ),
        (
            {"type": "array", "items": [{"type": "string"}, {"type": "string"}]},
            {
                "type": "ARRAY",
                "items": {"type": "STRING"},
                "minItems": 2,
                "maxItems": 2,
                "description": "(items in order: string, string)",
            },
        ),
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
        (
            {"type": "string", "format": "uri", "description": "A link"},
            {"type": "STRING", "description": "A link (format: uri)"},
        ),
        ({"type": "integer", "format": "int32"}, {"type": "INTEGER", "format": "int32"}),
        ({"type": "integer", "default": 3}, {"type": "INTEGER", "description": "(Default: 3)"}),
        ({"type": "string", "examples": ["x", "y"]}, {"type": "STRING", "example": "x"}),
        ({"type": "string", "example": "x"}, {"type": "STRING", "example": "x"}),
        ({"type": "string", "title": 5, "description": "d"}, {"type": "STRING", "title": "5", "description": "d"}),
        ({"pattern": "^a"}, {"type": "STRING", "pattern": "^a"}),
        ({"minimum": 1, "maximum": 2}, {"type": "NUMBER", "minimum": 1, "maximum": 2}),
        ({"items": {"type": "string"}}, {"type": "ARRAY", "items": {"type": "STRING"}}),
        ({"type": "string", "x-order": 1, "$comment": "c", "readOnly": True, "deprecated": True}, {"type": "STRING"}),
        ({"type": "STRING"}, {"type": "STRING"}),
        ({"type": "string", "nullable": True}, {"type": "STRING", "nullable": True}),
        (
            {"type": "object", "minProperties": 1, "properties": {"a": {"type": "string"}}},
            {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "propertyOrdering": ["a"], "minProperties": 1},
        ),
        ({"type": "object"}, {"type": "OBJECT"}),
        (
            {"type": "object", "properties": {"a": False, "b": True}, "required": ["a", "b", "b"]},
            {
                "type": "OBJECT",
                "properties": {"b": {"type": "STRING", "description": "(any JSON value, written as JSON text)"}},
                "propertyOrdering": ["b"],
                "required": ["b"],
            },
        ),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_a_row_of_the_table(schema, expected):
    assert become(schema) == expected


def test_all_of_is_merged_to_the_tightest():
    merged = become(
        {
            "allOf": [
                {
                    "type": "object",
                    "properties": {"n": {"type": "integer", "minimum": 1}},
                    "required": ["n"],
                    "description": "one",
                },
                {
                    "properties": {"n": {"minimum": 5, "maximum": 9}, "m": {"type": "string"}},
                    "required": ["m"],
                    "description": "two",
                },
            ]
        }
    )
    assert merged["properties"]["n"] == {"type": "INTEGER", "minimum": 5, "maximum": 9}
    assert merged["required"] == ["n", "m"]
    assert merged["description"] == "one\ntwo"


def test_a_conflict_in_all_of_is_won_by_the_first_and_noted():
    merged, converted = convert({"allOf": [{"type": "string"}, {"type": "integer"}]})
    assert merged == {"type": "STRING"}
    assert Note("/properties/p", "conflicting values of type; the first is kept", "approximated") in converted.notes


def test_enums_of_all_of_are_intersected():
    assert become({"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}) == {"type": "STRING", "enum": ["b"]}


@pytest.mark.parametrize("keyword", ["not", "if", "dependentRequired", "dependentSchemas"])
def test_constraints_without_a_keyword_are_in_the_description_and_noted(keyword):
    value = {
        "not": {"required": ["b"]},
        "if": {"required": ["b"]},
        "dependentRequired": {"a": ["b"]},
        "dependentSchemas": {"a": {"required": ["b"]}},
    }[keyword]
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, keyword: value, "then": {"minProperties": 2}}
    content, converted = convert(schema)
    assert '"b"' in content["description"]
    assert keyword not in content
    assert f"/properties/p/{keyword}" in [note.where for note in converted.notes]


def test_a_local_reference_is_inlined_and_its_siblings_win():
    schema = b'{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"mine"}},"$defs":{"A":{"type":"string","description":"theirs"}}}'
    converted = to_openapi(schema)
    assert (
        converted.schema
        == b'{"type":"OBJECT","properties":{"a":{"type":"STRING","description":"mine"}},"propertyOrdering":["a"]}'
    )
    assert converted.notes == ()


def test_a_reference_by_anchor_escaped_pointer_or_id_is_found():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#anchor"}, "b": {"$ref": "#/$defs/x~1y%25"}, "c": {"$ref": "urn:c"}},
        "$defs": {
            "A": {"$anchor": "anchor", "type": "string"},
            "x/y%": {"type": "integer"},
            "C": {"$id": "urn:c", "type": "boolean"},
        },
    }
    converted = json.loads(to_openapi(json.dumps(schema).encode()).schema or b"")
    assert [converted["properties"][name]["type"] for name in "abc"] == ["STRING", "INTEGER", "BOOLEAN"]


def test_a_reference_out_of_the_document_becomes_any_value_and_is_noted():
    content, converted = convert({"$ref": "https://example.com/x.json"})
    assert content["type"] == "STRING"
    assert ("/properties/p/$ref", "approximated") in [(note.where, note.kind) for note in converted.notes]


def test_any_of_on_vertex_has_no_siblings():
    schema = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}], "description": "d"}
    assert become(schema, vertex=True) == {
        "anyOf": [
            {"type": "STRING", "description": "d", "nullable": True},
            {"type": "INTEGER", "description": "d", "nullable": True},
        ]
    }


def test_maps_stay_maps_on_vertex():
    assert become({"type": "object", "additionalProperties": {"type": "integer"}}, vertex=True) == {
        "type": "OBJECT",
        "additionalProperties": {"type": "INTEGER"},
    }
    assert (
        become({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}, vertex=True)[
            "additionalProperties"
        ]
        is False
    )
    assert came_back({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 5.0}, vertex=True) == {
        "a": 5
    }


def test_a_map_on_ai_studio_travels_as_json_text_and_comes_back_as_an_object():
    schema = {"type": "object", "additionalProperties": {"type": "integer"}, "description": "Scores"}
    content = become(schema)
    assert content["type"] == "STRING"
    assert content["description"].startswith("Scores (")
    assert came_back(schema, '{"a": 1}') == {"a": 1}
    assert came_back(schema, {"a": 1}) == {"a": 1}


def test_a_root_map_is_wrapped_and_unwrapped():
    converted = to_openapi(b'{"type":"object","additionalProperties":{"type":"string"}}')
    assert json.loads(converted.schema or b"")["required"] == ["value"]
    assert converted.undo is not None
    assert restore_arguments('{"value":"{\\"a\\": \\"b\\"}"}', converted.undo) == '{"a": "b"}'


@pytest.mark.parametrize(
    ("schema", "sent", "meant"),
    [
        ({"enum": [0, 1, 2]}, "1", 1),
        ({"enum": [0, 1, 2]}, 1.0, 1),
        ({"enum": [0, 1, 2]}, 1, 1),
        ({"enum": ["a", 1, True, None, [1], {"b": 2}]}, "true", True),
        ({"enum": ["a", 1, True, None, [1], {"b": 2}]}, "[1]", [1]),
        ({"enum": ["a", 1, True, None, [1], {"b": 2}]}, '{"b":2}', {"b": 2}),
        ({"enum": ["a", 1, True, None, [1], {"b": 2}]}, "a", "a"),
        ({"enum": ["1", 1]}, "1", 1),
        ({"enum": ["1", 1]}, '"1"', "1"),
        ({"const": 2.5}, "2.5", 2.5),
        ({}, '{"any": ["thing"]}', {"any": ["thing"]}),
        ({}, "plain words", "plain words"),
        ({"type": "integer"}, 5.0, 5),
        ({"type": "number"}, 5.0, 5.0),
        ({"type": "array", "items": {"enum": [1, 2]}}, ["1", "2"], [1, 2]),
        ({"prefixItems": [{"enum": [1]}, {"type": "string"}]}, ["1", "1"], [1, "1"]),
        ({"anyOf": [{"enum": [1, 2]}, {"type": "boolean"}]}, "1", 1),
        ({"anyOf": [{"enum": ["x"]}, {"enum": [1]}]}, "x", "x"),
        ({"type": ["object", "integer"], "properties": {"k": {"enum": [1]}}}, {"k": "1"}, {"k": 1}),
    ],
)
def test_arguments_of_the_model_are_restored_to_the_callers_schema(schema, sent, meant):
    back = came_back(schema, sent)
    assert (back, type(back)) == (meant, type(meant))


def test_the_tag_of_a_variant_decides_how_its_members_come_back():
    schema = {
        "oneOf": [
            {"properties": {"kind": {"const": "number"}, "v": {"enum": [1, 2]}}, "required": ["kind", "v"]},
            {"properties": {"kind": {"const": "text"}, "v": {"type": "string"}}, "required": ["kind", "v"]},
        ]
    }
    assert came_back(schema, {"kind": "number", "v": "1"}) == {"kind": "number", "v": 1}
    assert came_back(schema, {"kind": "text", "v": "1"}) == {"kind": "text", "v": "1"}


def test_properties_called_like_keywords_survive():
    names = ["type", "$comment", "properties", "enum", "$ref", "items", "required", "anyOf", "const", "nullable"]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}
    converted = json.loads(to_openapi(json.dumps(schema).encode()).schema or b"")
    assert list(converted["properties"]) == names
    assert converted["required"] == names


@pytest.mark.parametrize(
    "schema",
    [
        b"{}",
        b"null",
        b"true",
        b'{"type":"object"}',
        b'{"type":"object","properties":{}}',
        b'{"type":"object","properties":{},"additionalProperties":false,"required":[]}',
    ],
)
def test_a_tool_without_parameters_has_no_schema(schema):
    assert to_openapi(schema).schema is None


def test_required_alternatives_are_described_in_text():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    content = become(schema)
    assert "anyOf" not in content
    assert content["description"] == '(at least one of these must be given: "a", or "b")'


def test_base_members_go_into_each_variant():
    schema = {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}],
    }
    variants = become(schema)["anyOf"]
    assert [sorted(variant["properties"]) for variant in variants] == [["a", "id"], ["b", "id"]]
    assert all(variant["required"] == ["id"] for variant in variants)


def test_notes_point_into_the_callers_schema():
    from dragoman.wire.pointer import split

    schema = {
        "type": "object",
        "properties": {
            "a": {
                "allOf": [
                    {"properties": {"x": {"multipleOf": 2, "type": "integer"}}},
                    {"properties": {"x": {"maximum": 9}}},
                ]
            }
        },
    }
    for note in to_openapi(json.dumps(schema).encode()).notes:
        value = schema
        for token in split(note.where):
            value = value[int(token)] if isinstance(value, list) else value[token]
