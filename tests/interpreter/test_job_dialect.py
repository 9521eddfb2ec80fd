"""Which dialect a request is surely in."""

import json

import pytest

from dragoman.interpreter.job import dialect_of

USER = {"role": "user", "content": "hi"}


def block(kind):
    return {"messages": [USER, {"role": "user", "content": [{"type": kind}]}]}


@pytest.mark.parametrize(
    ("document", "dialect"),
    [
        ({"contents": []}, "gemini"),
        ({"model": "g", "request": {"contents": []}}, "gemini"),
        ({"input": "hi"}, "responses"),
        ({"input": []}, "responses"),
        *(
            ({"messages": [], name: 1}, "chat")
            for name in ("max_completion_tokens", "response_format", "stream_options")
        ),
        *(({"messages": [], name: 1}, "chat") for name in ("functions", "reasoning_effort", "n")),
        *(({"messages": [], name: 1}, "messages") for name in ("system", "anthropic_version", "anthropic_beta")),
        *(({"messages": [], name: 1}, "messages") for name in ("stop_sequences", "thinking", "output_config")),
        ({"messages": [], "tools": [{"type": "x"}, {"type": "function", "function": {}}]}, "chat"),
        ({"messages": [], "tools": [{"name": "f", "input_schema": {}}]}, "messages"),
        ({"messages": [USER, {"role": "tool", "content": "x"}]}, "chat"),
        ({"messages": [{"role": "developer", "content": "x"}]}, "chat"),
        ({"messages": [{"role": "function", "content": "x"}]}, "chat"),
        ({"messages": [{"role": "assistant", "tool_calls": []}]}, "chat"),
        *((block(kind), "messages") for kind in ("tool_use", "tool_result", "thinking")),
        *((block(kind), "messages") for kind in ("redacted_thinking", "image", "document")),
        (block("text"), None),
        (block("image_url"), None),
        ({"messages": [USER]}, None),
        ({"messages": [USER], "tools": [{"type": "web_search"}]}, None),
        ({"messages": [USER], "tools": None}, None),
        ({"messages": [USER], "tools": [1, "function"]}, None),
        ({"messages": [USER], "tools": {"function": 1}}, None),
        ({"messages": "hi"}, None),
        ({"request": {"messages": []}}, None),
        ({}, None),
        ([], None),
    ],
)
def test_only_distinctive_fields_determine_the_dialect(document, dialect):
    assert dialect_of(json.dumps(document).encode()) == dialect


@pytest.mark.parametrize("body", [b"", b"{", b'{"input": 1e999}', b"\xff"])
def test_what_cannot_be_read_is_nobodys(body):
    assert dialect_of(body) is None
