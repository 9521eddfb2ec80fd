"""Inputs of custom tools."""

from dragoman.simulator.apis.conversation import RequestTool
from simulator.model.asked import ADD, calls_for

PYTHON = RequestTool(name="code_exec", kind="custom", description="Executes arbitrary Python code")


def test_code_in_the_prompt_is_taken_as_it_is():
    prompt = "Please run this Python code:\n```python\nfor i in range(3):\n    print(i)\n```"
    assert calls_for(prompt, PYTHON, ADD) == [("code_exec", "for i in range(3):\n    print(i)")]


def test_a_quote_is_taken_as_it_is():
    tool = RequestTool(name="send_note", kind="custom", description="Sends a note")
    assert calls_for("send a note: “be there at nine”", tool) == [("send_note", "be there at nine")]


def test_without_code_or_a_quote_the_text_is_used():
    tool = RequestTool(name="send_note", kind="custom", description="Sends a note")
    assert calls_for("send a note to everybody", tool) == [("send_note", "everybody")]
