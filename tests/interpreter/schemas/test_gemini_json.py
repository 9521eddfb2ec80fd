import json

import pytest

from dragoman.interpreter.schemas.arguments import restore
from dragoman.interpreter.schemas.gemini_json import fit_gemini


def fitted(schema):
    outcome = fit_gemini(json.dumps(schema).encode())
    return json.loads(outcome.schema or b"null"), outcome


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"object","properties":{"a":{"type":["string","null"],"multipleOf":5,"x-y":1}}}',
        b'{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}',
        b'{"type":"object","additionalProperties":{"type":"string"}}',
        b'{"type":"object","properties":{"a":{"type":"object","additionalProperties":false}}}',
        b'{"type":"object","patternProperties":{"^x":{"type":"string"}}}',
    ],
)
def test_what_gemini_takes_or_ignores_is_returned_as_the_very_same_bytes(text):
    outcome = fit_gemini(text)
    assert outcome.schema is text
    assert outcome.notes == ()


@pytest.mark.parametrize(
    "text",
    [b"{}", b"null", b"true", b'{"type":"object"}', b'{"type":"object","properties":{},"additionalProperties":false}'],
)
def test_a_tool_without_parameters_has_no_schema(text):
    assert fit_gemini(text).schema is None


def test_definitions_move_and_references_follow():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/A"}},
        "definitions": {"A": {"type": "string"}},
    }
    assert fitted(schema)[0] == {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "string"}},
    }


def test_a_reference_with_siblings_is_inlined_and_they_win():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A", "description": "mine"}},
        "$defs": {"A": {"type": "string", "description": "theirs"}},
    }
    assert fitted(schema)[0]["properties"]["a"] == {"type": "string", "description": "mine"}


def test_siblings_of_a_recursive_reference_are_dropped_with_a_note():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N", "description": "the next"}}}
    document, outcome = fitted({"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}})
    assert document["$defs"]["N"]["properties"]["next"] == {"$ref": "#/$defs/N"}
    assert [note.where for note in outcome.notes] == ["/$defs/N/properties/next"]


def test_a_reference_out_of_the_document_is_replaced_by_words():
    document, outcome = fitted({"type": "object", "properties": {"a": {"$ref": "https://example.com/a"}}})
    assert document["properties"]["a"] == {"description": "(as described at https://example.com/a)"}
    assert [note.kind for note in outcome.notes] == ["dropped"]


def test_boolean_schemas_become_objects_or_go():
    schema = {"type": "object", "properties": {"yes": True, "no": False, "list": {"type": "array", "items": True}}}
    document, _ = fitted(schema)
    assert document["properties"] == {"yes": {}, "list": {"type": "array", "items": {}}}


def test_a_root_that_is_no_object_is_wrapped():
    document, outcome = fitted({"type": "array", "items": {"type": "integer"}})
    assert document["properties"] == {"value": {"type": "array", "items": {"type": "integer"}}}
    assert outcome.undo is not None
    assert restore('{"value":[1.0,2]}', outcome.undo) == "[1,2]"


def test_integers_come_back_as_integers_wherever_the_schema_says_so():
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "x": {"type": "number"},
            "list": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
            "pair": {"prefixItems": [{"type": "number"}, {"type": "integer"}]},
            "map": {"additionalProperties": {"type": ["integer", "null"]}},
            "tree": {"$ref": "#/$defs/T"},
        },
        "$defs": {"T": {"properties": {"id": {"type": "integer"}, "children": {"items": {"$ref": "#/$defs/T"}}}}},
    }
    _, outcome = fitted(schema)
    assert outcome.undo is not None
    sent = '{"n":1.0,"x":1.0,"list":[2.0,"3.0"],"pair":[1.0,2.0],"map":{"a":3.0,"b":null},"tree":{"id":4.0,"children":[{"id":5.0}]}}'
    assert (
        restore(sent, outcome.undo)
        == '{"n":1,"x":1.0,"list":[2,"3.0"],"pair":[1.0,2],"map":{"a":3,"b":null},"tree":{"id":4,"children":[{"id":5}]}}'
    )


def test_a_schema_without_integers_needs_no_undo():
    assert fit_gemini(b'{"type":"object","properties":{"integer":{"type":"string"}}}').undo is None
