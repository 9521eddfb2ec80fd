"""Authorization with the headers that each vendor's clients use."""

import httpx2
import pytest

from dragoman.config import Config, ConfigError, KeyTable, ServerTable
from dragoman.server.runner import listen_address

BODY = {"model": "gem", "messages": [{"role": "user", "content": "hello"}]}
STRONG = (KeyTable(key="secret-of-16-characters", name="one"),)
KEYS = (KeyTable(key="secret-one", name="one"), KeyTable(key="secret-two", name="two", models=("gem*",), concurrency=1))


@pytest.fixture
def locked(serve):
    return serve(keys=KEYS)


def post(gateway, headers, body=None, path="/v1/chat/completions"):
    return httpx2.post(f"{gateway.base_url}{path}", json=body or BODY, headers=headers)


@pytest.mark.parametrize(
    "headers",
    [{"authorization": "Bearer secret-one"}, {"x-api-key": "secret-one"}, {"x-goog-api-key": "secret-one"}],
)
def test_a_key_is_taken_in_any_vendors_header(locked, headers):
    assert post(locked, headers).status_code == 200


def test_a_key_is_taken_in_the_query(locked):
    assert post(locked, {}, path="/v1/chat/completions?key=secret-one").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "secret"},
        {"x-api-key": ""},
        {"x-api-key": "secret-one", "authorization": "Bearer secret-two"},
    ],
)
def test_no_key_a_wrong_one_or_two_are_refused_in_the_clients_dialect(locked, headers):
    result = post(locked, headers)
    assert result.status_code == 401
    assert result.json()["error"]["type"] in {"invalid_request_error", "authentication_error"}
    assert not locked.simulator.requests


def test_a_key_can_use_only_its_models(locked):
    key = {"x-api-key": "secret-two"}
    assert post(locked, key).status_code == 200
    assert post(locked, key, {**BODY, "model": "gpt"}).status_code == 403
    shown = {row["id"] for row in httpx2.get(f"{locked.base_url}/v1/models", headers=key).json()["data"]}
    assert "gem" in shown
    assert all(name.startswith("gem") for name in shown)


def test_an_exchange_is_shown_to_its_owner_only(locked):
    result = post(locked, {"x-api-key": "secret-one"})
    name = result.headers["x-dragoman-exchange"]
    shown = httpx2.get(f"{locked.base_url}/v1/exchanges/{name}", headers={"x-api-key": "secret-one"}).json()
    assert (shown["upstream"], shown["outcome"], shown["tries"]) == ("gemini", "answered", 1)
    assert httpx2.get(f"{locked.base_url}/v1/exchanges/{name}", headers={"x-api-key": "secret-two"}).status_code == 404


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1.evil.test", ""])
def test_a_foreign_host_is_rejected_before_any_other_check(gateway, host):
    result = post(gateway, {"host": host})
    assert result.status_code in {400, 403}


@pytest.mark.parametrize(
    "origin",
    ["https://evil.test", "http://127.0.0.1.evil.test", "http://evil.test:8741", "null", "https://a.test.evil"],
)
def test_a_foreign_origin_is_rejected_even_with_a_valid_key(serve, origin):
    gateway = serve(keys=KEYS, origins=("https://a.test", "vscode-webview://*"))
    for headers in ({}, {"x-api-key": "secret-one"}, {"content-type": "text/plain", "x-api-key": "secret-one"}):
        result = post(gateway, {"origin": origin, **headers})
        assert result.status_code == 403
        assert "origins" in result.json()["error"]["message"]
    assert not gateway.simulator.requests


@pytest.mark.parametrize(
    "origin", ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:1", "https://a.test", "vscode-webview://1x"]
)
def test_own_and_configured_origins_are_allowed(serve, origin):
    gateway = serve(origins=("https://A.test/", "vscode-webview://*"))
    assert post(gateway, {"origin": origin}).status_code == 200


def test_health_needs_no_key(locked):
    assert httpx2.get(f"{locked.base_url}/health").json() == {"status": "ok"}


@pytest.mark.parametrize("listen", ["0.0.0.0:1", "192.168.0.1:1", "[::]:1"])
def test_listening_on_a_public_address_requires_a_key(listen):
    with pytest.raises(ConfigError, match="add a key"):
        listen_address(Config(server=ServerTable(listen=listen)))
    assert listen_address(Config(server=ServerTable(listen=listen), keys=STRONG))[1] == 1


@pytest.mark.parametrize("key", ["               ", "fifteen-letters", " " * 20])
def test_a_short_or_blank_key_is_refused_on_a_public_address_only(key):
    keys = (KeyTable(key="a" * 16, name="long"), KeyTable(key=key, name="short"))
    with pytest.raises(ConfigError, match=r"keys\[1\].*16 characters"):
        listen_address(Config(server=ServerTable(listen="0.0.0.0:1"), keys=keys))
    assert listen_address(Config(server=ServerTable(listen="127.0.0.1:1"), keys=keys))[1] == 1
    assert listen_address(Config(server=ServerTable(listen="0.0.0.0:1"), keys=keys[:1]))[1] == 1


@pytest.mark.parametrize("listen", ["8741", "localhost", ":1", "host:x", "127.0.0.1:65536"])
def test_an_address_needs_a_host_and_a_port(listen):
    with pytest.raises(ConfigError, match="HOST:PORT"):
        listen_address(Config(server=ServerTable(listen=listen)))
