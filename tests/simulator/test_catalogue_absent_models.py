"""The same model names do not exist at every vendor; each vendor has its own error."""

import json

import httpx2
import pytest

from dragoman.simulator.apis.rule import is_absent

KEYS = {"authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01"}
SAID = [{"role": "user", "content": "Hello"}]
ABSENT = ("no-such-model", "there-is-no-such-model", "non-existent-model", "nonexistent-model", "does-not-exist")


def ask(simulator, api, model):
    match api:
        case "chat":
            path, body = "/v1/chat/completions", {"model": model, "messages": SAID}
        case "responses":
            path, body = "/v1/responses", {"model": model, "input": "Hello"}
        case "messages":
            path, body = "/v1/messages", {"model": model, "max_tokens": 99, "messages": SAID}
        case _:
            body = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
            path = f"/v1beta/models/{model}:generateContent"
    return httpx2.post(simulator.base_url + path, content=json.dumps(body).encode(), headers=KEYS, timeout=10)


@pytest.mark.parametrize(("api", "status"), [("chat", 404), ("responses", 400), ("messages", 404), ("gemini", 404)])
@pytest.mark.parametrize("model", ABSENT)
def test_a_model_that_does_not_exist_does_not_exist_anywhere(simulator, api, status, model):
    reply = ask(simulator, api, model)
    assert reply.status_code == status
    assert model in reply.json()["error"]["message"]


@pytest.mark.parametrize("api", ["chat", "responses", "messages", "gemini"])
def test_an_unknown_model_is_answered(simulator, api):
    assert not is_absent("brand-new-model")
    assert ask(simulator, api, "brand-new-model").status_code == 200
