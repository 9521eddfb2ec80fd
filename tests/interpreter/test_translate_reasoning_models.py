"""What models that reason refuse, and take only when they are asked not to."""

import json
from typing import Any

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request

TOOL = {"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {}}}
SAID = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "q"}]}
ASKED = {"contents": [{"role": "user", "parts": [{"text": "q"}]}]}


def translate(
    source: str, target: str, model: str, body: dict[str, Any]
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    translation = translate_request(Call(json.dumps(body).encode(), "m"), source, target, model=model)
    return json.loads(translation.call.body), [(loss.kind, loss.where) for loss in translation.losses]


def test_tools_on_chat_disable_reasoning_whatever_thinking_was_requested():
    body, losses = translate(
        "messages", "chat", "gpt-6-luna", SAID | {"tools": [TOOL], "thinking": {"type": "adaptive"}}
    )
    assert body["reasoning_effort"] == "none"
    assert ("approximated", "/thinking/type") in losses


def test_a_request_for_visible_thinking_is_a_loss_if_there_is_none():
    config = {"thinkingConfig": {"includeThoughts": True}}
    tools = [{"functionDeclarations": [{"name": "f", "description": "d"}]}]
    body, losses = translate("gemini", "chat", "gpt-5.6", ASKED | {"tools": tools, "generationConfig": config})
    assert body["reasoning_effort"] == "none"
    assert losses == [("dropped", "/generationConfig")]
    for target, model in (("responses", "gpt-4.1"), ("messages", "claude-3-5-haiku")):
        _, losses = translate("gemini", target, model, ASKED | {"generationConfig": config})
        assert ("dropped", "/generationConfig") in losses


def test_a_budget_with_tools_is_a_loss_at_its_pointer():
    config = {"thinkingConfig": {"thinkingBudget": 2048}}
    tools = [{"functionDeclarations": [{"name": "f", "description": "d"}]}]
    _, losses = translate("gemini", "chat", "gpt-5.6", ASKED | {"tools": tools, "generationConfig": config})
    assert ("approximated", "/generationConfig/thinkingConfig/thinkingBudget") in losses
    assert all("thinkingLevel" not in where for _, where in losses)


@pytest.mark.parametrize("model", ["gpt-6-astra", "gpt-6.1-sol-2026"])
def test_functions_are_refused_for_models_that_take_them_only_on_responses(model):
    with pytest.raises(Problem) as caught:
        translate("messages", "chat", model, SAID | {"tools": [TOOL]})
    assert (caught.value.kind, caught.value.where) == ("unsupported", "/tools")
    body, _ = translate("messages", "responses", model, SAID | {"tools": [TOOL], "thinking": {"type": "disabled"}})
    assert body["reasoning"]["effort"] == "low"
    assert "reasoning_effort" not in translate("messages", "chat", model, SAID)[0]


@pytest.mark.parametrize(("target", "parameters"), [("responses", {"temperature", "top_p"}), ("messages", set())])
def test_sampling_parameters_are_accepted_by_a_model_with_reasoning_off(target, parameters):
    model = {"responses": "gpt-5.2", "messages": "claude-opus-5"}[target]
    sampling = {"temperature": 0.5, "top_p": 0.9}
    request = {"model": "m", "messages": [{"role": "user", "content": "q"}], **sampling}
    body, losses = translate("chat", target, model, request | {"reasoning_effort": "none"})
    assert {name for name in sampling if name in body} == parameters
    body, losses = translate("chat", target, model, request | {"reasoning_effort": "low"})
    assert not sampling.keys() & body.keys()
    assert {("dropped", "/temperature"), ("dropped", "/top_p")} <= set(losses)


def test_penalties_are_accepted_by_chat_models_with_reasoning_off():
    request = ASKED | {"generationConfig": {"presencePenalty": 0.5, "thinkingConfig": {"thinkingBudget": 0}}}
    body, _ = translate("gemini", "chat", "gpt-5.2", request)
    assert (body["reasoning_effort"], body["presence_penalty"]) == ("none", 0.5)


def test_a_null_field_is_no_loss():
    _, losses = translate("messages", "gemini", "gemini-3-flash", SAID | {"service_tier": None, "container": None})
    assert losses == []
