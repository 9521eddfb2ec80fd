"""The loss pointers of a reply are computed without its document, and equal those found in the document."""

import json
from typing import Any

import pytest
from msgspec import structs

import shelf
from dragoman.core.problems import Problem
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.loss_report import list_leaves
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.undo import Undo

CONTEXT = Context(now=1)
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


def outcomes(body: bytes, source: str) -> list[Any]:
    """Return the reply and losses for every other client."""
    result: list[Any] = []
    for client in DIALECTS:
        try:
            rendered = translate_response(body, source, client, CONTEXT)
        except Problem as problem:
            result.append((problem.kind, problem.message))
        else:
            result.append((rendered.body, rendered.losses, rendered.response))
    return result


def look_up(body: bytes, source: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The same, of a reply that does not say that its pointers are exact."""
    source_dialect = DIALECTS[source]
    with monkeypatch.context() as patched:
        respelled = structs.replace(
            source_dialect,
            parse_response=lambda body: structs.replace(source_dialect.parse_response(body), spelling="other"),
        )
        patched.setitem(DIALECTS, source, respelled)
        return outcomes(body, source)


def gemini(*parts: Any, usage: dict[str, Any] | None = None, **candidate: Any) -> bytes:
    counts = {"promptTokenCount": 8, "candidatesTokenCount": 4, "totalTokenCount": 12, **(usage or {})}
    written = {"content": {"parts": list(parts), "role": "model"}, "finishReason": "STOP", "index": 0, **candidate}
    whole = {"candidates": [written], "usageMetadata": counts, "modelVersion": "m", "responseId": "r-1"}
    return json.dumps(whole, separators=(",", ":")).encode()


TEXT = {"text": "hello"}
CALL = {"functionCall": {"name": "f", "args": {"a": 1}}}


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(REPLY, ensure_ascii=False).encode(),
        gemini(TEXT),
        gemini(TEXT, usage={"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 8}]}),
        gemini(TEXT, usage={"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 0}]}),
        gemini(TEXT, usage={"toolUsePromptTokenCount": 3, "totalTokenCount": 15}),
        gemini(TEXT, usage={"totalTokenCount": 99}),
        gemini(TEXT, CALL, CALL, safetyRatings=[{"category": "A", "probability": "LOW"}]),
        gemini(TEXT, CALL, safetyRatings=[{"category": "A", "blocked": True}]),
        gemini(TEXT, avgLogprobs=-0.25),
        gemini(TEXT, finishReason="MAX_TOKENS", finishMessage="too long"),
        gemini(CALL, TEXT),
        gemini(TEXT, {**CALL, "thoughtSignature": "c2ln"}),
        gemini({"functionCall": {"id": "a.b", "name": "f", "args": {}}}),
        gemini(*[{"functionCall": {"id": "a", "name": "f", "args": {}}}] * 2),
        gemini({"text": "hm", "thought": True}, TEXT),
    ],
)
def test_every_field_of_a_reply_is_reported_at_its_pointer(body, monkeypatch):
    assert outcomes(body, "gemini") == look_up(body, "gemini", monkeypatch)


def test_names_are_escaped_in_pointers():
    body = json.dumps(REPLY).encode()
    losses = translate_response(body, "gemini", "chat", CONTEXT).losses
    assert ("/candidates/0/safetyRatings", 5) in {(loss.where, loss.leaves) for loss in losses}
    assert "/candidates/0/safetyRatings/0/a~1b~0c/deep/1" in {loss.where for loss in list_leaves(losses, body)}


@pytest.mark.parametrize("id_of_reply", ["", "r"])
def test_losses_of_a_reply_in_snake_case_have_its_own_pointers(id_of_reply):
    snake = json.loads(json.dumps(REPLY).replace("safetyRatings", "safety_ratings"))
    body = json.dumps({**snake, "responseId": id_of_reply}).encode()
    losses = translate_response(body, "gemini", "chat", CONTEXT).losses
    assert "/candidates/0/safety_ratings" in {loss.where for loss in losses}
    assert "/candidates/0/safety_ratings/0/category" in {loss.where for loss in list_leaves(losses, body)}


def test_the_first_reason_that_a_field_is_lost_for_stays():
    body = gemini({"functionCall": {"name": "f", "args": {}, "unheard": 1}})
    context = Context(now=1, undo=Undo(names={"f": ("n", "g")}))
    losses = {loss.where: loss.what for loss in translate_response(body, "gemini", "chat", context).losses}
    assert losses["/candidates/0/content/parts/0/functionCall/unheard"] == "not known to the client's dialect"
    assert losses["/candidates/0/content/parts/0"] == "the client's dialect has no namespaces"


@shelf.needs_shelf
@pytest.mark.parametrize("source", sorted(DIALECTS))
def test_every_recorded_reply_loses_the_same(source, monkeypatch):
    rows = [row for row in shelf.exchanges(source) if row["status"] == 200 and isinstance(row.get("response"), dict)]
    assert rows
    for row in rows:
        body = json.dumps(row["response"]).encode()
        assert outcomes(body, source) == look_up(body, source, monkeypatch), row["id"]
