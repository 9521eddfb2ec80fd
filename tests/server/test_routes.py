"""Paths are matched to operations and dialects."""

import httpx2
import pytest

from dragoman.config import UpstreamTable
from dragoman.dialects.registry import DIALECTS
from dragoman.server.routes import Paths

PATHS = Paths(DIALECTS.values())
PLACE = "/projects/p/locations/l/publishers/google"


@pytest.mark.parametrize("version", ["v1", "v1beta", "v1beta1", "v1alpha"])
@pytest.mark.parametrize("place", ["", PLACE, "/publishers/google"])
@pytest.mark.parametrize(("verb", "stream"), [("generateContent", False), ("streamGenerateContent", True)])
def test_gemini_paths_match_every_version_with_or_without_a_project(version, place, verb, stream):
    path = PATHS.find("POST", f"/{version}{place}/models/gemini-3:{verb}")
    assert path is not None
    assert (path.dialect, path.operation, path.model, path.stream) == ("gemini", "generate", "gemini-3", stream)


@pytest.mark.parametrize(
    ("method", "path", "dialect", "operation"),
    [
        ("POST", "/v1/chat/completions", "chat", "generate"),
        ("POST", "/v1/responses", "responses", "generate"),
        ("POST", "/v1/messages", "messages", "generate"),
        ("POST", "/v1/messages/count_tokens", "messages", "count"),
        ("POST", "/v1beta/models/m:countTokens", "gemini", "count"),
        ("POST", "/v1internal:generateContent", "gemini", "generate"),
        ("POST", "/v1internal:countTokens", "gemini", "count"),
        ("GET", "/v1/models", "", "models"),
        ("GET", "/v1/models/gpt", "", "model"),
        ("GET", "/v1beta/models", "gemini", "models"),
        ("GET", "/v1beta/models/gem", "gemini", "model"),
        ("GET", "/v1/exchanges/ex_1", "", "exchange"),
        ("HEAD", "/v1/models/gpt", "", "model"),
    ],
)
def test_a_path_has_its_dialect_and_its_operation(method, path, dialect, operation):
    found = PATHS.find(method, path)
    assert found is not None
    assert (found.dialect, found.operation) == (dialect, operation)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/chat/completions/"),
        ("POST", "/v2/messages"),
        ("PUT", "/v1/models"),
    ],
)
def test_other_paths_mean_nothing(method, path):
    assert PATHS.find(method, path) is None


@pytest.mark.parametrize(
    ("path", "headers", "dialect"),
    [
        ("/v1/models", {}, "chat"),
        ("/v1/models", {"anthropic-version": "2023-06-01"}, "messages"),
        ("/v1/models", {"x-goog-api-key": "k"}, "gemini"),
        ("/v1/responses/x", {}, "responses"),
        ("/v1beta/files", {}, "gemini"),
    ],
)
def test_the_headers_decide_the_dialect_of_a_shared_path(path, headers, dialect):
    assert PATHS.dialect_of(path, headers) == dialect


def test_models_are_listed_in_the_format_of_the_clients_vendor(gateway):
    base = gateway.base_url
    assert {row["id"] for row in httpx2.get(f"{base}/v1/models").json()["data"]} >= {"gem", "gpt"}
    anthropic = httpx2.get(f"{base}/v1/models?limit=1000", headers={"anthropic-version": "2023-06-01"}).json()
    assert anthropic["data"][0]["type"] == "model"
    assert anthropic["has_more"] is False
    assert "models/gem" in {row["name"] for row in httpx2.get(f"{base}/v1beta/models").json()["models"]}
    assert httpx2.get(f"{base}/v1beta/models/gem").json()["name"] == "models/gem"
    assert httpx2.get(f"{base}/v1/models/none").status_code == 404


def test_a_websocket_is_refused_in_the_way_that_makes_clients_turn_to_http(gateway):
    headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-key": "x3JJHMbDL1EzLkh9GBhXDw=="}
    reply = httpx2.get(f"{gateway.base_url}/v1/responses", headers=headers)
    assert reply.status_code == 426


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/v1/chat/completions", b"{", "the body is not JSON"),
        ("/v1/chat/completions", b"[]", "Expected"),
        ("/v1/chat/completions", b'{"model":1}', "/model"),
        ("/v1/chat/completions", b"{}", "model"),
        ("/v1/messages", b'{"model":"gem","messages":1}', "array"),
        ("/v1/responses", b"[" * 5000, "nested"),
        ("/v1beta/models/gpt:generateContent", b"nonsense", ""),
    ],
)
def test_a_body_that_is_wrong_is_refused_in_the_clients_dialect(gateway, path, body, words):
    reply = httpx2.post(gateway.base_url + path, content=body)
    assert reply.status_code == 400
    assert words in reply.json()["error"]["message"] + str(reply.json()["error"].get("param"))


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("DELETE", "/v1/messages", "POST"),
        ("POST", "/v1/models", "GET"),
        ("PUT", "/v1/conversations/a", "GET, POST, DELETE"),
        ("POST", "/health", "GET"),
    ],
)
def test_a_wrong_method_gets_405_with_the_allowed_methods(gateway, method, path, allowed):
    reply = httpx2.request(method, gateway.base_url + path)
    assert (reply.status_code, reply.headers["allow"]) == (405, allowed)
    assert method in reply.json()["error"]["message"]


def test_an_unknown_path_is_not_found_with_any_method(gateway):
    assert httpx2.put(f"{gateway.base_url}/v1/nothing").status_code == 404


def test_an_exchange_that_is_not_there_is_no_missing_model(gateway):
    reply = httpx2.get(f"{gateway.base_url}/v1/exchanges/ex_none")
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("model", ["claude", "vclaude", "gem"])
def test_the_query_of_messages_goes_where_the_same_path_is_and_no_key_with_it(gateway, model):
    body = {"model": model, "max_tokens": 99, "messages": [{"role": "user", "content": "hello"}]}
    reply = httpx2.post(f"{gateway.base_url}/v1/messages?beta=true&key=hush&x=1", json=body)
    assert reply.status_code == 200
    target = gateway.simulator.requests[-1].target
    assert ("?beta=true&x=1" in target) is (model == "claude")
    assert "hush" not in target


def test_a_conversation_name_with_control_characters_is_rejected(gateway):
    body = {"model": "gem", "input": "hi", "conversation": "a\u0007b"}
    reply = httpx2.post(f"{gateway.base_url}/v1/gemini", json=body)
    assert reply.status_code == 400
    assert "control characters" in reply.json()["error"]["message"]


def test_a_model_with_googles_prefix_is_played_as_googles_where_there_is_no_key(serve):
    gateway = serve(upstreams={"sim": UpstreamTable(kind="simulator")})
    body = {"model": "sim/models/gemini-3-flash", "messages": [{"role": "user", "content": "hello"}]}
    assert httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=body).status_code == 200
    assert gateway.simulator.requests[-1].api == "gemini"
