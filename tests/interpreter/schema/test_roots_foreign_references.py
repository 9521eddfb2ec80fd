"""References to other documents: vendors reject them, so they are not fetched but replaced by descriptions."""

import json

import pytest

from dragoman.interpreter.schema.openapi import to_openapi
from dragoman.interpreter.schema.plain import adapt_gemini, adapt_root
from dragoman.interpreter.schema.roots import to_anthropic_output, to_openai_strict

REMOTE = "https://example.com/address.json"
CONVERTERS = {
    "root": adapt_root,
    "gemini": adapt_gemini,
    "openapi": to_openapi,
    "anthropic": to_anthropic_output,
    "strict": to_openai_strict,
}


def convert(name, schema):
    outcome = CONVERTERS[name](json.dumps(schema).encode())
    return json.loads(outcome.schema), {(note.where, note.kind) for note in outcome.notes}


@pytest.mark.parametrize("name", CONVERTERS)
@pytest.mark.parametrize("reference", [REMOTE, "#/$defs/Missing", "other.json#/x"])
def test_an_external_reference_becomes_a_description_and_no_reference(name, reference):
    adapted, notes = convert(name, {"type": "object", "properties": {"place": {"$ref": reference}}})
    assert "$ref" not in json.dumps(adapted)
    assert f"as described at {reference}" in adapted["properties"]["place"]["description"]
    assert ("/properties/place/$ref", "approximated") in notes


@pytest.mark.parametrize("name", CONVERTERS)
def test_siblings_of_an_external_reference_stay(name):
    node = {"$ref": REMOTE, "type": "string", "description": "Where."}
    adapted, notes = convert(name, {"type": "object", "properties": {"place": node}})
    place = adapted["properties"]["place"]
    assert place["description"].startswith("Where.")
    assert "string" in json.dumps(place["type"]).lower()
    assert ("/properties/place", "dropped") not in notes


def test_a_root_that_is_a_reference_out_of_the_document_takes_any_object():
    adapted, notes = convert("root", {"$ref": REMOTE})
    assert adapted["type"] == "object"
    assert adapted["description"] == f"(as described at {REMOTE})"
    assert notes == {("/$ref", "approximated")}


@pytest.mark.parametrize("name", ["root", "gemini"])
def test_references_inside_the_document_stay(name):
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}
    assert convert(name, schema) == (schema, set())


def test_notes_about_a_wrapped_root_have_pointers_into_the_callers_document():
    _, notes = convert("root", {"type": "array", "items": {"$ref": REMOTE}})
    assert notes == {("", "approximated"), ("/items/$ref", "approximated")}
