"""Answers that are JSON of a schema."""

import json

import jsonschema_rs
import pytest

from dragoman.simulator.model import answer
from simulator.model.asked import BOOLEAN, INTEGER, TEXT, WEATHER, after, build_ask

PERSON = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "age": INTEGER,
        "city": TEXT,
        "plan": {"type": "string", "enum": ["basic", "enterprise"]},
        "demo_requested": BOOLEAN,
        "tags": {"type": "array", "items": TEXT},
    },
    "required": ["name", "age", "city", "plan", "demo_requested", "tags"],
    "additionalProperties": False,
}


def test_the_answer_is_filled_from_the_prompt():
    reply = answer(
        build_ask(
            "The customer Ada Lovelace, age 36, lives in London and wants the enterprise plan.", output_schema=PERSON
        )
    )
    assert reply.end == "stop"
    assert json.loads(reply.text) == {
        "name": "Ada Lovelace",
        "age": 36,
        "city": "London",
        "plan": "enterprise",
        "demo_requested": False,
        "tags": [],
    }


def test_a_tool_is_called_before_the_answer_and_its_result_is_used():
    report = {
        "type": "object",
        "properties": {"location": TEXT, "temperature": {"type": "number"}},
        "required": ["location", "temperature"],
    }
    asked = build_ask("What's the weather in Paris?", WEATHER, output_schema=report)
    first = answer(asked)
    assert first.calls
    output = answer(after(asked, first, '{"location": "Paris, France", "temperature": 18.5}'))
    assert json.loads(output.text) == {"location": "Paris, France", "temperature": 18.5}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "array", "items": {"type": "integer", "minimum": 3}, "minItems": 2},
        {"enum": ["yes", "no"]},
        {"anyOf": [{"type": "null"}, {"type": "string", "format": "date"}]},
        {
            "$ref": "#/$defs/tree",
            "$defs": {"tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}}},
        },
        {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
    ],
)
def test_any_schema_is_answered_with_what_it_allows(schema):
    assert jsonschema_rs.is_valid(schema, json.loads(answer(build_ask("Anything you like", output_schema=schema)).text))


def test_the_empty_schema_is_any_object():
    assert isinstance(json.loads(answer(build_ask("Anything", output_schema={})).text), dict)


def test_a_schema_of_gemini_is_read():
    schema = {
        "type": "OBJECT",
        "properties": {"count": {"type": "INTEGER"}, "word": {"type": "STRING", "nullable": True}},
        "required": ["count", "word"],
    }
    assert json.loads(answer(build_ask("7 words", output_schema=schema)).text)["count"] == 7
