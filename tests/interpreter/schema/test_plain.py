"""What the typed read proves of a schema; what it must not prove is left to the general conversion."""

import json

import pytest

from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.conversion import ConvertedSchema
from dragoman.interpreter.schema.drafts import find_faults
from dragoman.interpreter.schema.from_openapi import convert_google
from dragoman.interpreter.schema.gemini_json import convert_gemini
from dragoman.interpreter.schema.plain import (
    UNPROVEN,
    PlainProof,
    adapt_gemini,
    adapt_root,
    prove_plain,
    to_json_schema,
)
from dragoman.interpreter.schema.roots import convert_root
from dragoman.interpreter.tools import find_schema_faults

SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Größe", "minLength": 1, "pattern": "^a"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1e3, "default": 5},
        "kinds": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 3},
        "since": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
        "options": {
            "type": "object",
            "properties": {"depth": {"type": ["integer", "null"]}, "deep": {"type": "boolean"}},
            "required": ["deep"],
            "additionalProperties": False,
        },
    },
    "required": ["query"],
    "additionalProperties": False,
    "$schema": "http://json-schema.org/draft-07/schema#",
}


def write(schema) -> bytes:
    return json.dumps(schema).encode()


def with_member(schema) -> bytes:
    return write({"type": "object", "properties": {"a": schema}})


def assert_same_as_general(schema: bytes):
    """Hold what the proof decides to what the general code finds."""
    proof = prove_plain(schema)
    for given in (None, proof):
        assert adapt_gemini(schema, given) == convert_gemini(schema)
        assert to_json_schema(schema, given) == convert_google(schema)
        for keys in (False, True):
            assert adapt_root(schema, property_keys=keys, proof=given) == convert_root(schema, property_keys=keys)
        for openapi in (False, True):
            assert find_schema_faults(schema, openapi=openapi, proof=given) == find_faults(schema, openapi=openapi)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_plain_schema_is_proven_and_its_integers_are_found(indent, ascii_only):
    schema = f" {json.dumps(SEARCH, indent=indent, ensure_ascii=ascii_only)}\n".encode()
    integer = ArgumentUndo(integer=True)
    undo = ArgumentUndo(
        properties={"limit": integer, "options": ArgumentUndo(properties={"depth": integer})}, only_integers=True
    )
    assert prove_plain(schema) == PlainProof(True, True, True, True, undo)  # noqa: FBT003 - all of them hold
    assert adapt_gemini(schema) == ConvertedSchema(schema, (), undo)
    assert adapt_gemini(schema).schema is schema
    assert adapt_root(schema, property_keys=True).schema is schema
    assert_same_as_general(schema)


def test_a_proof_that_is_given_is_not_made_again():
    schema = write(SEARCH)
    invalid = write({"type": "object", "required": 1})
    assert adapt_gemini(schema, UNPROVEN) == convert_gemini(schema)
    assert find_schema_faults(invalid, proof=prove_plain(schema)) == ()
    assert find_schema_faults(invalid, proof=UNPROVEN) == find_faults(invalid) != ()


@pytest.mark.parametrize(
    "schema",
    [
        b"",
        b"true",
        b"null",
        b"[]",
        b"{}",
        b'{"type":"object"',
        b'{"type":"object","title":"\xff"}',
        b'{"type":"object","properties":{"\xff":{}}}',
        b'{"type":"object","title":"\\ud800"}',
        b'{"type":"object","default":1e999}',
        b'{"type":"object","properties":{"a":{"minimum":1e999}}}',
        b'{"properties":{}}',
        *map(
            write,
            [
                {"type": "string"},
                {"type": ["object"]},
                {"type": "OBJECT"},
                {"type": "object", "properties": None},
                {"type": "object", "properties": {"a": True}},
                {"type": "object", "required": "a", "properties": {"a": {}}},
                {"type": "object", "required": [1]},
                {"type": "object", "anyOf": [{"required": ["a"]}]},
                {"type": "object", "enum": [{}]},
                {"type": "object", "const": {}},
                {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {}}},
                {"type": "object", "unknown": 1},
            ],
        ),
        *map(
            with_member,
            [
                {"$ref": "#"},
                {"$defs": {}},
                {"definitions": {}},
                {"$id": "a"},
                {"id": "a"},
                {"$schema": "a"},
                {"type": []},
                {"type": None},
                {"type": "any"},
                {"type": "Integer"},
                {"type": "string", "format": "enum"},
                {"type": "string", "nullable": True},
                {"type": "string", "required": True},
                {"title": None},
                {"description": 1},
                {"enum": None},
                {"anyOf": []},
                {"anyOf": [True]},
                {"items": True},
                {"items": [{}]},
                {"minimum": "1"},
                {"minimum": True},
                {"minimum": 10**400},
                {"exclusiveMinimum": True},
                {"multipleOf": 0},
                {"minLength": -1},
                {"minLength": 1.5},
                {"uniqueItems": "true"},
                {"dependencies": {}},
                {"prefixItems": [{}]},
                {"not": {}},
                {"propertyNames": {"enum": ["a"]}},
                {"propertyNames": True},
                {"default": [[1]]},
            ],
        ),
    ],
)
def test_what_is_not_plain_is_left_to_the_general_code(schema):
    assert prove_plain(schema) == UNPROVEN
    assert_same_as_general(schema)


@pytest.mark.parametrize("keyword", ["properties", "items", "additionalProperties", "anyOf"])
@pytest.mark.parametrize(("depth", "plain"), [(20, True), (40, False), (100, False), (10_000, False)])
def test_a_deep_schema_is_left_to_the_general_code(keyword, depth, plain):
    opening = {
        "properties": b'{"properties":{"a":',
        "items": b'{"items":',
        "additionalProperties": b'{"additionalProperties":',
        "anyOf": b'{"anyOf":[',
    }[keyword]
    closing = {"properties": b"}}", "anyOf": b"]}"}.get(keyword, b"}")
    member = opening * depth + b'{"type":"integer"}' + closing * depth
    schema = b'{"type":"object","properties":{"a":' + member + b"}}"
    assert prove_plain(schema).valid == plain
    if depth < 10_000:
        assert_same_as_general(schema)


@pytest.mark.parametrize(
    ("schema", "gemini", "root", "keys"),
    [
        ({"type": "object"}, False, False, True),
        ({"type": "object", "properties": {}}, False, True, True),
        ({"type": "object", "properties": {"a": {}}, "required": ["b"]}, False, False, True),
        ({"type": "object", "properties": {"a": {}}, "required": ["a", "a"]}, False, False, True),
        ({"type": "object", "properties": {"a": {"type": ["string", "string"]}}}, False, False, True),
        ({"type": "object", "properties": {"a": {"type": "object", "required": ["b"]}}}, True, False, True),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, True, False, True),
        ({"type": "object", "properties": {"a": {"anyOf": [{"type": "object"}]}}}, True, False, True),
        ({"type": "object", "properties": {"a b": {}}}, True, True, False),
        ({"type": "object", "properties": {"a" * 65: {}}}, True, True, False),
        ({"type": "object", "properties": {"": {}}}, True, True, False),
        ({"type": "object", "properties": {"a": {"properties": {"é": {}}}}}, True, True, True),
    ],
)
def test_each_target_has_a_proof_of_its_own(schema, gemini, root, keys):
    proof = prove_plain(write(schema))
    assert (proof.valid, proof.fits_gemini, proof.fits_root, proof.legal_keys) == (True, gemini, root, keys)
    assert_same_as_general(write(schema))


@pytest.mark.parametrize(
    "schema",
    [
        b'{"type":"string","type":"object","properties":{"a":{"type":"integer","type":"string"}}}',
        b'{"type":"object","properties":{"a":{"type":"integer"},"a":{"type":"string"}}}',
        b'{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"integer"}},"required":["a"],"required":[]}',
        b'{"\\u0074ype":"object","properties":{"a":{"type":"\\u0069nteger"}}}',
        b'{"type":"object","properties":{"a":{"type":"\\u0069nteger"},"b":{"type":"integer"}}}',
        b'{"type":"object","properties":{"a":{"minLength":1.0,"minimum":-0,"maximum":1E2,"multipleOf":1e-400}}}',
        b'{"type":"object","properties":{"a":{"minimum":18446744073709551616,"default":123456789012345678901234567890}}}',
        write({"type": "object", "properties": {"a": {}, "b": {"type": "integer"}}, "additionalProperties": {}}),
        write(
            {
                "type": "object",
                "properties": {"a": {}, "b": {"type": "array", "items": {"type": "integer"}}},
                "additionalProperties": {"type": "integer"},
            }
        ),
        with_member(
            {
                "type": ["integer", "object"],
                "properties": {"b": {"type": "integer"}, "c": {}},
                "anyOf": [{"type": "integer"}, {"properties": {"c": {"type": "integer"}}}],
                "oneOf": [{"items": {"type": "integer"}}, {"additionalProperties": {"type": "integer"}}],
                "allOf": [{"properties": {"b": {}}}],
            }
        ),
        with_member({"type": "object", "propertyNames": {"type": "string", "pattern": "^a"}, "minProperties": 1}),
        with_member({"default": {"a": [1]}, "examples": [1, "a", None, [1]], "const": None, "enum": []}),
    ],
)
def test_the_proof_decides_as_the_general_code_does(schema):
    assert_same_as_general(schema)
