"""Which requests a model takes only in the vendor's other API."""

import json

import pytest

from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.other_api import call_needs_other_api, report_other_api

PARAMETERS = {"type": "object", "properties": {}}
CHAT_TOOLS = {"tools": [{"type": "function", "function": {"name": "f", "parameters": PARAMETERS}}]}
GEMINI_TOOLS = {"tools": [{"functionDeclarations": [{"name": "f"}]}]}
ROWS = [
    ("chat", "gpt-5.4", {**CHAT_TOOLS, "reasoning_effort": "low"}, True),
    ("chat", "gpt-5.4", {**CHAT_TOOLS, "reasoning_effort": "none"}, False),
    ("chat", "gpt-5.4", {**CHAT_TOOLS, "reasoning_effort": None}, False),
    ("chat", "gpt-5.4", {"functions": [{"name": "f"}], "reasoning_effort": "low"}, True),
    ("chat", "gpt-5.4", {"reasoning_effort": "low"}, False),
    ("chat", "gpt-5.4", CHAT_TOOLS, False),
    ("chat", "gpt-5.2", {**CHAT_TOOLS, "reasoning_effort": "low"}, False),
    ("chat", "gpt-5.5", CHAT_TOOLS, False),
    ("chat", "gpt-5.6", CHAT_TOOLS, True),
    ("chat", "gpt-5.6", {**CHAT_TOOLS, "reasoning_effort": None}, True),
    ("chat", "gpt-5.6", {**CHAT_TOOLS, "reasoning_effort": "none"}, False),
    ("chat", "gpt-5.6", {}, False),
    ("messages", "gpt-6-luna", {"tools": [{"name": "f", "input_schema": PARAMETERS}]}, True),
    ("gemini", "gpt-6-luna", GEMINI_TOOLS, True),
    ("chat", "gpt-6-astra", CHAT_TOOLS, True),
    ("chat", "gpt-6-astra", {}, False),
    ("messages", "gpt-5.4", {"tools": [{"name": "f", "input_schema": PARAMETERS}]}, False),
    (
        "messages",
        "gpt-5.4",
        {"tools": [{"name": "f", "input_schema": PARAMETERS}], "thinking": {"type": "adaptive"}},
        True,
    ),
    (
        "messages",
        "gpt-5.4",
        {"tools": [{"name": "f", "input_schema": PARAMETERS}], "thinking": {"type": "disabled"}},
        False,
    ),
    ("gemini", "gpt-5.4", {**GEMINI_TOOLS, "generation_config": {"thinking_config": {"thinking_level": "low"}}}, True),
    ("gemini", "gpt-5.4", {**GEMINI_TOOLS, "generationConfig": {"temperature": 1}}, False),
    (
        "gemini",
        "gpt-5.4",
        {"model": "m", "request": {**GEMINI_TOOLS, "generationConfig": {"thinkingConfig": {"thinkingBudget": 5000}}}},
        True,
    ),
    (
        "responses",
        "gpt-5.4",
        {"tools": [{"type": "function", "name": "f", "parameters": PARAMETERS}], "reasoning": {"effort": "high"}},
        True,
    ),
    ("chat", "gpt-5.4", {"tools": "f", "reasoning_effort": "low"}, False),
]


@pytest.mark.parametrize(("dialect", "model", "body", "expected"), ROWS)
def test_the_settings_and_tools_of_a_request_decide(dialect, model, body, expected):
    found = dialect_named(dialect)
    body = body if "request" in body else {**body, found.history: "is not read"}
    call = Call(json.dumps(body).encode())
    assert call_needs_other_api(call, found, traits_for("chat", model)) is expected


def test_a_body_that_is_not_json_is_left_to_the_translation():
    assert not call_needs_other_api(
        Call(b'{"reasoning_effort": '), dialect_named("chat"), traits_for("chat", "gpt-5.4")
    )


@pytest.mark.parametrize(
    ("model", "body", "where"),
    [
        ("gpt-5.4", b'{"tools":[],"reasoning_effort":"low"}', "/reasoning_effort"),
        ("gpt-6-astra", b'{"tools":[],"reasoning_effort":"low"}', "/tools"),
        ("gpt-5.6", b'{"tools":[]}', "/tools"),
    ],
)
def test_the_loss_names_the_field_that_needs_the_other_api(model, body, where):
    loss = report_other_api(body, dialect_named("chat"), traits_for("chat", model), "x")
    assert (loss.where, loss.grade, loss.kind) == (where, "informational", "approximated")
