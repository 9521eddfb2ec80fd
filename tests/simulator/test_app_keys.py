"""Replies to clients that try a WebSocket, or that request stored objects with a wrong key."""

import httpx2
import pytest

from dragoman.simulator import Answer

SOCKET = {
    "authorization": "Bearer k",
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "openai-beta": "responses_websockets=2026-02-06",
}


def test_a_websocket_client_is_directed_to_http(simulator):
    reply = httpx2.get(simulator.base_url + "/v1/responses", headers=SOCKET, timeout=10)
    assert (reply.status_code, reply.headers["upgrade"]) == (426, "HTTP/1.1")
    assert reply.headers["x-dragoman-rule"] == "path"
    assert "over HTTP" in reply.json()["error"]["message"]


def test_without_wanting_a_socket_there_is_nothing_to_get(simulator):
    reply = httpx2.get(simulator.base_url + "/v1/responses", headers={"authorization": "Bearer k"}, timeout=10)
    assert reply.status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/responses/resp_1"),
        ("DELETE", "/v1/responses/resp_1"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("GET", "/v1/responses/resp_1/input_items"),
        ("POST", "/v1/conversations"),
        ("GET", "/v1/conversations/conv_1"),
        ("GET", "/v1/conversations/conv_1/items"),
    ],
)
def test_stored_replies_require_a_valid_key(simulator, method, path):
    statuses = [
        httpx2.request(method, simulator.base_url + path, headers=headers, timeout=10).status_code
        for headers in ({}, {"authorization": "Bearer invalid-key"}, {"authorization": "Bearer k"})
    ]
    assert statuses[:2] == [401, 401]
    assert statuses[2] in {200, 404}


def test_a_scripted_refusal_is_rendered_as_a_refusal(simulate):
    running = simulate(script=lambda _: Answer(refusal="I will not."))
    asked = {"chat/completions": {"messages": [{"role": "user", "content": "Hi."}]}, "responses": {"input": "Hi."}}
    reply = {
        path: httpx2.post(
            f"{running.base_url}/v1/{path}",
            json={"model": "gpt-4.1", **body},
            headers={"authorization": "Bearer k"},
            timeout=10,
        ).json()
        for path, body in asked.items()
    }
    message = reply["chat/completions"]["choices"][0]["message"]
    assert (message["refusal"], message["content"]) == ("I will not.", None)
    assert reply["responses"]["output"][-1]["content"] == [{"type": "refusal", "refusal": "I will not."}]
    assert reply["chat/completions"]["usage"]["completion_tokens"] == 3
    assert reply["responses"]["usage"]["output_tokens"] == 3
