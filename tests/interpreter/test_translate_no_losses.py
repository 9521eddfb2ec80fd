"""Requests that the target can say whole: strict mode lets them through."""

import pytest

from cases.through import translate_to

USER = {"role": "user", "content": "hi"}
TARGETS = [("responses", "gpt-5.6"), ("messages", "claude-opus-5"), ("gemini", "gemini-3-pro")]


@pytest.mark.parametrize(("target", "model"), TARGETS)
@pytest.mark.parametrize("member", ["tools", "functions", "stop"])
def test_an_empty_list_in_a_chat_request_is_no_loss(target, model, member):
    request = translate_to("chat", target, {"model": "m", "messages": [USER], member: []}, model=model, strict=True)
    assert not request.losses
    assert member not in request.body


@pytest.mark.parametrize(("source", "member"), [("responses", "input"), ("messages", "messages")])
def test_an_empty_list_of_tools_is_no_loss(source, member):
    body = {"model": "m", member: [USER], "max_tokens": 16, "tools": []}
    if source == "responses":
        del body["max_tokens"]
    assert not translate_to(source, "chat", body, model="gpt-4.1", strict=True).losses


def test_effort_none_is_sonnet_5_5s_thinking_between_tools():
    body = {"model": "m", "messages": [USER], "reasoning_effort": "none"}
    request = translate_to("chat", "messages", body, model="claude-sonnet-5-5", strict=True)
    assert request.body["thinking"] == {"type": "between_tools"}
    assert "output_config" not in request.body


def test_effort_none_is_the_lowest_effort_where_thinking_is_always_on():
    body = {"model": "m", "messages": [USER], "reasoning_effort": "none"}
    request = translate_to("chat", "messages", body, model="claude-opus-5-5")
    assert request.body["output_config"] == {"effort": "low"}
    assert [(loss.kind, loss.where) for loss in request.losses] == [("approximated", "/reasoning_effort")]


def test_a_system_message_alone_is_an_item_of_responses_input():
    body = {"model": "m", "messages": [{"role": "system", "content": "Say hello."}]}
    request = translate_to("chat", "responses", body, model="gpt-5.6", strict=True)
    assert request.body["input"] == [{"type": "message", "role": "developer", "content": "Say hello."}]
    assert "instructions" not in request.body


def test_a_system_message_before_others_is_instructions():
    body = {"model": "m", "messages": [{"role": "system", "content": "Be brief."}, USER]}
    request = translate_to("chat", "responses", body, model="gpt-5.6", strict=True)
    assert request.body["instructions"] == "Be brief."


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
SCHEMA = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (
            {"type": "json_schema", "json_schema": {"name": "sum", "description": "The sum.", "schema": SCHEMA}},
            ["When you call no tool, answer with one JSON value (sum: The sum.)", '"answer"'],
        ),
        ({"type": "json_object"}, ["When you call no tool, answer with one JSON object and nothing else."]),
    ],
)
def test_gemini_2_5_gets_an_output_format_with_tools_as_text(form, words):
    body = {"model": "m", "messages": [USER], "tools": TOOLS, "response_format": form}
    request = translate_to("chat", "gemini", body, model="gemini-2.5-flash")
    text = request.body["systemInstruction"]["parts"][-1]["text"]
    assert all(word in text for word in words)
    assert "generationConfig" not in request.body
    assert {loss.kind for loss in request.losses} == {"approximated"}
