"""Tools in Chat's format in a Responses request."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.responses.compat import flatten_tools

NESTED = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}, "strict": True}
FLAT = {"type": "function", "strict": True, "name": "f", "parameters": {"type": "object"}}


def body_of(request) -> dict:
    return json.loads(flatten_tools(json.dumps(request).encode()))


def test_nested_tools_and_choice_are_flattened_and_all_else_stays():
    choice = {"type": "function", "function": {"name": "f"}}
    request = {"input": "x", "tools": [NESTED, {"type": "web_search"}, FLAT], "tool_choice": choice, "y": 1.0}
    assert body_of(request) == {
        "input": "x",
        "tools": [FLAT, {"type": "web_search"}, FLAT],
        "tool_choice": {"type": "function", "name": "f"},
        "y": 1.0,
    }


@pytest.mark.parametrize(
    "request_body",
    [
        {"tools": [FLAT], "tool_choice": "auto"},
        {"input": [{"type": "message", "content": '{"function": {}}'}]},
        {"input": [{"function": {"name": "f"}}]},
        {"tools": [{"type": "function", "name": "f", "parameters": {"properties": {"function": {"type": "object"}}}}]},
    ],
)
def test_a_request_that_is_flat_is_the_same_bytes(request_body):
    body = json.dumps(request_body).encode()
    assert flatten_tools(body) == body


def test_a_body_that_is_no_object_is_refused():
    with pytest.raises(Problem):
        flatten_tools(b'[{"function": {}}]')
