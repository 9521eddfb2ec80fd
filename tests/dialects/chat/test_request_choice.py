"""Every form of a choice among tools, read to its last field and written again."""

import json
from typing import Any

import pytest

from dialects.outline import mark, outline
from dragoman.core.request import Request
from dragoman.core.traits import Traits
from dragoman.dialects.chat import DIALECT
from dragoman.dialects.chat.request import parse_request
from dragoman.dialects.record import Call


def parse(document: Any) -> Request:
    return parse_request(Call(json.dumps(document).encode()))


def render(request: Request) -> Any:
    return json.loads(DIALECT.render_request(request, Traits(dialect="chat")).body)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("auto", "ToolChoice where='/tool_choice' mode='auto'"),
        ("none", "ToolChoice where='/tool_choice' mode='none'"),
        ("required", "ToolChoice where='/tool_choice' mode='required'"),
        ("any", "ToolChoice where='/tool_choice' spelling='chat any' mode='required'"),
        (
            {"type": "function", "function": {"name": "f"}},
            "ToolChoice where='/tool_choice' mode='required' names=('f')",
        ),
        (
            {"function": {"name": "f"}},
            "ToolChoice where='/tool_choice' spelling='chat untyped' mode='required' names=('f')",
        ),
        (
            {"type": "custom", "custom": {"name": "p"}},
            "ToolChoice where='/tool_choice' spelling='chat custom' mode='required' names=('p')",
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "custom", "custom": {"name": "p"}}]},
            },
            "ToolChoice where='/tool_choice' spelling='chat allowed_tools' mode='required' names=('p') listed=True",
        ),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "mcp"}]}}, "None"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "never", "tools": []}}, "None"),
        ({"type": "mcp", "server_label": "s"}, "None"),
    ],
)
def test_every_form_of_a_choice_is_read_whole_and_written_again(given: Any, read: str):
    document = {
        "model": "m",
        "messages": [],
        "tools": [{"type": "custom", "custom": {"name": "p"}}],
        "tool_choice": given,
    }
    for body in (document, {**document, "function_call": "auto"}):
        request = parse(body)
        assert outline(request.tool_choice) == f"{read}\n"
        assert render(request) == body
        assert render(parse(mark(body))) == mark(body)
    parallel = parse({**document, "parallel_tool_calls": True}).tool_choice
    assert outline(parallel).rstrip() == ("ToolChoice parallel=True" if read == "None" else f"{read} parallel=True")


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("auto", "ToolChoice where='/function_call' spelling='chat function_call' mode='auto'"),
        ("none", "ToolChoice where='/function_call' spelling='chat function_call' mode='none'"),
        ({"name": "f"}, "ToolChoice where='/function_call' spelling='chat function_call' mode='required' names=('f')"),
        ({}, "None"),
    ],
)
def test_the_legacy_choice_is_read_whole_and_written_again(given: Any, read: str):
    document = {"model": "m", "messages": [], "function_call": given}
    assert outline(parse(document).tool_choice) == f"{read}\n"
    assert render(parse(document)) == document
    assert render(parse(mark(document))) == mark(document)
