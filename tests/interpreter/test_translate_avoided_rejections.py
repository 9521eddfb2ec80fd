"""Requests that a vendor would reject are adapted, and the changes are losses."""

import json

import pytest

from dragoman.dialects.record import Call
from dragoman.interpreter.errors import translate_error
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.signature_envelopes import ENVELOPE_MARKER
from dragoman.interpreter.translate import translate_request

ASK = {"role": "user", "content": "q"}
TOOL = {"type": "function", "function": {"name": "a"}}


def translate(body, source, target, model):
    translation = translate_request(
        Call(json.dumps(body).encode(), body.get("model", model)), source, target, model=model
    )
    return json.loads(translation.call.body), {loss.where: loss.kind for loss in translation.losses}


@pytest.mark.parametrize(
    ("limit", "effort", "thinking", "max_tokens"),
    [
        (2000, "high", {"type": "disabled"}, 2000),
        (4000, "high", {"type": "enabled", "budget_tokens": 2976}, 4000),
        (30_000, "high", {"type": "enabled", "budget_tokens": 24_576}, 30_000),
        (None, "xhigh", {"type": "enabled", "budget_tokens": 32_768}, 64_000),
        (1024, "low", {"type": "disabled"}, 1024),
    ],
)
def test_a_budget_for_thinking_stays_below_the_limit_of_the_answer(limit, effort, thinking, max_tokens):
    body = {"model": "x", "messages": [ASK], "reasoning_effort": effort}
    if limit is not None:
        body["max_completion_tokens"] = limit
    sent, losses = translate(body, "chat", "messages", "claude-sonnet-4-5")
    assert (sent["thinking"], sent["max_tokens"]) == (thinking, max_tokens)
    assert losses == {"/reasoning_effort": "approximated"}


def test_manual_thinking_excludes_a_forced_tool_and_sampling():
    body = {"model": "x", "messages": [ASK], "tools": [TOOL], "tool_choice": "required", "reasoning_effort": "low"}
    sent, losses = translate(body | {"temperature": 0.3, "top_p": 0.5}, "chat", "messages", "claude-sonnet-4-5")
    assert sent["tool_choice"] == {"type": "auto"}
    assert sent["system"] == "Call one of the tools."
    assert not {"temperature", "top_p"} & sent.keys()
    assert losses == {
        "/reasoning_effort": "approximated",
        "/temperature": "dropped",
        "/top_p": "dropped",
        "/tool_choice": "approximated",
    }


def test_manual_thinking_is_off_in_a_tool_loop_that_another_model_began():
    calls = [{"id": "c", "type": "function", "function": {"name": "a", "arguments": "{}"}}]
    history = [ASK, {"role": "assistant", "content": None, "tool_calls": calls}]
    history.append({"role": "tool", "tool_call_id": "c", "content": "1"})
    body = {"model": "x", "messages": history, "tools": [TOOL], "reasoning_effort": "low"}
    sent, losses = translate(body, "chat", "messages", "claude-sonnet-4-5")
    assert sent["thinking"] == {"type": "disabled"}
    assert losses["/reasoning_effort"] == "approximated"


def test_responses_gets_at_least_sixteen_tokens():
    sent, losses = translate({"model": "x", "max_tokens": 9, "messages": [ASK]}, "messages", "responses", "gpt-4.1")
    assert sent["max_output_tokens"] == 16
    assert losses == {"/max_tokens": "approximated"}


def test_a_free_form_call_is_answered_in_its_own_form():
    calls = [{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "x"}}]
    history = [ASK, {"role": "assistant", "tool_calls": calls}, {"role": "tool", "tool_call_id": "c", "content": "1"}]
    sent, _ = translate({"model": "x", "messages": history}, "chat", "responses", "gpt-5.2")
    assert [item.get("type") for item in sent["input"][1:]] == ["custom_tool_call", "custom_tool_call_output"]


def test_two_calls_of_one_id_in_one_turn_keep_their_own_results():
    calls = [{"id": "call_0", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in "ab"]
    results = [{"role": "tool", "tool_call_id": "call_0", "content": text} for text in "AB"]
    sent, _ = translate(
        {"messages": [ASK, {"role": "assistant", "tool_calls": calls}, *results]}, "chat", "gemini", "gemini-3"
    )
    answers = [part["functionResponse"] for part in sent["contents"][2]["parts"]]
    assert [(one["name"], one["response"]["output"]) for one in answers] == [("a", "A"), ("b", "B")]


@pytest.mark.parametrize(
    ("status", "word", "message", "code"),
    [
        (400, "INVALID_ARGUMENT", "The input token count (10) exceeds the maximum", "context_length_exceeded"),
        (429, "RESOURCE_EXHAUSTED", "slow down", "rate_limit_exceeded"),
        (401, "UNAUTHENTICATED", "who are you", "invalid_api_key"),
        (404, "NOT_FOUND", "no such model", "model_not_found"),
        (503, "UNAVAILABLE", "busy", "server_is_overloaded"),
    ],
)
def test_a_chat_client_reads_its_own_codes(status, word, message, code):
    body = json.dumps({"error": {"code": status, "status": word, "message": message}}).encode()
    error = translate_error(status, {}, body, "gemini", "chat")
    assert (error.status, json.loads(error.body)["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("status", "expected"), [(500, 502), (502, 502), (503, 503), (529, 503), (504, 504), (422, 422)]
)
def test_a_vague_error_is_known_by_its_status(status, expected):
    body = b'{"type":"error","error":{"type":"api_error","message":"m"}}'
    assert translate_error(status, {}, body, "messages", "chat").status == expected


def test_another_vendors_signature_never_reaches_the_native_one():
    reply = {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True},
                        {"functionCall": {"name": "a", "args": {}}, "thoughtSignature": "c2ln"},
                    ],
                },
                "finishReason": "STOP",
            }
        ]
    }
    written = json.loads(translate_response(json.dumps(reply).encode(), "gemini", "messages", Context()).body)
    result = {"type": "tool_result", "tool_use_id": written["content"][-1]["id"], "content": "1"}
    history = [ASK, {"role": "assistant", "content": written["content"]}, {"role": "user", "content": [result]}]
    body = {"model": "x", "max_tokens": 9, "messages": history}
    assert ENVELOPE_MARKER in json.dumps(body).encode()
    home, losses = translate(body, "messages", "messages", "claude-opus-5")
    assert [block["type"] for block in home["messages"][1]["content"]] == ["tool_use"]
    assert home["model"] == "claude-opus-5"
    assert set(losses.values()) == {"dropped"}
    back, _ = translate(body, "messages", "gemini", "gemini-3-flash")
    assert back["contents"][1]["parts"][-1]["thoughtSignature"] == "c2ln"


@pytest.mark.parametrize(
    ("written", "ends"), [("The answer is \n", "The answer is"), ("The answer is", "The answer is")]
)
def test_what_claude_is_given_to_go_on_with_does_not_end_in_white_space(written, ends):
    body = {"model": "x", "messages": [ASK, {"role": "assistant", "content": written}]}
    sent, losses = translate(body, "chat", "messages", "claude-haiku-4-5")
    assert sent["messages"][-1] == {"role": "assistant", "content": ends}
    assert losses == ({"/messages/1/content": "approximated"} if written != ends else {})


def test_claude_begins_an_answer_of_a_given_shape_itself():
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    shape = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    started = [ASK, {"role": "assistant", "content": "{"}]
    sent, losses = translate(
        {"model": "x", "messages": started, "response_format": shape}, "chat", "messages", "claude-haiku-4-5"
    )
    assert sent["messages"][-1] == {"role": "user", "content": "(continue)"}
    assert losses == {"/messages/1": "approximated"}
    sent, losses = translate({"model": "x", "messages": started}, "chat", "messages", "claude-haiku-4-5")
    assert (sent["messages"][-1], losses) == (started[-1], {})


@pytest.mark.parametrize(
    ("target", "model"), [("messages", "claude-opus-5"), ("gemini", "gemini-3.8-flash"), ("responses", "gpt-5.6")]
)
def test_a_tool_that_is_declared_twice_is_declared_once(target, model):
    again = {"type": "function", "function": {"name": "a", "description": "again"}}
    sent, losses = translate({"model": "x", "messages": [ASK], "tools": [TOOL, again]}, "chat", target, model)
    declared = sent["tools"][0]["functionDeclarations"] if target == "gemini" else sent["tools"]
    assert [tool["name"] for tool in declared] == ["a"]
    assert "again" not in json.dumps(sent)
    assert {where for where, kind in losses.items() if kind == "dropped"} == {"/tools/1"}
