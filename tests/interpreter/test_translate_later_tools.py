"""Tools that a Responses conversation declares later: unchanged in the same dialect, elsewhere among the other tools."""

import json

import pytest

from cases.through import answer, loss_pointers, translate_to
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adaptation import traits_for
from shelf import exchanges, needs_shelf

LOOKUP = {
    "type": "function",
    "name": "lookup",
    "description": "Look up a policy.",
    "parameters": {"type": "object", "properties": {"slug": {"type": "string"}}, "required": ["slug"]},
    "strict": False,
}
NOTE = {"type": "custom", "name": "note", "description": "Write a note."}
ITEM = {"id": "at_1", "type": "additional_tools", "role": "developer", "tools": [LOOKUP, NOTE]}
CALLED = [
    {"type": "function_call", "call_id": "c1", "name": "lookup", "arguments": '{"slug":"a"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "allowed"},
]
ASKED = {
    "model": "m",
    "input": [{"role": "user", "content": "go"}, ITEM, *CALLED],
    "tools": [{**LOOKUP, "name": "first"}],
}
TARGETS = [("chat", "gpt-5.1"), ("messages", "claude-opus-5"), ("gemini", "gemini-3-pro")]


def names(target, body):
    match target:
        case "gemini":
            return [tool["name"] for tool in body["tools"][0]["functionDeclarations"]]
        case "chat":
            return [tool[tool["type"]]["name"] for tool in body["tools"]]
        case _:
            return [tool["name"] for tool in body["tools"]]


@pytest.mark.parametrize(("target", "model"), TARGETS)
def test_tools_declared_later_follow_the_others(target, model):
    sent = translate_to("responses", target, ASKED, model=model)
    assert names(target, sent.body) == ["first", "lookup", "note"]
    assert "Look up a policy." in json.dumps(sent.body)


@pytest.mark.parametrize(("target", "model"), TARGETS)
def test_tools_declared_later_are_reported_as_declared_from_the_start_and_lose_nothing(target, model):
    sent = translate_to("responses", target, ASKED, model=model)
    assert "/input/1" in loss_pointers(sent, "approximated")
    assert loss_pointers(sent, "dropped") == set()


def test_a_free_form_tool_declared_later_is_restored_in_the_reply():
    sent = translate_to("responses", "messages", ASKED, model="claude-opus-5")
    call = {"type": "tool_use", "id": "toolu_1", "name": "note", "input": {"input": "Done."}}
    reply = {"id": "msg_1", "type": "message", "role": "assistant", "content": [call], "stop_reason": "tool_use"}
    (item,) = answer("messages", "responses", reply, sent).body["output"]
    assert (item["type"], item["input"]) == ("custom_tool_call", "Done.")


def test_a_tool_that_is_declared_already_is_not_declared_twice():
    body = {**ASKED, "tools": [LOOKUP]}
    assert names("messages", translate_to("responses", "messages", body, model="claude-opus-5").body) == [
        "lookup",
        "note",
    ]


def test_an_item_without_tools_declares_none():
    body = {**ASKED, "input": [{"role": "user", "content": "go"}, {"type": "additional_tools", "role": "developer"}]}
    assert names("messages", translate_to("responses", "messages", body, model="claude-opus-5").body) == ["first"]


@pytest.mark.parametrize(
    ("tools", "where"), [(5, "/input/0/tools"), ([{"type": "function", "name": 5}], "/input/0/tools/0/name")]
)
def test_tools_that_cannot_be_read_are_a_problem_with_their_place(tools, where):
    body = {"model": "m", "input": [{"type": "additional_tools", "role": "developer", "tools": tools}]}
    with pytest.raises(Problem) as caught:
        translate_to("responses", "messages", body, model="claude-opus-5")
    assert (caught.value.kind, caught.value.where) == ("invalid_request", where)


def test_in_the_same_dialect_the_item_is_unchanged():
    responses = dialect_named("responses")
    request = responses.parse_request(Call(json.dumps(ASKED).encode()))
    assert json.loads(responses.render_request(request, traits_for("responses", "gpt-5.6")).body) == ASKED
    assert [tool.name for tool in request.tools] == ["first"]


@needs_shelf
def test_recorded_conversations_that_declare_tools_reach_claude_with_all_of_them():
    recorded = [
        body
        for exchange in exchanges("responses")
        if isinstance(body := exchange["request"], dict)
        and any(isinstance(item, dict) and item.get("type") == "additional_tools" for item in body.get("input") or ())
    ]
    assert recorded
    for body in recorded:
        declared = {
            tool["name"] for item in body["input"] if item.get("type") == "additional_tools" for tool in item["tools"]
        }
        assert declared <= set(
            names("messages", translate_to("responses", "messages", body, model="claude-opus-5").body)
        )


def test_tools_declared_in_a_cached_prefix_are_declared_again():
    pad = {"role": "user", "content": "x" * 20_000}
    turn = [{"role": "assistant", "content": "done"}, {"role": "user", "content": "on"}]
    head = [pad, ITEM, *CALLED, *turn]
    first = translate_to("responses", "messages", {**ASKED, "input": head}, model="claude-opus-5")
    again = translate_to("responses", "messages", {**ASKED, "input": [*head, *turn]}, model="claude-opus-5")
    assert names("messages", first.body) == names("messages", again.body) == ["first", "lookup", "note"]
    assert loss_pointers(first, "dropped") == loss_pointers(again, "dropped") == set()
