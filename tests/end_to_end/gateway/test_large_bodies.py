"""A large body has the same reply as a small one, whole and as a stream, though another process translates it."""

import httpx2
import pytest

from dragoman.gateway import large_bodies
from dragoman.http.admission import ClientLimits

PATHS = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}]}),
    "responses": ("/v1/responses", {"input": "hello"}),
    "messages": ("/v1/messages", {"max_tokens": 99, "messages": [{"role": "user", "content": "hello"}]}),
}
TOOL = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}


@pytest.fixture
def gateway(serve, monkeypatch):
    """A gateway for which every body is large."""
    monkeypatch.setattr(large_bodies, "_MANY_SEPARATORS", 1)
    return serve()


@pytest.mark.parametrize("model", ["gem", "claude", "gpt", "resp"])
@pytest.mark.parametrize("client", PATHS)
def test_large_bodies_get_replies_in_every_pair(gateway, client, model):
    path, body = PATHS[client]
    whole = httpx2.post(gateway.base_url + path, json={"model": model, **body}, timeout=60)
    assert (whole.status_code, "hello" in whole.text) == (200, True)
    streamed = httpx2.post(gateway.base_url + path, json={"model": model, "stream": True, **body}, timeout=60)
    assert (streamed.status_code, "hello" in streamed.text) == (200, True)
    assert streamed.headers["content-type"].startswith("text/event-stream")


def test_a_large_body_is_counted_and_its_errors_are_in_the_clients_dialect(gateway):
    body = {"model": "claude", "messages": [{"role": "user", "content": "hello"}]}
    counted = httpx2.post(f"{gateway.base_url}/v1/messages/count_tokens", json=body, timeout=60)
    assert counted.json()["input_tokens"] > 0
    twice = httpx2.post(f"{gateway.base_url}/v1/messages", content=b'{"model":"gem","model":"gem"}', timeout=60)
    assert (twice.status_code, twice.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "duplicate key" in twice.json()["error"]["message"]
    tools = [{"type": "function", "function": {**TOOL, "parameters": 1}}]
    wrong = {"model": "gem", **PATHS["chat"][1], "tools": tools}
    reply = httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=wrong, timeout=60)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid_tool")


def test_bodies_with_many_members_are_rejected(serve):
    gateway = serve(limits=ClientLimits(separators=50_000))
    body = {"model": "gem", **{f"k{at}": at for at in range(10_000)}}
    reply = httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=body)
    assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "10000 members" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([{**TOOL, "name": f"f{at}"} for at in range(10_001)], "10001 tools; the limit is 10000"),
        (
            [{**TOOL, "parameters": {"type": "object", "properties": {f"p{at}": {} for at in range(100_000)}}}],
            "objects; the limit is 100000",
        ),
    ],
)
def test_more_tools_and_schemas_than_any_model_takes_are_rejected(serve, tools, message):
    gateway = serve()
    functions = [{"type": "function", "function": tool} for tool in tools]
    body = {"model": "gem", **PATHS["chat"][1], "tools": functions}
    reply = httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=body, timeout=60)
    assert (reply.status_code, message in reply.json()["error"]["message"]) == (400, True), reply.text[:300]


def test_too_many_items_for_a_stored_conversation_are_rejected_with_what_to_do(serve):
    gateway = serve()
    items = [{"role": "user", "content": "hello"}] * 10_001
    body = {"model": "resp", "input": items, "metadata": {"k": "," * 200_000}}
    reply = httpx2.post(f"{gateway.base_url}/v1/responses", json=body, timeout=60)
    assert reply.status_code == 400
    assert reply.json()["error"]["message"] == (
        '10001 items cannot be stored in one request; the limit is 10000 (set "store" to false)'
    )
