"""Schemas of older drafts, and malformed schemas, are converted to draft 2020-12 with their meaning kept."""

import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.interpreter.schema.drafts import to_draft_2020
from dragoman.interpreter.schema.metaschema import META
from dragoman.interpreter.schema.plain import adapt_gemini, adapt_root

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
JUNK = st.sampled_from([None, True, False, 0, -1, 1.5, "", "a", "true", "3", "any", "string", "FILE", [], {}, ["a", 1]])
KEYWORDS = [
    *("$schema", "$id", "id", "$ref", "$anchor", "$recursiveRef", "$recursiveAnchor", "$comment", "$vocabulary"),
    *("$defs", "definitions", "type", "enum", "const", "default", "examples", "title", "description", "format"),
    *("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "dependencies"),
    *("dependentRequired", "dependentSchemas", "items", "prefixItems", "additionalItems", "contains", "uniqueItems"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *("pattern", "minItems", "maxProperties", "anyOf", "oneOf", "allOf", "not", "if", "then", "readOnly"),
]
DOCUMENTS = st.recursive(
    JUNK,
    lambda inner: (
        st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4)
        | st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    ),
    max_leaves=12,
)


def upgrade_schema(schema):
    """What becomes of a schema, without notes."""
    modern = to_draft_2020(schema)
    assert modern.notes == ()
    return modern.document


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"items": [{"type": "string"}]}, {"prefixItems": [{"type": "string"}]}),
        (
            {"items": [{"type": "string"}], "additionalItems": False},
            {"prefixItems": [{"type": "string"}], "items": False},
        ),
        ({"items": [], "additionalItems": {"type": "integer"}}, {"items": {"type": "integer"}}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 9, "exclusiveMaximum": True, "minimum": 0}, {"exclusiveMaximum": 9, "minimum": 0}),
        ({"minimum": 1, "exclusiveMinimum": False}, {"minimum": 1}),
        ({"dependencies": {"a": ["b"]}}, {"dependentRequired": {"a": ["b"]}}),
        ({"dependencies": {"a": "b"}}, {"dependentRequired": {"a": ["b"]}}),
        (
            {"dependencies": {"a": {"items": [{}]}, "c": ["d"]}},
            {"dependentRequired": {"c": ["d"]}, "dependentSchemas": {"a": {"prefixItems": [{}]}}},
        ),
        (
            {"type": "object", "properties": {"a": {"required": True}, "b": {"required": False}, "c": {}}},
            {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "required": ["a"]},
        ),
        (
            {"properties": {"a": {"required": True}, "b": {}}, "required": ["b"]},
            {"properties": {"a": {}, "b": {}}, "required": ["b", "a"]},
        ),
        ({"properties": {"a": {}}, "required": "a"}, {"properties": {"a": {}}, "required": ["a"]}),
        ({"$id": "#there"}, {"$anchor": "there"}),
        ({"$id": "at.json#there"}, {"$id": "at.json", "$anchor": "there"}),
        ({"$schema": DRAFT_4, "id": "urn:x"}, {"$schema": META, "$id": "urn:x"}),
        ({"$recursiveAnchor": True, "items": {"$recursiveRef": "#"}}, {"items": {"$ref": "#"}}),
        ({"type": "any"}, {}),
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": "int"}, {"type": "integer"}),
        ({"type": ["string", "string"]}, {"type": "string"}),
        ({"type": ["STRING", "null"]}, {"type": ["string", "null"]}),
        ({"properties": None, "description": None, "enum": None, "type": None}, {}),
        ({"anyOf": [], "oneOf": []}, {}),
        ({"minLength": "1", "uniqueItems": "true"}, {"minLength": 1, "uniqueItems": True}),
        ({"examples": "x", "title": 5}, {"examples": ["x"], "title": "5"}),
        ({"properties": {"a": None}}, {"properties": {"a": {}}}),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_an_older_spelling_becomes_the_newer_one_and_nothing_is_noted(older, newer):
    assert upgrade_schema(older) == newer
    assert jsonschema_rs.meta.is_valid(newer)


@pytest.mark.parametrize(
    ("schema", "kept", "where", "kind"),
    [
        ({"type": "file"}, {"description": "(type: file)"}, "/type", "approximated"),
        ({"type": ["string", "file"]}, {"description": '(type: ["string","file"])'}, "/type", "approximated"),
        ({"type": []}, {"description": "(type: [])"}, "/type", "approximated"),
        (
            {"minLength": -1, "description": "d"},
            {"description": "d (must have at least -1 characters)"},
            "/minLength",
            "approximated",
        ),
        ({"multipleOf": 0}, {"description": "(must be a multiple of 0)"}, "/multipleOf", "approximated"),
        ({"enum": "a"}, {"description": "(must be one of a)"}, "/enum", "approximated"),
        ({"pattern": 5}, {"description": "(must match the pattern 5)"}, "/pattern", "approximated"),
        ({"$ref": 5}, {}, "/$ref", "dropped"),
        ({"readOnly": "x"}, {}, "/readOnly", "dropped"),
        ({"properties": ["a"]}, {}, "/properties", "dropped"),
        ({"properties": {"a": "string"}}, {"properties": {"a": {}}}, "/properties/a", "dropped"),
        ({"items": "string"}, {"items": {}}, "/items", "dropped"),
        ({"exclusiveMinimum": True}, {}, "/exclusiveMinimum", "dropped"),
        ({"required": True}, {}, "/required", "dropped"),
        ({"required": ["a", 5]}, {"required": ["a"]}, "/required/1", "dropped"),
        ({"$id": "#no anchor"}, {}, "/$id", "dropped"),
        ({"items": [{}], "prefixItems": [{}]}, {"prefixItems": [{}]}, "/items", "dropped"),
        (
            {"dependencies": {"a": ["b"]}, "dependentRequired": {}},
            {"dependentRequired": {}, "description": '(with "a" these are required: "b")'},
            "/dependencies",
            "approximated",
        ),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_keywords_of_no_draft_become_descriptions_or_are_dropped_with_a_note(schema, kept, where, kind):
    modern = to_draft_2020(schema)
    assert modern.document == kept
    assert [(note.where, note.kind) for note in modern.notes] == [(where, kind)]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "array", "prefixItems": [{}], "items": False}}},
        {
            "$schema": DRAFT_7,
            "definitions": {"a": {"type": "string"}},
            "properties": {"a": {"$ref": "#/definitions/a"}},
        },
        {"properties": {"items": {"enum": [1]}, "required": {"const": None}, "type": {"default": None}}},
        {"properties": {"id": {"type": "string"}}, "id": "urn:x"},
        {"x-any": None, "nullable": True, "enum": [], "pattern": "(", "minLength": 1.0},
    ],
)
def test_a_valid_schema_is_the_same_object(schema):
    assert upgrade_schema(schema) is schema


def test_a_changed_schema_names_its_new_draft():
    assert upgrade_schema({"$schema": DRAFT_7, "items": [{}]}) == {"$schema": META, "prefixItems": [{}]}
    assert upgrade_schema({"$schema": "urn:own", "items": [{}]}) == {"$schema": "urn:own", "prefixItems": [{}]}


def test_references_follow_what_they_point_at():
    schema = {"items": [{"type": "integer"}, {"$ref": "#/items/0"}], "additionalItems": {"$ref": "#/additionalItems"}}
    assert upgrade_schema(schema) == {
        "prefixItems": [{"type": "integer"}, {"$ref": "#/prefixItems/0"}],
        "items": {"$ref": "#/items"},
    }


@pytest.mark.parametrize("convert", [adapt_root, adapt_gemini])
def test_notes_have_pointers_into_the_callers_schema(convert):
    inner = {"type": "object", "properties": {"b": {"$ref": "https://a.example/b"}}}
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": [inner]}}}
    notes = convert(json.dumps(schema).encode()).notes
    assert "/properties/a/items/0/properties/b/$ref" in {note.where for note in notes}


def test_required_names_keep_their_places_when_some_are_gone():
    schema = {"type": "object", "properties": {"a": {}}, "required": ["a", "a", 5, "b"]}
    notes = adapt_root(json.dumps(schema).encode()).notes
    assert {note.where for note in notes} == {"/required/2", "/required/3"}


@given(DOCUMENTS)
def test_any_value_in_place_of_a_schema_becomes_a_valid_one(document):
    modern = to_draft_2020(document)
    if isinstance(document, dict):
        valid = jsonschema_rs.meta.is_valid({name: one for name, one in modern.document.items() if name != "$schema"})
        assert valid, modern.document
        assert to_draft_2020(modern.document).document is modern.document
    adapted = json.loads(adapt_root(json.dumps(document).encode(), property_keys=True).schema or b"")
    assert jsonschema_rs.meta.is_valid({name: one for name, one in adapted.items() if name != "$schema"}), adapted


SMALL = st.recursive(
    st.sampled_from([1, 2, 5, "a", None, True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=5,
)
OLDER = [
    {"items": [{"type": "string"}, {"type": "integer"}], "additionalItems": {"type": "null"}},
    {"items": [{"type": "string"}], "additionalItems": False},
    {"minimum": 2, "exclusiveMinimum": True, "maximum": 5, "exclusiveMaximum": True},
    {"dependencies": {"a": ["b"], "b": {"properties": {"a": {"type": "integer"}}}}},
    {"definitions": {"x": {"items": [{"type": "integer"}]}}, "items": {"$ref": "#/definitions/x"}},
]


@pytest.mark.parametrize("schema", OLDER)
@given(value=SMALL)
def test_the_newer_spelling_takes_what_the_older_one_took(schema, value):
    before = jsonschema_rs.Draft4Validator(schema).is_valid(value)
    assert jsonschema_rs.Draft202012Validator(upgrade_schema(schema)).is_valid(value) is before
