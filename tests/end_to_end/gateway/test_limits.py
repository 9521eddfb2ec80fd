"""Bodies that are too large, too deep or compressed get a cheap response in the client's dialect, and affect no others."""

import gzip
import json

import anthropic
import httpx2
import openai
import pytest

from cpu_limit import cpu_limit
from dragoman.http.connection import ClientLimits

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/MODEL:generateContent",
    "assist": "/v1internal:generateContent",
}
DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("model", ["gem", "claude", "gpt", "resp"])
@pytest.mark.parametrize("member", ["messages", "input", "contents", "request", "metadata", "unknown"])
@pytest.mark.parametrize("client", PATHS)
def test_a_body_nested_without_end_is_a_bad_request_and_costs_little(gateway, client, member, model):
    body = b'{"model":"%s","max_tokens":1,"%s":%s}' % (model.encode(), member.encode(), DEEP)
    with cpu_limit():
        reply = httpx2.post(gateway.base_url + PATHS[client].replace("MODEL", model), content=body)
    assert reply.status_code == 400, reply.text[:200]
    assert "error" in reply.json()


@pytest.mark.parametrize("client", PATHS)
def test_a_body_that_is_too_large_is_refused_in_the_clients_dialect(serve, client):
    gateway = serve(limits=ClientLimits(body=1000))
    reply = httpx2.post(gateway.base_url + PATHS[client].replace("MODEL", "gem"), content=b" " * 5000)
    assert reply.status_code == 413
    error = reply.json()["error"]
    assert "too large" in error["message"]
    assert error.get("type") in {"invalid_request_error", "request_too_large", None}
    assert reply.headers["x-dragoman-exchange"]


def test_the_sdks_know_what_too_large_is(serve):
    gateway = serve(limits=ClientLimits(body=1000))
    messages = [{"role": "user", "content": "word " * 1000}]
    claude = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="any", max_retries=0))
    with pytest.raises(anthropic.RequestTooLargeError) as error:
        claude.messages.create(model="gem", max_tokens=10, messages=messages)
    assert error.value.request_id
    chat = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="any", max_retries=0))
    with pytest.raises(openai.APIStatusError) as error:
        chat.chat.completions.create(model="gem", messages=messages)
    assert error.value.status_code == 413


@pytest.mark.parametrize("model", ["gem", "gpt"])
def test_a_compressed_request_is_answered_and_forwarded_uncompressed(gateway, model):
    asked = json.dumps({"model": model, "messages": [{"role": "user", "content": "hello there"}]}).encode()
    packed = {"content-encoding": "gzip", "content-type": "application/json"}
    url = gateway.base_url + PATHS["chat"]
    assert httpx2.post(url, content=gzip.compress(asked), headers=packed).status_code == 200
    assert b"hello there" in gateway.simulator.requests[-1].body
    refused = httpx2.post(url, content=b"x", headers={**packed, "content-encoding": "zstd"})
    assert refused.status_code == 415
    assert "gzip" in refused.json()["error"]["message"]
