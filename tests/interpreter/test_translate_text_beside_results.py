"""User text next to tool results is sent after them, and for newer Gemini in a separate content."""

import json

import pytest

from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request
from dragoman.simulator.apis.api import AcceptedRequest
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.gemini import API
from dragoman.simulator.apis.rule import CheckContext
from interpreter.workbench import encode

NEWER = ["gemini-3.6-flash", "gemini-3.8-flash", "gemini-3.8-pro", "gemini-4", "gemini-3.5-flash-lite"]
OLDER = ["gemini-3.5-flash", "gemini-3-pro", "gemini-2.5-pro"]


def use(call_id):
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def result(call_id, content="ok"):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def build_body(*last):
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use("a"), use("b")]},
        {"role": "user", "content": list(last)},
    ]
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    return {"model": "m", "max_tokens": 64, "messages": messages, "tools": tools}


def translate(model, *last):
    translation = translate_request(Call(encode(build_body(*last))), "messages", "gemini", model=model)
    return json.loads(translation.call.body)["contents"][2:], translation.losses


WORDS = {"type": "text", "text": "and now?"}


@pytest.mark.parametrize("model", NEWER)
def test_newer_models_get_the_text_in_a_separate_content(model):
    results, words = translate(model, result("a"), WORDS, result("b"))[0]
    assert [list(part) for part in results["parts"]] == [["functionResponse"]] * 2
    assert words == {"role": "user", "parts": [{"text": "and now?"}]}
    assert results["role"] == "user"


@pytest.mark.parametrize("model", OLDER)
def test_older_models_get_the_text_in_the_content_of_the_results(model):
    (only,) = translate(model, result("a"), result("b"), WORDS)[0]
    assert [next(iter(part)) for part in only["parts"]] == ["functionResponse", "functionResponse", "text"]


def test_nothing_is_reported_if_only_the_content_changes():
    _, losses = translate("gemini-3.8-flash", result("a"), result("b"), WORDS)
    assert not [loss for loss in losses if loss.where.startswith("/messages/2")]


@pytest.mark.parametrize("model", NEWER)
def test_results_alone_stay_one_content(model):
    (only,) = translate(model, result("a"), result("b"))[0]
    assert len(only["parts"]) == 2


def test_media_that_a_result_cannot_hold_follow_it_in_that_content():
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": "a", "content": "ok"},
            {"role": "user", "content": [sound]},
        ],
    }
    body["messages"][1]["tool_calls"][0]["function"]["arguments"] = "{}"
    call = translate_request(Call(encode(body)), "chat", "gemini", model="gemini-3.8-flash").call
    results, media = json.loads(call.body)["contents"][2:]
    assert [list(part) for part in results["parts"]] == [["functionResponse"]]
    assert [list(part) for part in media["parts"]] == [["inlineData"]]


@pytest.mark.parametrize("model", NEWER)
def test_the_strict_simulator_accepts_it(model):
    call = translate_request(
        Call(encode(build_body(result("a"), result("b"), WORDS))), "messages", "gemini", model=model
    ).call
    assert isinstance(API.accept(call.body, CheckContext(model=model), TokenSigner("key")), AcceptedRequest)
