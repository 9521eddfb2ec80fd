"""How many tokens a request has, in each client's words, from each upstream's own counter."""

import httpx2
import pytest

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


def counted(gateway, client, model):
    path, body, member = ASKED[client]
    named = body if "MODEL" in path else {**body, "model": model}
    told = httpx2.post(gateway.base_url + path.replace("MODEL", model), json=named)
    assert told.status_code == 200, told.text
    return told.json()[member], told.headers.get("x-dragoman-estimate")


@pytest.mark.parametrize("model", ["gem", "claude", "resp", "vgem", "vclaude", "assist"])
@pytest.mark.parametrize("client", ASKED)
def test_tokens_are_counted_where_they_would_be_answered(gateway, client, model):
    tokens, estimated = counted(gateway, client, model)
    assert 4 < tokens < 40
    assert estimated is None


@pytest.mark.parametrize("client", ASKED)
def test_an_estimate_says_that_it_is_one(gateway, client):
    tokens, estimated = counted(gateway, client, "gpt")
    assert tokens > 4
    assert estimated == "true"
