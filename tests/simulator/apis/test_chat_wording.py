"""Errors have OpenAI's text, parameter and code. The texts were observed on gpt-5.6-terra."""

import json

import pytest

from dragoman.simulator.apis.api import ApiRejection
from dragoman.simulator.apis.chat import API
from simulator.apis.chat.bodies import STRICT, WEATHER, assistant_calls, require_rejected, tool_result

ASKED = {"role": "user", "content": "ping"}
NEWER = {"model": "gpt-5.6-terra"}


def schema_of(**members):
    parameters = {**STRICT["function"]["parameters"], **members}
    return {"tools": [{"type": "function", "function": {**STRICT["function"], "parameters": parameters}}]}


def person(**members):
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "person", **members}}}


CASES = [
    ({"zzz": 1}, "zzz", "unknown_parameter", "Unknown parameter: 'zzz'."),
    (
        {"messages": [ASKED, {"role": "assistant", "content": "a", "reasoning_content": "b"}]},
        "messages[1].reasoning_content",
        "unknown_parameter",
        "Unknown parameter: 'messages[1].reasoning_content'.",
    ),
    (
        {"stream": True, "stream_options": {"bogus": 1}},
        "stream_options.bogus",
        "unknown_parameter",
        "Unknown parameter: 'stream_options.bogus'.",
    ),
    ({"model": ...}, None, None, "you must provide a model parameter"),
    (
        {"messages": ...},
        "messages",
        "missing_required_parameter",
        "Missing required parameter: 'messages'.",
    ),
    (
        {"tools": [{"type": "function"}]},
        "tools[0].function",
        "missing_required_parameter",
        "Missing required parameter: 'tools[0].function'.",
    ),
    (
        {"messages": [{"content": "ping"}]},
        "messages[0].role",
        "missing_required_parameter",
        "Missing required parameter: 'messages[0].role'.",
    ),
    (
        {"messages": [ASKED, {"role": "developer"}]},
        "messages[1].content",
        "missing_required_parameter",
        "Missing required parameter: 'messages[1].content'.",
    ),
    (
        {"messages": [ASKED, {"role": "developer", "content": None}]},
        "messages[1].content",
        "invalid_type",
        "Invalid type for 'messages[1].content': expected one of a string or array of objects, but got null instead.",
    ),
    ({"n": "2"}, "n", "invalid_type", "Invalid type for 'n': expected an integer, but got a string instead."),
    (
        {"seed": 1.5},
        "seed",
        "invalid_type",
        "Invalid type for 'seed': expected an integer, but got a decimal number instead.",
    ),
    (
        {"temperature": "hot"},
        "temperature",
        "invalid_type",
        "Invalid type for 'temperature': expected a decimal, but got a string instead.",
    ),
    (
        {"messages": ["ping"]},
        "messages[0]",
        "invalid_type",
        "Invalid type for 'messages[0]': expected an object, but got a string instead.",
    ),
    (
        {"messages": "ping"},
        "messages",
        "invalid_type",
        "Invalid type for 'messages': expected an array of objects, but got a string instead.",
    ),
    (
        {"messages": [{"role": "bogus", "content": "ping"}]},
        "messages[0].role",
        "invalid_value",
        (
            "Invalid value: 'bogus'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', "
            "and 'developer'."
        ),
    ),
    (
        {"tools": [WEATHER], "tool_choice": "any"},
        "tool_choice",
        "invalid_value",
        "Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'.",
    ),
    (
        {"n": 0},
        "n",
        "integer_below_min_value",
        "Invalid 'n': integer below minimum value. Expected a value >= 1, but got 0 instead.",
    ),
    (
        {"frequency_penalty": 3},
        "frequency_penalty",
        "decimal_above_max_value",
        "Invalid 'frequency_penalty': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
    ),
    (
        {**NEWER, "n": 64},
        "n",
        "integer_above_max_value",
        "Invalid 'n': integer above maximum value. Expected a value <= 8, but got 64 instead.",
    ),
    (
        {"metadata": {"k": "x" * 600}},
        "metadata.k",
        "string_above_max_length",
        (
            "Invalid 'metadata.k': string too long. Expected a string with maximum length 512, but got a string with length "
            "600 instead."
        ),
    ),
    (
        {"messages": [ASKED, {"role": "assistant", "tool_calls": []}]},
        "messages[1].tool_calls",
        "empty_array",
        (
            "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array "
            "instead."
        ),
    ),
    (
        {"messages": [ASKED, {"role": "assistant", "tool_calls": None}]},
        "messages.[1].content",
        None,
        "Invalid value for 'content': expected a string, got null.",
    ),
    (
        {"messages": [ASKED, tool_result("call_1")]},
        "messages.[1].role",
        None,
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    ),
    (
        {"messages": [ASKED, assistant_calls("a", "b"), tool_result("b"), ASKED]},
        "messages.[3].role",
        None,
        (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
            "The following tool_call_ids did not have response messages: a"
        ),
    ),
    (
        {"tools": [{"type": "function", "function": {"name": ""}}]},
        "tools[0].function.name",
        "empty_string",
        (
            "Invalid 'tools[0].function.name': empty string. Expected a string with minimum length 1, but got an empty "
            "string instead."
        ),
    ),
    (
        {"tools": [{"type": "function", "function": {"name": "a b"}}]},
        "tools[0].function.name",
        "invalid_value",
        (
            "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'."
        ),
    ),
    (
        {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "other"}}},
        "function_call",
        None,
        "Invalid value for 'function_call': no function named 'other' was specified in the 'functions' parameter.",
    ),
    (
        {"metadata": {"k": 7}},
        "metadata",
        "invalid_type",
        "Invalid type for 'metadata': expected a string, but got an integer instead.",
    ),
    (
        {"tool_choice": "none"},
        "tool_choice",
        None,
        "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
    ),
    (
        {**NEWER, "max_tokens": 32},
        "max_tokens",
        "unsupported_parameter",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    ),
    (
        {**NEWER, "temperature": 0.5},
        "temperature",
        "unsupported_value",
        "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
    ),
    (
        {**NEWER, "reasoning_effort": "max"},
        "reasoning_effort",
        "unsupported_value",
        (
            "Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values are: 'none', "
            "'low', 'medium', 'high', and 'xhigh'."
        ),
    ),
    (
        {**NEWER, "tools": [WEATHER]},
        "reasoning_effort",
        None,
        (
            "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use "
            "function tools, use /v1/responses or set reasoning_effort to 'none'."
        ),
    ),
    (
        schema_of(additionalProperties=True),
        "tools[0].function.parameters",
        "invalid_function_parameters",
        (
            "Invalid schema for function 'find': In context=(), 'additionalProperties' is required to be supplied and to be "
            "false."
        ),
    ),
    (
        schema_of(required=[]),
        "tools[0].function.parameters",
        "invalid_function_parameters",
        (
            "Invalid schema for function 'find': In context=(), 'required' is required to be supplied and to be an array "
            "including every key in properties. Missing 'query'."
        ),
    ),
    (
        schema_of(properties={"query": {"type": "array"}}),
        "tools[0].function.parameters",
        "invalid_function_parameters",
        "Invalid schema for function 'find': In context=('properties', 'query'), array schema missing items.",
    ),
    (
        schema_of(properties={"query": {"type": {"x": 1}}}),
        "tools[0].function.parameters",
        "invalid_function_parameters",
        "Invalid schema for function 'find': {'x': 1} is not valid under any of the given schemas.",
    ),
    (
        schema_of(properties={"query": {"type": "string", "format": []}}),
        "tools[0].function.parameters",
        "invalid_function_parameters",
        "Invalid schema for function 'find': [] is not of type 'string'.",
    ),
    (
        {"functions": [{"name": "f", "parameters": {"type": "object", "properties": {"a": []}}}]},
        "functions[0].parameters",
        "invalid_function_parameters",
        "Invalid schema for function 'f': [] is not of type 'object', 'boolean'.",
    ),
    (
        person(strict=True, schema={"type": "object", "properties": {}}),
        "response_format",
        None,
        (
            "Invalid schema for response_format 'person': In context=(), 'additionalProperties' is required to be supplied "
            "and to be false."
        ),
    ),
    (
        person(schema={"type": "array", "items": {}}),
        "response_format",
        None,
        (
            "Invalid schema for response_format 'person': schema must be a JSON Schema of 'type: \"object\"', got 'type: "
            '"array"\'.'
        ),
    ),
    (
        {"response_format": {"type": "json_object"}},
        "messages",
        None,
        "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
    ),
    (
        {"model": "no-such-model"},
        None,
        "model_not_found",
        "The model `no-such-model` does not exist or you do not have access to it.",
    ),
]


@pytest.mark.parametrize(("members", "param", "code", "message"), CASES, ids=[case[3][:60] for case in CASES])
def test_an_error_has_openais_wording(members, param, code, message):
    violation = require_rejected(**members)
    refusal = ApiRejection(
        status=violation.status, message=violation.message, where=violation.where, rule=violation.rule
    )
    rendered = API.render_error(refusal)
    error = json.loads(rendered.body)["error"]
    assert violation.message == message
    assert error == {
        "message": f"{message} [rule: {violation.rule}]",
        "type": "invalid_request_error",
        "param": param,
        "code": code,
    }
    assert rendered.status == (404 if code == "model_not_found" else 400)
    assert rendered.headers["x-dragoman-rule"] == violation.rule


def test_a_value_of_a_map_that_is_out_of_bounds_is_not_named():
    assert require_rejected(logit_bias={"50256": 500}).message == (
        "Invalid 'logit_bias': decimal above maximum value. Expected a value <= 100, but got another instead."
    )
