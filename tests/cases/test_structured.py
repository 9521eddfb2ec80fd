"""The shape of an answer."""

import json

import pytest

from cases.documents import chat_request, chat_tool
from cases.through import loss_pointers, translate_to

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 5}}}


def _format(schema):
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def test_t037_constraints_that_claude_rejects_are_in_the_description():
    asked = translate_to("chat", "messages", chat_request(response_format=_format(SCHEMA)), model="claude-opus-4-8")
    schema = asked.body["output_config"]["format"]["schema"]
    number = schema["properties"]["n"]
    assert "multipleOf" not in number
    assert "multiple of 5" in number["description"]
    assert schema["additionalProperties"] is False
    assert "/response_format/json_schema/schema/properties/n/multipleOf" in loss_pointers(asked)


def test_t037_conditions_uniqueness_and_bounds_go_too_at_every_level():
    schema = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "size": {"type": "integer", "minimum": 1, "maximum": 9},
            "inner": {"type": "object", "properties": {"a": {"type": "string", "not": {"const": "x"}}}},
        },
        "if": {"properties": {"size": {"const": 1}}},
        "then": {"required": ["list"]},
    }
    asked = translate_to("chat", "messages", chat_request(response_format=_format(schema)), model="claude-opus-4-8")
    sent = asked.body["output_config"]["format"]["schema"]
    text = json.dumps(sent)
    assert not [word for word in ("uniqueItems", "minimum", "maximum", "not", "if", "then") if f'"{word}":' in text]
    assert sent["properties"]["inner"]["additionalProperties"] is False
    assert sent["properties"]["size"]["description"]
    assert sent["properties"]["list"]["description"]


TOOLS = [chat_tool("f", {"type": "object", "properties": {"a": {"type": "string"}}})]


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-2.0-flash"])
def test_t085_older_gemini_gets_the_tools_without_the_format_and_it_is_reported(model):
    asked = translate_to("chat", "gemini", chat_request(tools=TOOLS, response_format=_format(SCHEMA)), model=model)
    assert asked.body["tools"]
    assert not asked.body.get("generationConfig", {}).keys() & {
        "responseMimeType",
        "responseJsonSchema",
        "responseSchema",
    }
    assert any(where.startswith("/response_format") for where in loss_pointers(asked, "approximated"))
    assert "JSON Schema" in asked.body["systemInstruction"]["parts"][-1]["text"]


def test_t085_older_gemini_keeps_the_format_without_tools():
    asked = translate_to("chat", "gemini", chat_request(response_format=_format(SCHEMA)), model="gemini-2.5-flash")
    assert asked.body["generationConfig"]["responseMimeType"] == "application/json"


def test_t085_gemini_3_gets_both():
    asked = translate_to(
        "chat", "gemini", chat_request(tools=TOOLS, response_format=_format(SCHEMA)), model="gemini-3-flash"
    )
    config = asked.body["generationConfig"]
    assert asked.body["tools"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"]["properties"] == SCHEMA["properties"]
