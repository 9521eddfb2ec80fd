"""`POST /v1/translate` translates documents for gateways in other languages; it is off by default."""

import json

import httpx2
import pytest

from dragoman.config import KeyTable
from dragoman.server.endpoints import translation

KEY = KeyTable(key="secret-" + "x" * 40, name="one", concurrency=1)
CHAT = {
    "model": "gpt-5.2",
    "seed": 7,
    "messages": [{"role": "user", "content": "Weather?"}],
    "tools": [{"type": "function", "function": {"name": "get.weather", "parameters": {"type": "object"}}}],
}
JOB = {"op": "request", "from": "chat", "to": "messages", "model": "claude-opus-4-8", "body": CHAT}


@pytest.fixture
def post(serve):
    gateway = serve(translate=True)

    def send(body, **headers):
        return httpx2.post(f"{gateway.base_url}/v1/translate", content=json.dumps(body), headers=headers)

    send.gateway = gateway
    return send


def test_it_is_off_by_default(gateway):
    for method in ("GET", "POST"):
        assert httpx2.request(method, f"{gateway.base_url}/v1/translate", content=json.dumps(JOB)).status_code == 404


def test_a_request_and_its_reply_are_translated_without_an_upstream(post):
    asked = post(JOB)
    assert asked.status_code == 200
    translated = asked.json()
    assert (translated["result"]["messages"], translated["model"]) == (CHAT["messages"], "claude-opus-4-8")
    assert [(loss["where"], loss["kind"]) for loss in translated["losses"]] == [("/seed", "dropped")]
    assert "/seed" in asked.headers["x-dragoman-losses"]
    name = translated["result"]["tools"][0]["name"]
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 9, "output_tokens": 5},
    }
    back = post({"op": "response", "from": "messages", "to": "chat", "body": reply, "request": CHAT}).json()
    (call,) = back["result"]["choices"][0]["message"]["tool_calls"]
    assert (call["id"], call["function"]["name"]) == ("toolu_1", "get.weather")
    assert not post.gateway.simulator.requests


def test_streams_errors_and_neutral_values_are_translated(post):
    sse = 'data: {"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}\n\n'
    stream = post({"op": "stream", "from": "gemini", "to": "chat", "sse": sse}).json()
    assert stream["sse"].endswith("data: [DONE]\n\n")
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    error = post({"op": "error", "from": "messages", "to": "gemini", "status": 529, "body": busy}).json()
    assert (error["status"], error["result"]["error"]["status"]) == (503, "UNAVAILABLE")
    core = post({"op": "request", "from": "chat", "to": "core", "body": CHAT}).json()
    assert core["result"]["tools"][0]["name"] == "get.weather"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"op": "guess"}, "unknown op 'guess'"),
        ({"to": "klingon"}, "unknown to 'klingon'"),
        ({"body": {"model": "m", "messages": 7}}, "messages"),
        ({"strict": "all"}, "seed"),
        ({"from": None}, "Expected `str`, got `null`"),
        ({"op": "response", "from": "messages", "to": "chat", "body": {"type": "message"}}, "malformed_reply"),
    ],
)
def test_what_cannot_be_translated_is_a_400_that_says_why(changes, words, post):
    answer = post({**JOB, **changes})
    assert answer.status_code == 400
    assert words in answer.text


def test_a_body_that_is_no_object_or_has_a_key_twice_is_a_400(post):
    url = f"{post.gateway.base_url}/v1/translate"
    for body in (b"", b"[]", b"{", b'{"op": "request", "op": "stream"}'):
        assert httpx2.post(url, content=body).status_code == 400


def test_the_header_makes_it_strict(post):
    assert post(JOB, **{"x-dragoman-strict": "all"}).status_code == 400
    assert post(JOB, **{"x-dragoman-strict": "maybe"}).status_code == 400


def test_a_large_document_is_translated_in_another_process(post, monkeypatch):
    def not_here(*_):
        raise AssertionError("translated in the process of the server")

    monkeypatch.setattr(translation, "translate_object", not_here)
    assert post(JOB).status_code == 500
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi"}] * 27_000
    large = {**CHAT, "messages": [*turns, *CHAT["messages"]]}
    answer = post({**JOB, "body": large})
    assert len(answer.json()["result"]["messages"]) == len(large["messages"])


def test_it_needs_a_key_where_keys_are_configured(serve):
    gateway = serve(translate=True, keys=(KEY,))
    url = f"{gateway.base_url}/v1/translate"
    assert httpx2.post(url, content=json.dumps(JOB)).status_code == 401
    allowed = httpx2.post(url, content=json.dumps(JOB), headers={"authorization": f"Bearer {KEY.key}"})
    assert allowed.status_code == 200
