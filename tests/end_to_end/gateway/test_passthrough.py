"""The same dialect on both sides means the same bytes; necessary changes are listed in headers."""

import asyncio
import time

import httpx2
import pytest

from dragoman.config import UpstreamTable
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen
from oracles.clients import genai

PLAIN = b'{ "model" : "MODEL",\n "messages":[{"role":"user","content":"caf\\u00e9 \xc3\xa9"}], "max_completion_tokens" : 100 }'


def test_a_request_in_the_upstreams_dialect_is_passed_on_byte_for_byte(gateway):
    body = PLAIN.replace(b"MODEL", b"openai/gpt-5.2")
    reply = httpx2.post(f"{gateway.base_url}/v1/chat/completions", content=body)
    assert reply.status_code == 200
    assert gateway.simulator.requests[-1].body == PLAIN.replace(b"MODEL", b"gpt-5.2")


WHOLE = (
    b'{ "id":"c", "object" : "chat.completion","model":"m","created":1,"x_new":{"a":1.0},"choices":[\n{"index":0,'
    b'"message":{"role":"assistant","content":"caf\\u00e9"},"finish_reason":"stop"}]}\n'
)
STREAM = (
    b': a comment\r\n\r\ndata:{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"hi"},"new":1.0}]}\n\n'
    b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


@pytest.mark.parametrize(("streamed", "output"), [(False, WHOLE), (True, STREAM)], ids=["whole", "streamed"])
def test_a_reply_in_the_clients_dialect_is_passed_on_byte_for_byte(serve, streamed, output):
    async def upstream(exchange: Exchange) -> None:
        await exchange.send(200, {"content-type": "text/event-stream" if streamed else "application/json"}, output)

    async def steps() -> bytes:
        async with listen(upstream, grace=0.1) as server:
            host, port = server.address
            gateway = serve(upstreams={"mine": UpstreamTable(kind="openai", base_url=f"http://{host}:{port}/v1")})
            body = {"model": "mine/m", "stream": streamed, "messages": [{"role": "user", "content": "x"}]}
            async with httpx2.AsyncClient() as client:
                return (await client.post(f"{gateway.base_url}/v1/chat/completions", json=body)).content

    assert asyncio.run(steps()) == output


def test_losses_are_counted_and_listed_in_a_header_and_rejected_in_strict_mode(gateway):
    asked = {"model": "gem", "messages": [{"role": "user", "content": "hello"}], "logit_bias": {"1": 1}}
    reply = httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=asked)
    assert reply.status_code == 200
    assert "dropped /logit_bias" in reply.headers["x-dragoman-losses"]
    assert reply.headers["x-dragoman-upstream"] == "gemini"
    before = len(gateway.simulator.requests)
    strict = {"x-dragoman-strict": "true"}
    refused = httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=asked, headers=strict)
    assert refused.status_code == 400
    assert "/logit_bias" in refused.text
    assert len(gateway.simulator.requests) == before


def test_a_gemini_client_without_alt_sse_gets_one_array(gateway):
    asked = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
    for model in ("gem", "claude", "gpt", "resp"):
        url = f"{gateway.base_url}/v1beta/models/{model}:streamGenerateContent"
        reply = httpx2.post(url, json=asked)
        assert reply.headers["content-type"].startswith("application/json")
        chunks = reply.json()
        text = "".join(part.get("text", "") for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"])
        assert "simulator" in text
        assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"


def test_a_reply_without_a_time_gets_the_current_one(gateway):
    asked = {"model": "gem", "messages": [{"role": "user", "content": "hello"}]}
    reply = httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=asked).json()
    assert abs(reply["created"] - time.time()) < 100


def test_headers_that_choose_behaviour_reach_an_upstream_of_the_same_dialect_and_keys_do_not(gateway):
    asked = {"model": "claude", "max_tokens": 10, "messages": [{"role": "user", "content": "hello"}]}
    headers = {"anthropic-version": "2026-10-21", "x-api-key": "mine", "cookie": "mine"}
    httpx2.post(f"{gateway.base_url}/v1/messages", json=asked, headers=headers)
    seen = gateway.simulator.requests[-1]
    assert dict(seen.headers)["anthropic-version"] == "2026-10-21"
    assert dict(seen.headers)["user-agent"].startswith("dragoman/")
    assert "mine" not in str(seen.headers)


def test_an_empty_gemini_reply_reaches_a_gemini_client_unchanged(gateway):
    client = gateway.open(genai.Client(api_key="k", http_options={"base_url": gateway.base_url}))
    reply = client.models.generate_content(model="gemini/gemini-3.8-flash~no-candidates", contents="Hello")
    assert not reply.candidates
    assert reply.usage_metadata.prompt_token_count
