"""Tool choices that some targets cannot express: parallel off, and fields next to "none"."""

import json

import pytest

from cases.through import answer, flow, loss_pointers, translate_to

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("red", "green")
]
ASKED = {"model": "m", "messages": [{"role": "user", "content": "go"}], "tools": TOOLS}
PARTS = [
    {"text": "Both."},
    {"functionCall": {"id": "a", "name": "red", "args": {"n": 1}}, "thoughtSignature": "U0lH"},
    {"functionCall": {"id": "b", "name": "green", "args": {"n": 2}}},
]


def one_at_a_time():
    return translate_to("chat", "gemini", {**ASKED, "parallel_tool_calls": False}, model="gemini-3-pro")


def reply(parts):
    return {"responseId": "r", "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}


def test_parallel_off_is_requested_from_gemini_as_text_and_is_a_loss():
    request = one_at_a_time()
    assert request.body["systemInstruction"] == {"parts": [{"text": "Call at most one tool at a time."}]}
    assert loss_pointers(request, "approximated") == {"/parallel_tool_calls"}


def test_a_client_with_parallel_off_gets_only_the_first_call():
    output = answer("gemini", "chat", reply(PARTS), one_at_a_time())
    choice = output.body["choices"][0]
    assert [call["id"] for call in choice["message"]["tool_calls"]] == ["a"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Both.", "tool_calls")
    lost = [(loss.where, loss.leaves) for loss in output.losses if loss.kind == "dropped"]
    assert lost == [("/candidates/0/content/parts/2", 3)]


def test_a_client_with_parallel_off_gets_only_the_first_call_of_a_stream():
    frames = [
        {"responseId": "r", "candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in PARTS
    ] + [{"responseId": "r", "candidates": [{"content": {"parts": [{"text": " Done."}]}, "finishReason": "STOP"}]}]
    output = flow("gemini", "chat", frames, one_at_a_time())
    deltas = [frame["choices"][0]["delta"] for frame in output.body[:-1] if frame["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert {call["index"] for call in calls} == {0}
    assert "".join(call["function"].get("arguments", "") for call in calls) == '{"n": 1}'
    assert "".join(delta.get("content") or "" for delta in deltas) == "Both. Done."
    lost = [(loss.where, loss.leaves) for loss in output.losses if loss.kind == "dropped"]
    assert lost == [("/candidates/0/content/parts/2", 3)]


def test_a_client_without_parallel_off_gets_all_calls():
    output = answer("gemini", "chat", reply(PARTS), translate_to("chat", "gemini", ASKED, model="gemini-3-pro"))
    assert [call["id"] for call in output.body["choices"][0]["message"]["tool_calls"]] == ["a", "b"]


@pytest.mark.parametrize(("target", "model"), [("messages", "claude-opus-5"), ("gemini", "gemini-3-pro")])
def test_parallel_off_is_implied_where_no_call_is_allowed(target, model):
    request = translate_to("chat", target, {**ASKED, "tool_choice": "none", "parallel_tool_calls": False}, model=model)
    assert loss_pointers(request) == set()
    assert "at most one" not in json.dumps(request.body)
    output = answer("gemini", "chat", reply(PARTS), request)
    assert len(output.body["choices"][0]["message"]["tool_calls"]) == 2


def test_openais_parallel_field_is_sent_with_choice_none():
    request = translate_to(
        "chat", "responses", {**ASKED, "tool_choice": "none", "parallel_tool_calls": False}, model="gpt-5.6"
    )
    assert (request.body["tool_choice"], request.body["parallel_tool_calls"]) == ("none", False)
    assert not request.losses


@pytest.mark.parametrize(
    ("target", "model"),
    [("chat", "gpt-4.1"), ("chat", "qwen"), ("responses", "gpt-5.6"), ("messages", "claude-opus-5")],
)
def test_tool_names_with_choice_none_are_losses_and_all_tools_stay(target, model):
    body = {
        "contents": [{"role": "user", "parts": [{"text": "go"}]}],
        "tools": [{"functionDeclarations": [{"name": "red"}, {"name": "green"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "NONE", "allowedFunctionNames": ["red"]}},
    }
    request = translate_to("gemini", target, body, model=model)
    assert len(request.body["tools"]) == 2
    assert request.body["tool_choice"] in ("none", {"type": "none"})
    assert loss_pointers(request) == {"/toolConfig/functionCallingConfig/allowedFunctionNames"}


def test_every_reason_for_changing_a_call_is_reported():
    call = {"id": "c", "type": "function", "function": {"name": "red", "arguments": "{}"}}
    body = {**ASKED, "messages": [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [call]}]}
    request = translate_to("chat", "gemini", body, model="gemini-3-pro")
    (loss,) = [loss for loss in request.losses if loss.where == "/messages/1/tool_calls/0"]
    assert "has no result" in loss.what
    assert "placeholder" in loss.what
