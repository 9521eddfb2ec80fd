"""Token counts in each client's dialect, from each upstream's own counter."""

import httpx2
import pytest

from dragoman.config import KeyTable

TEXT = "How many tokens are these words?"
ASKED = {
    "messages": ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": TEXT}]}, "input_tokens"),
    "responses": ("/v1/responses/input_tokens", {"input": TEXT}, "input_tokens"),
    "gemini": (
        "/v1beta/models/MODEL:countTokens",
        {"contents": [{"role": "user", "parts": [{"text": TEXT}]}]},
        "totalTokens",
    ),
    "gemini, whole": (
        "/v1beta/models/MODEL:countTokens",
        {"generateContentRequest": {"model": "models/x", "contents": [{"role": "user", "parts": [{"text": TEXT}]}]}},
        "totalTokens",
    ),
}


def count(gateway, client, model):
    path, body, member = ASKED[client]
    named = body if "MODEL" in path else {**body, "model": model}
    reply = httpx2.post(gateway.base_url + path.replace("MODEL", model), json=named)
    assert reply.status_code == 200, reply.text
    return reply.json()[member], reply.headers.get("x-dragoman-estimate")


@pytest.mark.parametrize("model", ["gem", "claude", "resp", "vgem", "vclaude", "assist"])
@pytest.mark.parametrize("client", ASKED)
def test_tokens_are_counted_where_they_would_be_answered(gateway, client, model):
    tokens, estimated = count(gateway, client, model)
    assert 4 < tokens < 40
    assert estimated is None


@pytest.mark.parametrize("client", ASKED)
def test_an_estimated_count_is_marked_in_a_header(gateway, client):
    tokens, estimated = count(gateway, client, "gpt")
    assert tokens > 4
    assert estimated == "true"


def test_a_count_takes_a_turn_of_its_key_like_any_request(serve):
    key = {"x-api-key": "a-key"}
    gateway = serve(keys=(KeyTable(key="a-key", name="one", concurrency=1),))
    path, body, _ = ASKED["messages"]
    stalled = "anthropic/claude-opus-4-8~stall,after=4"
    asked = {"model": stalled, "max_tokens": 50, "stream": True, "messages": [{"role": "user", "content": TEXT}]}
    with httpx2.stream("POST", f"{gateway.base_url}/v1/messages", json=asked, headers=key) as stream:
        pieces = stream.iter_bytes()
        next(pieces)
        reply = httpx2.post(gateway.base_url + path, json={**body, "model": "claude"}, headers=key)
        assert (reply.status_code, reply.json()["error"]["type"]) == (429, "rate_limit_error")
    gateway.wait_for_records(2)
    assert httpx2.post(gateway.base_url + path, json={**body, "model": "claude"}, headers=key).status_code == 200
