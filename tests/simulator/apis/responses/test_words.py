"""A malformed body is rejected with the vendor's own error text (measured on gpt-5.6-terra, or recorded)."""

import pytest

from dragoman.simulator.apis.rule import Violation
from simulator.apis.responses.bodies import asks, judge, require_rejected

TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
EFFORTS = "'none', 'minimal', 'low', 'medium', 'high', 'xhigh', and 'max'"
SAID = [
    ({"zzz_unknown": 1}, "/zzz_unknown", "Unknown parameter: 'zzz_unknown'."),
    ({"stop": ["ZZ"]}, "/stop", "Unknown parameter: 'stop'. Did you mean 'store'?"),
    ({"strem": 1}, "/strem", "Unknown parameter: 'strem'. Did you mean 'stream' or 'store'?"),
    ({"inpu": 1}, "/inpu", "Unknown parameter: 'inpu'."),
    ({"n": 2}, "/n", "Unknown parameter: 'n'."),
    ({"model": None}, "/model", "Invalid type for 'model': expected a string, but got an object instead."),
    ({"model": 7}, "/model", "Invalid type for 'model': expected a string, but got an integer instead."),
    (
        {"input": {"a": 1}},
        "/input",
        "Invalid type for 'input': expected one of a string or array of input items, but got an object instead.",
    ),
    (
        {"input": [{"role": "user", "content": "i", "bogus": 1}]},
        "/input/0/bogus",
        "Unknown parameter: 'input[0].bogus'.",
    ),
    ({"reasoning": "low"}, "/reasoning", "Invalid type for 'reasoning': expected an object, but got a string instead."),
    (
        {"reasoning": {"effort": "bogus"}},
        "/reasoning/effort",
        f"Invalid value: 'bogus'. Supported values are: {EFFORTS}.",
    ),
    (
        {"reasoning": {"summary": "bogus"}},
        "/reasoning/summary",
        "Invalid value: 'bogus'. Supported values are: 'concise', 'detailed', and 'auto'.",
    ),
    (
        {"reasoning": {"generate_summary": "concise"}},
        "/reasoning/generate_summary",
        "Unknown parameter: 'reasoning.generate_summary'.",
    ),
    (
        {"temperature": "hot"},
        "/temperature",
        "Invalid type for 'temperature': expected a decimal, but got a string instead.",
    ),
    (
        {"truncation": {"a": 1}},
        "/truncation",
        "Invalid type for 'truncation': expected one of 'auto' or 'disabled', but got an object instead.",
    ),
    (
        {"max_output_tokens": 15},
        "/max_output_tokens",
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 15 instead.",
    ),
    (
        {"metadata": {str(number): "v" for number in range(17)}},
        "/metadata",
        "Invalid 'metadata': too many properties. Expected an object with at most 16 properties, but got an object with 17 properties instead.",
    ),
    (
        {"prompt_cache_key": "k" * 70},
        "/prompt_cache_key",
        "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
    ),
    (
        {"stream_options": {"include_usage": True}},
        "/stream_options/include_usage",
        "Unknown parameter: 'stream_options.include_usage'.",
    ),
    ({"tools": "x"}, "/tools", "Invalid type for 'tools': expected an array of tools, but got a string instead."),
    (
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        "/tools/0/name",
        "Missing required parameter: 'tools[0].name'.",
    ),
    (
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}}},
        "/tool_choice/name",
        "Missing required parameter: 'tool_choice.name'.",
    ),
    (
        {"tools": [TOOL], "tool_choice": "bogus"},
        "/tool_choice",
        "Invalid value: 'bogus'. Supported values are: 'none', 'auto', and 'required'.",
    ),
    (
        {"tool_choice": 7},
        "/tool_choice",
        "Invalid type for 'tool_choice': expected one of an object or 'none', 'auto', or 'required', but got an integer instead.",
    ),
    (
        {"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "?"}]}]},
        "/input/0/content/0/type",
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    ),
    (
        {"prompt_cache_retention": "in_memory"},
        "/prompt_cache_retention",
        "This model is compatible only with 24h extended prompt caching",
    ),
    ({"temperature": 0.5}, "/temperature", "Unsupported parameter: 'temperature' is not supported with this model."),
    ({"top_p": 0.5}, "/top_p", "Unsupported parameter: 'top_p' is not supported with this model."),
    ({"top_logprobs": 1}, "/top_logprobs", "logprobs are not supported with reasoning models."),
    ({"include": ["message.output_text.logprobs"]}, "/include", "logprobs are not supported with reasoning models."),
    (
        {"reasoning": {"effort": "minimal"}},
        "/reasoning/effort",
        "Unsupported value: 'minimal' is not supported with the 'gpt-5.6-terra' model. Supported values are: 'none', 'low', 'medium', 'high', 'xhigh', and 'max'.",
    ),
    (
        {"tools": [TOOL], "tool_choice": {"type": "image_generation"}},
        "/tool_choice",
        "Tool choice 'image_generation' not found in 'tools' parameter.",
    ),
    ({"tool_choice": "required"}, "/tool_choice", "Tool choice 'required' must be specified with 'tools' parameter."),
    (
        {"tools": [{**TOOL, "defer_loading": True}]},
        "/tools",
        "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.",
    ),
    (
        {"input": [{"type": "function_call", "id": "item_1", "call_id": "call_1", "name": "f", "arguments": "{}"}]},
        "/input/0/id",
        "Invalid 'input[0].id': 'item_1'. Expected an ID that begins with 'fc'.",
    ),
    (
        {"input": [{"type": "custom_tool_call", "id": "fc_1", "call_id": "call_1", "name": "f", "input": ""}]},
        "/input/0/id",
        "Invalid 'input[0].id': 'fc_1'. Expected an ID that begins with 'ctc'.",
    ),
    (
        {"input": [{"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}]},
        "/input",
        "No tool output found for function call call_1.",
    ),
    (
        {"input": [{"type": "custom_tool_call_output", "call_id": "call_1", "output": "{}"}]},
        "/input",
        "No tool call found for custom tool call output with call_id call_1.",
    ),
    (
        {"previous_response_id": "resp_1", "conversation": "conv_1"},
        "",
        "Mutually exclusive parameters: ''. Ensure you are only providing one of: 'pre..._id' or 'conversation'.",
    ),
    (
        {"text": {"format": {"type": "json_object"}}},
        "/input",
        "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.",
    ),
]


@pytest.mark.parametrize(
    ("members", "where", "message"), SAID, ids=lambda value: value if isinstance(value, str) else None
)
def test_the_vendors_wording(members, where, message):
    found = require_rejected(asks(**{"model": "gpt-5.6-terra", **members}))
    assert (found.where, found.message) == (where, message)


def test_messages_have_moved():
    found = require_rejected(asks(messages=[]))
    assert found.message.startswith(
        "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'."
    )


TAKEN = [
    {"temperature": 1.0},
    {"temperature": 0.5, "reasoning": {"effort": "none"}},
    {"model": "gpt-4o", "temperature": 0.2, "top_logprobs": 3, "include": ["message.output_text.logprobs"]},
    {"model": "gpt-5.1", "temperature": 0.7},
    {"model": "gpt-5", "reasoning": {"effort": "minimal"}},
    {"model": "o4-mini", "reasoning": {"effort": "high", "summary": "detailed"}},
    {"tool_choice": None, "previous_response_id": None, "instructions": None},
    {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True},
    {"input": [{"role": "user", "content": "i", "id": "msg_x", "status": "completed"}]},
    {"input": [{"role": "assistant", "content": "Yes."}, {"role": "system", "content": "Stop."}]},
    {"client_metadata": {"session_id": "1"}},
    {"input": [{"type": "message", "role": "user", "content": "i", "internal_chat_message_metadata_passthrough": {}}]},
]


@pytest.mark.parametrize("members", TAKEN, ids=str)
def test_what_clients_may_send(members):
    found = judge(asks(**{"model": "gpt-5.6-terra", **members}))
    assert not isinstance(found, Violation), found
