"""What a plain reply loses is told without looking it up, and is what looking it up would tell."""

import json

import pytest
from msgspec import structs

import shelf
from dialects.gemini.recordings import replies
from dragoman.core.problems import Problem
from dragoman.dialects.chat import DIALECT as CHAT
from dragoman.dialects.chat.response import read_any
from dragoman.dialects.gemini.plain_reply import read_plain
from dragoman.dialects.record import no_plain_reply
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.response import translate_response

CLIENTS = ("chat", "responses", "messages")
REPLY = {
    "candidates": [
        {
            "content": {"parts": [{"text": "é"}, {"functionCall": {"name": "f", "args": {"a": 1}}}], "role": "model"},
            "finishReason": "STOP",
            "avgLogprobs": -0.5,
            "safetyRatings": [{"category": "A", "a/b~c": {"deep": [1, {}, []]}}, {}],
            "finishMessage": "done",
        }
    ],
    "createTime": "2026-01-01T00:00:00Z",
    "usageMetadata": {
        "promptTokenCount": 3,
        "toolUsePromptTokenCount": 2,
        "totalTokenCount": 99,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 3}, {"modality": "", "tokenCount": 0}],
        "trafficType": "ON_DEMAND",
    },
    "responseId": "r",
}


def outcome(body, client):
    try:
        rendered = translate_response(body, "gemini", client)
    except Problem as problem:
        return problem.kind, problem.message
    return rendered.body, rendered.losses


def assert_told_alike(body, monkeypatch):
    at_once = [outcome(body, client) for client in CLIENTS]
    with monkeypatch.context() as patched:
        patched.setitem(DIALECTS, "gemini", structs.replace(DIALECTS["gemini"], read_plain=no_plain_reply))
        assert at_once == [outcome(body, client) for client in CLIENTS]


def test_every_field_of_a_plain_reply_is_told_where_it_stands(monkeypatch):
    body = json.dumps(REPLY, ensure_ascii=False).encode()
    assert read_plain(body) is not None
    _, losses = outcome(body, "chat")
    assert "/candidates/0/safetyRatings/0/a~1b~0c/deep/1" in {loss.where for loss in losses}
    assert_told_alike(body, monkeypatch)


@pytest.mark.parametrize("id_of_reply", ["", "r"])
def test_a_reply_that_is_not_plain_is_looked_up(monkeypatch, id_of_reply):
    snake = json.loads(json.dumps(REPLY).replace("safetyRatings", "safety_ratings"))
    body = json.dumps({**snake, "responseId": id_of_reply}).encode()
    assert read_plain(body) is None
    assert_told_alike(body, monkeypatch)


CHAT_CLIENTS = ("responses", "messages", "gemini")


def chat_outcomes(body):
    told = []
    for client in CHAT_CLIENTS:
        try:
            rendered = translate_response(body, "chat", client)
        except Problem as problem:
            told.append((problem.kind, problem.message))
        else:
            told.append((rendered.body, rendered.losses, rendered.response))
    return told


@shelf.needs_shelf
def test_every_recorded_reply_of_chat_is_told_alike_whether_it_is_read_straight_or_not(monkeypatch):
    straight = {row["id"]: chat_outcomes(json.dumps(row["response"]).encode()) for row in whole_chat_replies()}
    assert straight
    monkeypatch.setitem(DIALECTS, "chat", structs.replace(CHAT, read_plain=no_plain_reply, parse_response=read_any))
    for row in whole_chat_replies():
        assert chat_outcomes(json.dumps(row["response"]).encode()) == straight[row["id"]], row["id"]


def whole_chat_replies():
    return [row for row in shelf.exchanges("chat") if row["status"] == 200 and isinstance(row.get("response"), dict)]


@shelf.needs_shelf
def test_every_recorded_reply_loses_the_same(monkeypatch):
    bodies = [body for _, body in replies()]
    assert bodies
    for body in bodies:
        assert_told_alike(body, monkeypatch)
