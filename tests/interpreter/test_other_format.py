"""Bodies in the format of the vendor's other API are recognised and converted."""

import json

from dragoman.dialects.record import Call
from dragoman.dialects.registry import DIALECTS, dialect_named
from dragoman.interpreter.other_format import convert_request, find_other_format, find_siblings

SIBLINGS = find_siblings(DIALECTS[name] for name in ("chat", "responses", "messages", "gemini"))


def found(value, dialect):
    other = find_other_format(value, dialect, SIBLINGS)
    return other and other.name


def test_a_body_is_recognised_by_its_history():
    assert found({"input": "x"}, "chat") == "responses"
    assert found({"messages": []}, "responses") == "chat"
    assert found({"input": "x", "messages": []}, "chat") is None
    assert found({"messages": []}, "chat") is None
    assert found({}, "chat") is None
    assert found([], "chat") is None
    assert found({"input": "x"}, "messages") is None
    assert found({"contents": []}, "chat") is None


def test_no_model_limits_a_conversion():
    body = {
        "model": "anything",
        "input": "Go.",
        "max_output_tokens": 9,
        "temperature": 0.5,
        "reasoning": {"effort": "xhigh"},
        "stream": True,
        "tools": [{"type": "custom", "name": "free"}],
        "metadata": {"a": "b"},
    }
    raw, losses = convert_request(
        Call(json.dumps(body).encode()), dialect_named("responses"), dialect_named("chat"), strict="all"
    )
    assert losses == ()
    assert json.loads(raw) == {
        "model": "anything",
        "messages": [{"role": "user", "content": "Go."}],
        "max_completion_tokens": 9,
        "temperature": 0.5,
        "reasoning_effort": "xhigh",
        "stream": True,
        "tools": [{"type": "custom", "custom": {"name": "free"}}],
        "metadata": {"a": "b"},
    }
