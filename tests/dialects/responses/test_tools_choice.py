"""Every form of a choice among tools, read to its last field and written again."""

import json
from typing import Any

import pytest

from dialects.outline import mark, outline
from dragoman.core.request import Request
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call
from dragoman.dialects.responses import DIALECT


def parse(document: Any) -> Request:
    return DIALECT.parse_request(Call(json.dumps(document).encode()))


def render(request: Request) -> Any:
    return json.loads(DIALECT.render_request(request, Traits(dialect="responses")).body)


CHOICES = [
    ("auto", "ToolChoice where='/tool_choice' mode='auto'"),
    ("none", "ToolChoice where='/tool_choice' mode='none'"),
    ("required", "ToolChoice where='/tool_choice' mode='required'"),
    ({"type": "function", "name": "f"}, "ToolChoice where='/tool_choice' mode='required' names=('f')"),
    ({"type": "custom", "name": "p"}, "ToolChoice where='/tool_choice' mode='required' names=('p')"),
    (
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "p"}, {"type": "odd"}]},
        "ToolChoice where='/tool_choice' spelling='allowed_tools' extras=responses{'/tools/1': '{\"type\": \"odd\"}'} mode='required' names=('p') listed=True",
    ),
    (
        {"type": "allowed_tools", "mode": "auto", "tools": []},
        "ToolChoice where='/tool_choice' spelling='allowed_tools' mode='auto' listed=True",
    ),
    ({"type": "mcp"}, "ToolChoice where='/tool_choice' extras=responses{'': '{\"type\": \"mcp\"}'}"),
    ("sometimes", "ToolChoice where='/tool_choice' extras=responses{'': '\"sometimes\"'}"),
]


@pytest.mark.parametrize(("given", "read"), CHOICES)
def test_every_form_of_a_choice_is_read_whole_and_written_again(given: Any, read: str):
    document = {"input": [], "tools": [{"type": "custom", "name": "p"}], "tool_choice": given}
    assert outline(parse(document).tool_choice) == f"{read}\n"
    assert outline(parse({**document, "parallel_tool_calls": True}).tool_choice) == f"{read} parallel=True\n"
    for body in (document, {**document, "parallel_tool_calls": False}, mark(document)):
        assert render(parse(body)) == body


def test_only_parallel_is_a_choice_too():
    assert (
        outline(parse({"parallel_tool_calls": True}).tool_choice) == "ToolChoice where='/tool_choice' parallel=True\n"
    )
    assert parse({"tool_choice": None}).tool_choice is None
