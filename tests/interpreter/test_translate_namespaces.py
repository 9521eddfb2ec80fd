"""A tool of a namespace has one name at a target that has none: where it is declared, chosen and called."""

import json

import pytest

from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request

TARGETS = {"chat": "gpt-4.1", "messages": "claude-opus-5", "gemini": "gemini-3.8-flash"}


def translate(target, tools, *called):
    history = []
    for number, call in enumerate(called):
        history.append({"type": "function_call", "call_id": f"c{number}", "arguments": "{}", **call})
        history.append({"type": "function_call_output", "call_id": f"c{number}", "output": ""})
    body = {"model": "m", "input": [{"role": "user", "content": "q"}, *history], "tools": tools}
    return translate_request(Call(json.dumps(body).encode()), "responses", target, model=TARGETS[target])


def names(target, body):
    """The names that are declared, and those that are called."""
    body = json.loads(body)
    if target == "chat":
        calls = [call["function"]["name"] for text in body["messages"] for call in text.get("tool_calls", ())]
        return [tool["function"]["name"] for tool in body["tools"]], calls
    if target == "messages":
        blocks = [block for text in body["messages"] if text["role"] == "assistant" for block in text["content"]]
        return [tool["name"] for tool in body["tools"] if "type" not in tool], [block["name"] for block in blocks]
    parts = [part for content in body["contents"] for part in content["parts"]]
    declared = [tool["name"] for tool in body["tools"][0]["functionDeclarations"]]
    return declared, [part["functionCall"]["name"] for part in parts if "functionCall" in part]


@pytest.mark.parametrize("target", TARGETS)
def test_a_call_of_a_tool_that_was_loaded_later_has_the_name_it_was_declared_by(target):
    tools = [{"type": "function", "name": "look", "defer_loading": True}, {"type": "tool_search"}]
    translation = translate(target, tools, {"name": "look", "namespace": "look"})
    assert names(target, translation.call.body) == (["look"], ["look"])
    assert translation.undo.names == {}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("namespace", "name"), [("web", "web__look"), ("look", "look")])
def test_a_tool_of_a_namespace_is_called_as_it_is_declared_and_found_again(target, namespace, name):
    tools = [{"type": "namespace", "name": namespace, "tools": [{"type": "function", "name": "look"}]}]
    translation = translate(target, tools, {"name": "look", "namespace": namespace})
    assert names(target, translation.call.body) == ([name], [name])
    assert translation.undo.names == {name: (namespace, "look")}
