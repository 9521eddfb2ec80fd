"""Reasoning is sent back to models that require it, and the thinking level in the model's own field."""

import pytest

from cases.documents import HELLO, chat_request, chat_tool, messages_request, tool_result, tool_use
from cases.through import loss_pointers, translate_to


def test_t015_thinking_with_a_call_is_sent_back_as_reasoning_content():
    turn = [{"type": "thinking", "thinking": "because", "signature": "x"}, tool_use("t1", "ls")]
    body = messages_request(
        HELLO, {"role": "assistant", "content": turn}, {"role": "user", "content": [tool_result("t1", "a")]}
    )
    asked = translate_to("messages", "chat", body, model="deepseek-v4")
    _, assistant, result = asked.body["messages"]
    assert assistant["reasoning_content"] == "because"
    assert [call["id"] for call in assistant["tool_calls"]] == ["t1"]
    assert result == {"role": "tool", "tool_call_id": "t1", "content": "a"}
    assert loss_pointers(asked) == {"/messages/1/content/0/signature"}


TOOLS = [chat_tool("f", {"type": "object", "properties": {}})]


@pytest.mark.parametrize(
    ("model", "effort", "level"),
    [
        ("gemini-3.7-flash", "none", "minimal"),
        ("gemini-3-flash", "none", "minimal"),
        ("gemini-3-pro", "none", "low"),
        ("gemini-3-pro", "minimal", "low"),
        ("gemini-3.8-flash", "minimal", "low"),
        ("gemini-3-flash", "xhigh", "high"),
        ("gemini-3-flash", "medium", "medium"),
    ],
)
def test_t016_gemini_3_gets_the_nearest_thinking_level_it_accepts_and_no_budget(model, effort, level):
    asked = translate_to("chat", "gemini", chat_request(tools=TOOLS, reasoning_effort=effort), model=model)
    config = asked.body["generationConfig"]["thinkingConfig"]
    assert {name: str(value).lower() for name, value in config.items()} == {"thinkingLevel": level}
    assert ("/reasoning_effort" in loss_pointers(asked, "approximated")) == (effort != level)


@pytest.mark.parametrize(
    ("model", "effort", "budget"),
    [("gemini-2.5-flash", "none", 0), ("gemini-2.5-pro", "none", 128), ("gemini-2.5-flash", "low", 1024)],
)
def test_t016_gemini_2_5_gets_a_budget_and_no_level(model, effort, budget):
    asked = translate_to("chat", "gemini", chat_request(tools=TOOLS, reasoning_effort=effort), model=model)
    assert asked.body["generationConfig"]["thinkingConfig"] == {"thinkingBudget": budget}
