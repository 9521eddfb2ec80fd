"""Detect the schemas that OpenAI accepts as strict without a change."""

import json

import pytest

from dragoman.interpreter.schema.roots import is_openai_strict

TEXT = {"type": "string"}


def closed(**properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        closed(),
        closed(a=TEXT),
        closed(a={"type": ["string", "null"], "format": "date-time", "pattern": "x", "minLength": 3}),
        closed(a={"type": "array", "items": closed(b={"type": "integer", "minimum": 1})}),
        closed(a={"anyOf": [closed(b=TEXT), {"type": "null"}]}),
        {
            **closed(a={"$ref": "#/$defs/N"}),
            "$defs": {"N": closed(n={"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]})},
        },
        closed(format=TEXT, allOf=TEXT, additionalProperties={"type": "boolean"}),
    ],
)
def test_a_closed_schema_of_supported_keywords_is_strict_for_openai(schema):
    assert is_openai_strict(json.dumps(schema).encode())


@pytest.mark.parametrize(
    "schema",
    [
        {},
        TEXT,
        True,
        {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
        {**closed(a=TEXT), "required": []},
        {**closed(a=TEXT), "required": ["a", "b"]},
        {**closed(a=TEXT), "additionalProperties": True},
        {**closed(a=TEXT), "anyOf": [{"required": ["a"]}]},
        closed(a={"type": "object", "additionalProperties": {"type": "string"}}),
        closed(a={"type": "array", "items": {"type": ["object", "null"], "properties": {"b": TEXT}}}),
        closed(a={"type": "integer", "format": "uint8"}),
        closed(a={"allOf": [TEXT]}),
        {**closed(a=TEXT), "$defs": {"N": {"not": TEXT}}},
    ],
)
def test_an_open_schema_or_one_outside_the_subset_is_not(schema):
    assert not is_openai_strict(json.dumps(schema).encode())


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 500 + b"]" * 500])
def test_what_cannot_be_read_is_not(text):
    assert not is_openai_strict(text)
