"""What is remembered of the losses of plain replies changes nothing of what a client is told."""

import json
from typing import Any

import pytest

import shelf
from dragoman.core.problems import Problem
from dragoman.interpreter import response
from dragoman.interpreter.context import Context
from dragoman.interpreter.reply_plain import PlainReplies
from dragoman.interpreter.response import translate_response

CLIENTS = ("chat", "responses", "messages")
CONTEXT = Context(now=1)


@pytest.fixture
def plain(monkeypatch) -> PlainReplies:
    """An empty memory."""
    found = PlainReplies()
    monkeypatch.setattr(response, "PLAIN", found)
    return found


def reply(*parts: Any, usage: dict[str, Any] | None = None, **candidate: Any) -> bytes:
    """Gemini says this."""
    counts = {"promptTokenCount": 8, "candidatesTokenCount": 4, "totalTokenCount": 12, **(usage or {})}
    said = {"content": {"parts": list(parts), "role": "model"}, "finishReason": "STOP", "index": 0, **candidate}
    whole = {"candidates": [said], "usageMetadata": counts, "modelVersion": "m", "responseId": "r-1"}
    return json.dumps(whole, separators=(",", ":")).encode()


def details(count: int) -> dict[str, Any]:
    return {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": count}]}


TEXT = {"text": "hello"}
CALL = {"functionCall": {"name": "f", "args": {"a": 1}}}
SIGNED = {**CALL, "thoughtSignature": "c2ln"}
REPLIES = {
    "text": reply(TEXT),
    "counts": reply(TEXT, usage=details(8)),
    "other counts": reply(TEXT, usage=details(700)),
    "no counts": reply(TEXT, usage=details(0)),
    "tool use": reply(TEXT, usage={"toolUsePromptTokenCount": 3, "totalTokenCount": 15}),
    "an odd total": reply(TEXT, usage={"totalTokenCount": 99}),
    "ratings": reply(TEXT, CALL, CALL, safetyRatings=[{"category": "A", "probability": "LOW"}]),
    "other ratings": reply(TEXT, CALL, safetyRatings=[{"category": "A", "blocked": True}]),
    "logarithms": reply(TEXT, avgLogprobs=-0.25),
    "a word for the end": reply(TEXT, finishReason="MAX_TOKENS", finishMessage="too long"),
    "text behind a call": reply(CALL, TEXT),
    "a signed call": reply(TEXT, SIGNED),
    "an id": reply({"functionCall": {"id": "a.b", "name": "f", "args": {}}}),
    "one id twice": reply(*[{"functionCall": {"id": "a", "name": "f", "args": {}}}] * 2),
    "thoughts": reply({"text": "hm", "thought": True}, TEXT),
}


def told(body: bytes, client: str) -> Any:
    try:
        rendered = translate_response(body, "gemini", client, CONTEXT)
    except Problem as problem:
        return problem.kind, problem.message
    return rendered.body, rendered.losses, rendered.response


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_is_told_alike_whatever_came_before(plain, monkeypatch, name, client):
    new = told(REPLIES[name], client)
    for other in REPLIES.values():
        told(other, client)
    assert told(REPLIES[name], client) == new
    monkeypatch.setattr(response, "PLAIN", PlainReplies())
    assert told(REPLIES[name], client) == new


def test_what_is_lost_of_a_reply_is_worked_out_once_whatever_it_counts(plain):
    kept: list[Any] = []
    keep = plain.keep
    plain.keep = lambda shape, losses: (kept.append(losses), keep(shape, losses))
    first = told(reply(TEXT, usage=details(8)), "chat")
    again = told(reply(TEXT, CALL, usage={**details(900), "candidatesTokenCount": 7, "totalTokenCount": 15}), "chat")
    assert len(kept) == 2, "another end is another shape"
    more = told(reply(TEXT, usage={**details(31), "promptTokenCount": 31, "totalTokenCount": 35}), "chat")
    assert len(kept) == 2
    assert more[1] is first[1]
    assert {loss.where for loss in again[1]} == {loss.where for loss in first[1]}


@pytest.mark.parametrize("client", CLIENTS)
def test_every_recorded_reply_is_told_alike_with_memory_and_without(plain, monkeypatch, client):
    recorded = [
        json.dumps(row["response"]).encode()
        for row in shelf.exchanges("gemini")
        if row["op"] == "generate" and row["status"] == 200 and isinstance(row.get("response"), dict)
    ]
    if not recorded:
        pytest.skip("the shelf is not here")
    for body in recorded:
        told(body, client)
    known = [told(body, client) for body in recorded]
    for body, with_memory in zip(recorded, known, strict=True):
        monkeypatch.setattr(response, "PLAIN", PlainReplies())
        assert told(body, client) == with_memory
