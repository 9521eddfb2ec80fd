"""Detect the schemas that OpenAI accepts as strict without a change."""

import json

import pytest

from dragoman.dialects.record import Call
from dragoman.interpreter.schema.roots import is_openai_strict
from dragoman.interpreter.translate import translate_request

TEXT = {"type": "string"}


def close_schema(**properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        close_schema(),
        close_schema(a=TEXT),
        close_schema(a={"type": "string", "pattern": r"^(?:a|b)\(?=x$"}),
        close_schema(a={"type": ["string", "null"], "format": "date-time", "pattern": "x", "minLength": 3}),
        close_schema(a={"type": "array", "items": close_schema(b={"type": "integer", "minimum": 1})}),
        close_schema(a={"anyOf": [close_schema(b=TEXT), {"type": "null"}]}),
        {
            **close_schema(a={"$ref": "#/$defs/N"}),
            "$defs": {"N": close_schema(n={"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]})},
        },
        close_schema(format=TEXT, allOf=TEXT, additionalProperties={"type": "boolean"}),
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
        {**close_schema(a=TEXT), "required": []},
        {**close_schema(a=TEXT), "required": ["a", "b"]},
        {**close_schema(a=TEXT), "additionalProperties": True},
        {**close_schema(a=TEXT), "anyOf": [{"required": ["a"]}]},
        close_schema(a={"type": "object", "additionalProperties": {"type": "string"}}),
        close_schema(a={"type": "array", "items": {"type": ["object", "null"], "properties": {"b": TEXT}}}),
        close_schema(a={"type": "integer", "format": "uint8"}),
        close_schema(a={"allOf": [TEXT]}),
        {**close_schema(a=TEXT), "$defs": {"N": {"not": TEXT}}},
    ],
)
def test_an_open_schema_or_one_outside_the_subset_is_not(schema):
    assert not is_openai_strict(json.dumps(schema).encode())


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 500 + b"]" * 500])
def test_what_cannot_be_read_is_not(text):
    assert not is_openai_strict(text)


LOOKAROUNDS = [r"^(?=.*\d).+$", r"^(?!-).+", r"(?<=a)b", r"(?<!a)b", r"\\(?=a)"]


@pytest.mark.parametrize("pattern", LOOKAROUNDS)
@pytest.mark.parametrize(("source", "target"), [("messages", "chat"), ("messages", "responses"), ("chat", "responses")])
def test_a_pattern_with_a_lookaround_is_described_in_a_strict_tool_for_openai(source, target, pattern):
    schema = close_schema(a={"type": "string", "pattern": pattern})
    hello = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}
    if source == "messages":
        tool = {"name": "f", "input_schema": schema, "strict": True}
    else:
        tool = {"type": "function", "function": {"name": "f", "parameters": schema, "strict": True}}
    body = json.dumps({**hello, "tools": [tool]}).encode()
    translation = translate_request(Call(body), source, target, model="gpt-4.1")
    (sent,) = json.loads(translation.call.body)["tools"]
    function = sent.get("function", sent)
    assert function["strict"] is True
    prop = function["parameters"]["properties"]["a"]
    assert "pattern" not in prop
    assert pattern in prop["description"]
    assert [loss.where for loss in translation.losses if loss.where.endswith("/properties/a/pattern")]


@pytest.mark.parametrize("pattern", LOOKAROUNDS)
@pytest.mark.parametrize("target", ["responses", "chat"])
def test_an_output_schema_with_a_lookaround_is_not_strict_for_openai(target, pattern):
    schema = close_schema(a={"type": "string", "pattern": pattern})
    named = {"name": "x", "schema": schema, "strict": True}
    if target == "responses":
        source, body = (
            "chat",
            {
                "messages": [{"role": "user", "content": "hi"}],
                "response_format": {"type": "json_schema", "json_schema": named},
            },
        )
    else:
        source, body = "responses", {"input": "hi", "text": {"format": {"type": "json_schema", **named}}}
    call = Call(json.dumps({"model": "m", **body}).encode())
    translation = translate_request(call, source, target, model="gpt-4.1")
    document = json.loads(translation.call.body)
    sent = document["text"]["format"] if target == "responses" else document["response_format"]["json_schema"]
    assert sent["schema"] == schema
    assert sent.get("strict") is not True
    assert [loss.where for loss in translation.losses if loss.where.endswith("/strict")]


@pytest.mark.parametrize("target", ["chat", "responses"])
def test_a_tool_that_is_not_strict_keeps_its_lookaround(target):
    schema = close_schema(a={"type": "string", "pattern": LOOKAROUNDS[0]})
    hello = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}
    body = json.dumps({**hello, "tools": [{"name": "f", "input_schema": schema}]}).encode()
    translation = translate_request(Call(body), "messages", target, model="gpt-4.1")
    (sent,) = json.loads(translation.call.body)["tools"]
    assert sent.get("function", sent)["parameters"] == schema
