"""Unions, annotations and words on their way into Google's `Schema`, and the choices that lead back."""

import json

import pytest

from dragoman.interpreter.schema.arguments import Alternative, ArgumentUndo, restore_arguments
from dragoman.interpreter.schema.conversion import (
    ConvertedPiece,
    Note,
    build_alternative,
    build_alternatives,
    build_union_undo,
    collect_kinds,
)
from dragoman.interpreter.schema.openapi import to_openapi

TEXT = {"type": "string"}
ANY = "(any JSON value, written as JSON text)"
INTEGER = ArgumentUndo(integer=True)


def convert(schema, *, vertex=False):
    outcome = to_openapi(json.dumps({"type": "object", "properties": {"p": schema}}).encode(), vertex=vertex)
    return json.loads(outcome.schema or b"")["properties"]["p"], outcome


def convert_with_notes(outcome):
    return [(note.where.removeprefix("/properties/p"), note.what) for note in outcome.notes]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["null"]}, {"type": "NULL"}),
        ({"type": "null", "description": "d"}, {"type": "NULL", "description": "d"}),
        ({"nullable": True}, {"type": "STRING", "description": ANY}),
        ({"type": "thing"}, {"type": "STRING", "description": ANY}),
        ({"enum": []}, {"type": "STRING", "description": ANY}),
        ({"title": "t", "description": "d", "default": 5, "example": 1}, {"type": "STRING", "title": "t", "description": f"d (Default: 5) {ANY}", "example": 1}),
        ({"type": "boolean", "description": "d", "not": {"const": True}}, {"type": "BOOLEAN", "description": 'd (must not match {"const":true})'}),
        ({"type": ["string", "boolean"], "title": "t", "description": "d", "default": "x", "examples": ["y"]}, {"anyOf": [{"type": "STRING"}, {"type": "BOOLEAN"}], "title": "t", "description": 'd (Default: "x")', "example": "y"}),
        ({"type": ["string", "boolean"], "deprecated": True, "nullable": True}, {"anyOf": [{"type": "STRING"}, {"type": "BOOLEAN"}], "nullable": True}),
        ({"enum": ["a", "b"], "not": {"const": "a"}}, {"type": "STRING", "enum": ["a", "b"], "description": '(must not match {"const":"a"})'}),
        ({"enum": [True, False], "not": {"const": 1}}, {"type": "BOOLEAN", "description": '(must not match {"const":1})'}),
        ({"const": True, "not": {"const": 1}}, {"type": "BOOLEAN", "description": '(must be true; must not match {"const":1})'}),
        ({"const": None, "not": {"const": 1}}, {"type": "NULL", "description": '(must not match {"const":1})'}),
        ({"type": ["string", "str", "null"]}, {"type": "STRING", "nullable": True}),
        ({"anyOf": [TEXT, {"type": "boolean"}], "nullable": True}, {"anyOf": [{"type": "STRING"}, {"type": "BOOLEAN"}], "nullable": True}),
        ({"anyOf": [TEXT, TEXT, False], "title": "t"}, {"type": "STRING", "title": "t"}),
        ({"anyOf": [{"type": "null"}], "title": "t"}, {"type": "NULL", "title": "t"}),
        ({"anyOf": [False]}, {"type": "NULL"}),
        ({"anyOf": [{"type": "null"}, TEXT, {"type": "boolean"}]}, {"anyOf": [{"type": "STRING"}, {"type": "BOOLEAN"}], "nullable": True}),
        ({"anyOf": [], "type": "string", "title": "t"}, {"type": "STRING", "title": "t"}),
        ({"anyOf": [{"required": ["a"]}], "type": "string", "description": "d"}, {"type": "STRING", "description": 'd (at least one of these must be given: "a")'}),
        ({"anyOf": [{"not": {}}], "type": "string"}, {"type": "STRING"}),
        ({"anyOf": [{"minLength": 1}, {"maxLength": 2}], "type": "string"}, {"anyOf": [{"type": "STRING", "minLength": 1}, {"type": "STRING", "maxLength": 2}]}),
        ({"anyOf": [{"type": "string", "description": "in"}], "description": "out"}, {"type": "STRING", "description": "out\nin"}),
        ({"anyOf": [{"type": "string", "description": "same"}], "description": "same"}, {"type": "STRING", "description": "same"}),
        ({"anyOf": [{"type": "string", "description": "in", "title": "in"}], "title": "out"}, {"type": "STRING", "description": "in", "title": "in"}),
        ({"anyOf": "x", "type": "string"}, {"type": "STRING"}),
        ({"type": "string", "default": None, "examples": []}, {"type": "STRING"}),
        ({"type": "string", "example": None, "examples": ["x"]}, {"type": "STRING", "example": None}),
        ({"type": "string", "description": 5, "title": {"a": 1}}, {"type": "STRING", "description": "5", "title": '{"a":1}'}),
    ],
    ids=lambda value: json.dumps(value)[:60],
)  # fmt: skip
def test_types_unions_and_annotations_become_googles(schema, expected):
    assert convert(schema)[0] == expected


def test_one_of_is_weakened_and_required_only_alternatives_are_described():
    assert convert_with_notes(convert({"oneOf": [TEXT, {"type": "boolean"}]})[1]) == [
        ("/oneOf", "oneOf is weakened to anyOf")
    ]
    demands = [{"required": ["a"], "title": "t", "description": "d"}, {"not": {"required": ["b"]}}]
    assert convert_with_notes(convert({"anyOf": demands, "type": "object"})[1]) == [
        ("/anyOf", "moved to the description")
    ]


@pytest.mark.parametrize("schema", [5, None, "x", [1]])
def test_what_is_no_schema_is_any_value_with_a_note(schema):
    found, outcome = convert(schema)
    assert found == {"type": "STRING", "description": ANY}
    assert outcome.notes == (
        Note("/properties/p", "not a schema", "dropped"),
        Note("/properties/p", "a value of any type is sent as JSON text and parsed back", "approximated"),
    )
    assert len(convert(schema=True)[1].notes) == 1


@pytest.mark.parametrize(
    ("kind", "keyword", "value"),
    [
        ("object", "patternProperties", {"^a": TEXT}),
        ("object", "propertyNames", {"pattern": "^a"}),
        ("object", "dependentRequired", {"a": ["b"]}),
        ("object", "dependentSchemas", {"a": TEXT}),
        ("object", "dependencies", {"a": ["b"]}),
        ("array", "uniqueItems", True),
        ("array", "contains", TEXT),
        ("array", "minContains", 1),
        ("array", "maxContains", 2),
        ("string", "contentMediaType", "text/html"),
        ("string", "contentEncoding", "base64"),
        ("string", "contentSchema", TEXT),
        ("number", "multipleOf", 2),
        ("integer", "multipleOf", 2),
        ("string", "not", {"const": "x"}),
        ("boolean", "if", {"const": True}),
    ],
)
def test_a_constraint_without_a_keyword_is_described_where_it_applies_and_ignored_elsewhere(kind, keyword, value):
    rest = {"object": {"properties": {"a": TEXT}}, "array": {"items": TEXT}}.get(kind, {})
    found, outcome = convert({"type": kind, keyword: value, "then": {"minimum": 1}, **rest})
    assert found["description"].startswith("(")
    assert keyword not in found
    assert convert_with_notes(outcome) == [(f"/{keyword}", f"{keyword} is moved to the description")]
    if keyword not in ("not", "if", "multipleOf"):
        other = "boolean" if kind != "boolean" else "string"
        assert convert({"type": other, keyword: value}) == (convert({"type": other})[0], convert({"type": other})[1])


@pytest.mark.parametrize(
    "keyword", ["x-order", "readOnly", "deprecated", "unevaluatedProperties", "enumDescriptions", "a/b"]
)
def test_an_unknown_keyword_is_dropped_with_a_note(keyword):
    found, outcome = convert({"type": "string", keyword: 1})
    assert found == {"type": "STRING"}
    where = keyword.replace("/", "~1")
    assert outcome.notes == (Note(f"/properties/p/{where}", f"Gemini's Schema has no {keyword}", "dropped"),)


@pytest.mark.parametrize(
    "keyword",
    [
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "items", "prefixItems", "additionalItems"),
        *("minItems", "maxItems", "minLength", "maxLength", "pattern", "format", "required", "minProperties"),
        *("maxProperties", "propertyOrdering", "properties", "additionalProperties", "then", "else", "default"),
        *("example", "examples", "title", "description", "nullable", "$defs", "definitions", "$schema", "$id", "id"),
        *("$comment", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "anyOf", "oneOf", "allOf"),
    ],
)
def test_a_keyword_that_is_handled_or_means_nothing_here_is_not_noted(keyword):
    found, outcome = convert({"type": "boolean", keyword: None})
    assert found.pop("example", None) is None
    assert found == {"type": "BOOLEAN"}
    assert outcome.notes == ()


def test_a_format_of_a_boolean_means_nothing():
    assert convert({"type": "boolean", "format": "x"})[0] == {"type": "BOOLEAN"}


def test_constraints_on_values_of_any_type_are_noted():
    assert convert_with_notes(convert({"x-y": 1, "not": TEXT})[1]) == [
        ("", "a value of any type is sent as JSON text and parsed back"),
        ("/x-y", "Gemini's Schema has no x-y"),
        ("/not", "not is moved to the description"),
    ]


def test_a_reference_out_of_the_document_is_noted_inside_all_of():
    found, outcome = convert({"allOf": [{"$ref": "http://x/y"}, TEXT]})
    assert found == {"type": "STRING", "description": "(as described at http://x/y)"}
    assert [where for where, _ in convert_with_notes(outcome)] == ["/allOf/0/$ref"]


def test_a_root_is_never_null_and_a_map_stays_one_on_vertex():
    root = {"type": ["object", "null"], "properties": {"a": TEXT}}
    assert "nullable" not in json.loads(to_openapi(json.dumps(root).encode()).schema or b"")
    root = {"type": "object", "nullable": True, "properties": {"a": TEXT}}
    assert "nullable" not in json.loads(to_openapi(json.dumps(root).encode()).schema or b"")
    outcome = to_openapi(b'{"type":"object","additionalProperties":{"type":"integer"}}', vertex=True)
    assert outcome.schema == b'{"type":"OBJECT","additionalProperties":{"type":"INTEGER"}}'


def test_descriptions_are_in_every_alternative_on_vertex():
    schema = {"anyOf": [TEXT, {"type": "integer"}], "title": "t", "description": "d", "default": 5}
    found, outcome = convert(schema, vertex=True)
    words = {"title": "t", "description": "d (Default: 5)"}
    assert found == {"anyOf": [{"type": "STRING", **words}, {"type": "INTEGER", **words}]}
    assert outcome.undo is not None
    assert restore_arguments('{"p":5.0}', outcome.undo) == '{"p":5}'


def test_a_choice_describes_what_it_takes():
    schema = {
        "type": "OBJECT",
        "nullable": True,
        "properties": {"k": {"type": "STRING", "enum": ["x"]}, "n": {"enum": [1]}, "t": {"type": "STRING"}, "e": {"enum": []}},
        "required": ["k"],
    }  # fmt: skip
    assert build_alternative(schema, INTEGER) == Alternative(
        kinds=frozenset({"object", "null"}),
        required=frozenset({"k"}),
        tags={"k": frozenset({"x"})},
        undo=INTEGER,
    )
    assert build_alternative({"type": ["string", "integer"], "enum": ["a"]}, None) == Alternative(
        kinds=frozenset({"string", "number"}), texts=frozenset({"a"})
    )
    assert build_alternative({"type": "STRING", "enum": ["a", 1]}, None).texts is None


def test_a_union_takes_the_kinds_of_all_its_branches():
    kinds = set()
    collect_kinds(
        {"anyOf": [{"type": "STRING"}, {"anyOf": [{"type": "INTEGER"}]}, {"type": "ARRAY", "nullable": True}]}, kinds
    )
    assert kinds == {"string", "number", "array", "null"}


def test_a_union_inside_a_union_is_flattened():
    strings, numbers = {"type": "STRING"}, {"type": "INTEGER"}
    plain = Alternative(kinds=frozenset({"string"}))
    number = Alternative(kinds=frozenset({"number"}), undo=INTEGER)
    assert build_alternatives({"anyOf": [strings, {"anyOf": [strings]}]}, None) == (plain, plain)
    inner = ArgumentUndo(choices=(number, plain))
    assert build_alternatives({"anyOf": [numbers, strings]}, inner) == (number, plain)
    assert build_alternatives({"anyOf": [numbers, strings]}, INTEGER) == (
        Alternative(kinds=frozenset({"number", "string"}), undo=INTEGER),
    )
    assert build_union_undo([ConvertedPiece(strings), ConvertedPiece(strings)]) is None
    assert build_union_undo([ConvertedPiece(strings), ConvertedPiece(numbers, INTEGER)]) == ArgumentUndo(
        choices=(plain, number)
    )
