"""Tools in the format of Responses in a Chat request."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.chat.compat import nest_tools

FLAT = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True, "extra": 1}
NESTED = {"type": "function", "extra": 1, "function": {"name": "f", "parameters": {"type": "object"}, "strict": True}}


def convert(request) -> dict:
    return json.loads(nest_tools(json.dumps(request).encode()))


def test_flat_tools_and_choice_are_nested_and_all_else_stays():
    request = {
        "messages": [],
        "tools": [FLAT, {"type": "novel"}, NESTED],
        "tool_choice": {"type": "function", "name": "f"},
    }
    assert convert(request) == {
        "messages": [],
        "tools": [NESTED, {"type": "novel"}, NESTED],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
    }


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages": []}',
        b'{"messages": [], "tools": []}',
        b'{"messages": [], "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto"}',
        b'{"messages": [], "tools": [{"function": {"name": "f"}}]}',
        b'{"messages": [], "tools": [{"type": "function"}], "big": 1e999}',
        b'{"messages": [], "tools": [{"type": "custom", "custom": {"name": "f"}}]}',
    ],
)
def test_an_ordinary_body_keeps_its_bytes(body):
    assert nest_tools(body) == body


def test_a_body_that_is_not_an_object_is_an_error():
    with pytest.raises(Problem):
        nest_tools(b'[{"tools": [{"name": "f"}]}]')
