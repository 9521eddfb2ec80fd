"""Bodies in the format of the vendor's other API are recognised and converted."""

import json

from dragoman.dialects.record import Call
from dragoman.dialects.registry import DIALECTS, dialect_named
from dragoman.interpreter.other_format import convert_request, find_siblings


def test_only_dialects_of_one_vendor_are_siblings():
    siblings = find_siblings(DIALECTS[name] for name in ("chat", "responses", "messages", "gemini"))
    assert {name: [other.name for other in others] for name, others in siblings.items()} == {
        "chat": ["responses"],
        "responses": ["chat"],
        "messages": [],
        "gemini": [],
    }


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
