"""Cycles of required properties: Gemini rejects them, so they are cut, and that is a loss."""

import json

import pytest

from dragoman.interpreter.schema.plain import adapt_gemini

TEXT = {"type": "string"}
NODE = {"$ref": "#/$defs/N"}


def adapt_part(node, **more):
    schema = {"type": "object", "properties": {"n": NODE}, "required": ["n"], "$defs": {"N": node, **more}}
    outcome = adapt_gemini(json.dumps(schema).encode())
    return json.loads(outcome.schema), [(note.kind, note.where) for note in outcome.notes]


@pytest.mark.parametrize(
    "way",
    [
        NODE,
        {"type": "array", "items": NODE},
        {"anyOf": [NODE, {"type": "null"}]},
        {"type": "object", "additionalProperties": NODE},
    ],
)
def test_a_required_property_that_leads_back_need_not_be_there(way):
    node = {"type": "object", "properties": {"v": TEXT, "next": way}, "required": ["v", "next"]}
    document, notes = adapt_part(node)
    assert document["$defs"]["N"] == {**node, "required": ["v"]}
    assert document["required"] == ["n"]
    assert notes == [("dropped", "/$defs/N/required/1")]


def test_a_property_that_may_be_absent_leads_back_as_it_is():
    node = {"type": "object", "properties": {"v": TEXT, "next": NODE}, "required": ["v"]}
    document, notes = adapt_part(node)
    assert (document["$defs"]["N"], notes) == (node, [])


def test_a_circle_of_two_is_opened_where_a_property_is_required():
    node = {"type": "object", "properties": {"all": {"$ref": "#/$defs/L"}}, "required": ["all"]}
    document, notes = adapt_part(node, L={"type": "array", "items": NODE})
    assert document["$defs"] == {"N": {**node, "required": []}, "L": {"type": "array", "items": NODE}}
    assert notes == [("dropped", "/$defs/N/required/0")]


def test_a_circle_without_a_property_is_cut():
    document, notes = adapt_part({"anyOf": [TEXT, {"type": "array", "items": {**NODE, "description": "d"}}]})
    assert document["$defs"]["N"] == {"anyOf": [TEXT, {"type": "array", "items": {"description": "d"}}]}
    assert notes == [("approximated", "/$defs/N/anyOf/1/items/$ref")]


def test_the_root_may_be_a_circle_too():
    schema = {"type": "object", "properties": {"a": TEXT, "b": {"$ref": "#"}}, "required": ["a", "b"]}
    outcome = adapt_gemini(json.dumps(schema).encode())
    assert json.loads(outcome.schema) == {**schema, "required": ["a"]}
    assert [(note.kind, note.where) for note in outcome.notes] == [("dropped", "/required/1")]


def test_definitions_that_move_are_opened_where_the_caller_wrote_them():
    node = {"type": "object", "properties": {"next": {"$ref": "#/definitions/N"}}, "required": ["next"]}
    schema = {"type": "object", "properties": {"n": {"$ref": "#/definitions/N"}}, "definitions": {"N": node}}
    outcome = adapt_gemini(json.dumps(schema).encode())
    assert json.loads(outcome.schema)["$defs"]["N"]["required"] == []
    assert [note.where for note in outcome.notes] == ["/definitions/N/required/0"]
