"""Tools without `strict`: made strict where possible, else echoed unchanged, and never the cause of an exception."""

import pytest

from dragoman.simulator.apis.api import AcceptedRequest
from dragoman.simulator.apis.conversation import Answer, TokenSigner
from dragoman.simulator.apis.rule import CheckContext
from simulator.apis.responses.answers import whole
from simulator.apis.responses.bodies import API, asks, require_accepted, require_rejected

OPEN = {"type": "object", "properties": {"h": {"type": "object", "additionalProperties": {"type": "string"}}}}
TOOL = {"type": "function", "name": "f", "parameters": OPEN}


@pytest.mark.parametrize("strict", [{}, {"strict": None}])
@pytest.mark.parametrize(
    "schema",
    [
        OPEN,
        {"type": "object", "additionalProperties": {}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "object"}, {"type": "null"}]}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}}}},
        {"type": "object", "properties": {"a": True}},
    ],
)
def test_an_object_that_may_hold_anything_leaves_its_tool_loose(schema, strict):
    asked = asks(tools=[{**TOOL, "parameters": schema, **strict}])
    assert require_accepted(asked).model_request.tools[0].schema == schema
    result = whole({"tools": asked["tools"]}, Answer(text="Hi."))["tools"][0]
    assert (result["strict"], result["parameters"]) == (False, schema)


@pytest.mark.parametrize(
    "asked",
    [
        asks(tools=[{"type": "namespace", "name": "n", "description": "All of it.", "tools": [TOOL]}]),
        asks(
            input=[
                {"type": "additional_tools", "role": "developer", "tools": [TOOL]},
                {"role": "user", "content": "Hi."},
            ]
        ),
    ],
)
def test_a_non_strict_tool_is_accepted_wherever_tools_are_declared(asked):
    assert require_accepted(asked).model_request.tools[0].schema == OPEN


def test_tokens_of_a_loose_tool_are_counted():
    situation = CheckContext(model="gpt-5.4", counting=True)
    body = b'{"model":"gpt-5.4","input":"hi","tools":[{"type":"function","name":"f","parameters":{"type":"object",'
    body += b'"properties":{"h":{"type":"object","additionalProperties":{"type":"string"}}}}}]}'
    assert isinstance(API.accept(body, situation, TokenSigner()), AcceptedRequest)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"properties": {"a": {"type": "object", "properties": 7}}}, "7 is not of type 'object'."),
        ({"properties": {"a": {"type": "string", "anyOf": 7}}}, "7 is not of type 'array'."),
        ({"properties": {"a": {"type": "object", "required": {"b": 1}}}}, "{'b': 1} is not of type 'array'."),
        ({"properties": ["a"]}, "['a'] is not of type 'object'."),
        ({"required": 3}, "3 is not of type 'array'."),
        ({"required": [3]}, "3 is not of type 'string'."),
        ({"properties": {"a": {"type": []}}}, "[] is not valid under any of the given schemas."),
        ({"properties": {"a": {"type": "string", "minLength": 1.5}}}, "1.5 is not of type 'integer'."),
    ],
)
@pytest.mark.parametrize("strict", [True, False, None])
def test_what_is_no_schema_is_refused_strict_or_not(members, words, strict):
    parameters = {"type": "object", **members}
    found = require_rejected(asks(tools=[{**TOOL, "parameters": parameters, "strict": strict}]))
    assert found.rule == "responses.tool-schema"
    if strict is not True:
        assert found.message == f"Invalid schema for function 'f': {words}"


def test_an_item_of_no_type_that_there_is_is_refused():
    for kind in ([], {}, 7):
        found = require_rejected(asks(input=[{"type": kind}]))
        assert (found.status, found.rule) == (400, "responses.type")
