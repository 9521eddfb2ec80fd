"""Every route requires a valid key and an allowed host, whatever other credentials a request has."""

import http.client

import httpx2
import pytest

from dragoman.config import KeyTable
from dragoman.dialects.registry import DIALECTS
from dragoman.http.message import Request
from dragoman.server.app import drop_key_from_target
from dragoman.server.auth import Access, Key, hash_secret
from dragoman.server.routes import Paths
from dragoman.simulator.runner import in_thread
from server.conftest import run_server_gateway

KEYS = (
    KeyTable(key="secret-" + "x" * 40 + "-one", name="one"),
    KeyTable(key="secret-" + "x" * 40 + "-two", name="two"),
)
PATHS = Paths(DIALECTS.values(), translates=True)
FIXED = [route for route, path in PATHS.fixed_paths.items() if path.operation not in {"health", "ready"}]
ACTIONS = [
    ("GET", "responses", "", False), ("DELETE", "responses", "", False), ("POST", "responses", "/cancel", False),
    ("GET", "responses", "/input_items", False), ("GET", "conversations", "", False), ("POST", "conversations", "", False),
    ("DELETE", "conversations", "", False), ("GET", "conversations", "/items", False),
    ("POST", "conversations", "/items", False), ("GET", "conversations", "/items", True),
    ("DELETE", "conversations", "/items", True),
]  # fmt: skip
KEPT = [(method, f"/v1/{room}/abc{below}{'/item' if item else ''}") for method, room, below, item in ACTIONS]
OTHERS = [
    ("POST", "/v1beta/models/gem:generateContent"), ("POST", "/v1beta/models/gem:streamGenerateContent?alt=sse"),
    ("POST", "/v1beta/models/gem:countTokens"), ("POST", "/v1/publishers/google/models/gem:generateContent"),
    ("GET", "/v1beta/models"), ("GET", "/v1beta/models/gem"), ("GET", "/v1/models/gem"), ("GET", "/v1/exchanges/abc"),
    ("POST", "/v1internal:generateContent"), ("POST", "/v1internal:loadCodeAssist"), ("GET", "/v1internal/operations/x"),
    ("POST", "/v1/embeddings"), ("GET", "/v1/files"), ("POST", "/upstreams/gemini/v1beta/files"), ("GET", "/upstreams/openai/v1/models"),
    ("DELETE", "/v1/files/x"), ("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/nowhere"), ("PUT", "/v1/messages"), ("OPTIONS", "/v1/messages"), ("HEAD", "/metrics"),
]  # fmt: skip
SHOWN = [
    {}, {"authorization": "Bearer "}, {"authorization": "Bearer wrong"}, {"authorization": "Basic c2VjcmV0"},
    {"authorization": KEYS[0].key[:47]}, {"x-api-key": "' OR '1'='1"}, {"x-api-key": "secret-" + "x" * 40},
    {"x-goog-api-key": "%"}, {"x-goog-api-key": hash_secret(KEYS[0].key)}, {"cookie": f"key={KEYS[0].key}"},
    {"x-api-key": "wrong", "x-forwarded-for": "127.0.0.1", "x-original-url": "/health"},
    {"x-api-key": KEYS[0].key, "authorization": f"Bearer {KEYS[1].key}"},
    {"x-api-key": "sha256:" + hash_secret(KEYS[0].key)},
]  # fmt: skip
HOSTS = [
    "evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "evil.test:80", "localhost@evil.test", "[::1]evil.test",
    "[::1]:80@evil.test", "::1evil", "localhost/..", "localhost\\evil.test", "0", "2130706433", "localhost evil.test",
]  # fmt: skip


@pytest.fixture(scope="module")
def gateway():
    with in_thread() as simulator, run_server_gateway(simulator, keys=KEYS) as running:
        yield running


def request_status(gateway, method: str, path: str, headers: dict[str, str]) -> int:
    body = b'{"model": "gem", "messages": []}' if method in {"POST", "PUT"} else b""
    host, _, port = gateway.base_url.removeprefix("http://").partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        connection.putrequest(method, path, skip_host="host" in headers, skip_accept_encoding=True)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        return connection.getresponse().status
    finally:
        connection.close()


def test_every_route_wants_a_key_and_takes_no_other_proof(gateway):
    routes, before = [*FIXED, *KEPT, *OTHERS], len(gateway.simulator.requests)
    assert len(routes) > 35
    let_in = [
        (method, path, shown)
        for method, path in routes
        for shown in SHOWN
        if request_status(gateway, method, path, shown) != 401
    ]
    assert not let_in
    assert len(gateway.simulator.requests) == before


def test_a_key_in_the_query_does_not_hide_another(gateway):
    one, two = (key.key for key in KEYS)
    assert request_status(gateway, "GET", f"/v1/models?key={one}", {}) == 200
    for query in (f"key={one}&key={two}", f"key={two}&k%65y={one}", f"key={one}&key=wrong"):
        assert request_status(gateway, "GET", f"/v1/models?{query}", {}) == 401
    assert request_status(gateway, "GET", f"/v1/models?k%65y={two}", {"x-api-key": one}) == 401


@pytest.mark.parametrize("host", HOSTS)
def test_every_route_wants_one_of_our_names_also_with_a_key(gateway, host):
    for method, path in [("GET", "/health"), ("GET", "/metrics"), ("POST", "/v1/messages"), ("GET", "/nowhere")]:
        for shown in ({}, {"x-api-key": KEYS[0].key}):
            assert request_status(gateway, method, path, {"host": host, **shown}) in {400, 403}


def test_two_keys_with_one_beginning_are_two():
    access = Access([Key(hash=hash_secret(key.key), name=key.name) for key in KEYS])
    for key in KEYS:
        assert access.authorize(Request("GET", "/", (("host", "x"), ("x-api-key", key.key)))).name == key.name


@pytest.mark.parametrize("query", ["key=k", "key=k&key=l", "k%65y=k", "a=b&key=k", "%6b%65%79=k&a=b"])
def test_no_client_key_is_forwarded_to_an_upstream(query):
    assert "k" not in drop_key_from_target(f"/v1/messages?{query}").partition("?")[2]


def test_what_one_key_keeps_another_can_neither_see_nor_change_by_any_verb(gateway):
    one, two = ({"x-api-key": key.key} for key in KEYS)
    made = httpx2.post(
        f"{gateway.base_url}/v1/responses",
        json={"model": "gem", "input": "hello", "conversation": "mine"},
        headers=one,
    ).json()
    names = {"responses": made["id"], "conversations": "mine"}
    for method, room, below, item in ACTIONS:
        path = f"/v1/{room}/{names[room]}{below}{'/' + made['output'][0]['id'] if item else ''}"
        assert PATHS.find(method, path) is not None
        # A name for a conversation is its owner's: where something may be made by naming it, it is made for the asker.
        assert request_status(gateway, method, path, two) in {400, 404}, (method, path)
    still = httpx2.get(f"{gateway.base_url}/v1/conversations/mine/items", headers=one).json()["data"]
    assert [row["type"] for row in still] == ["message", "message"]
    assert httpx2.get(f"{gateway.base_url}/v1/responses/{made['id']}", headers=one).status_code == 200
