"""The vendors' other endpoints are forwarded unchanged: official SDKs, and a server that records all requests."""

import io
import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from dragoman.config import Config, KeyTable, ServerTable, UpstreamTable
from dragoman.http.exchange import Exchange
from dragoman.http.message import Request
from dragoman.http.server import listen, run_in_thread
from dragoman.server.runner import running
from oracles.clients import genai

SOUND = bytes(range(256)) * 1000
BATCH = {
    "id": "msgbatch_1",
    "type": "message_batch",
    "processing_status": "in_progress",
    "request_counts": {"processing": 1, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
    "created_at": "2026-01-01T00:00:00Z",
    "expires_at": "2026-01-02T00:00:00Z",
}
FILE = {"id": "file-1", "object": "file", "bytes": 3, "created_at": 1, "filename": "a.txt", "purpose": "batch"}
EMBEDDED = {"object": "list", "model": "m", "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 1.0]}]}


class Vendor:
    """Simulates the other endpoints of all vendors, and records its requests."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.base_url = ""

    @property
    def last(self) -> Request:
        return self.requests[-1]

    async def handle(self, exchange: Exchange) -> None:
        request = exchange.request
        self.requests.append(request)
        kind = {"content-type": "application/json", "x-own": "1", "set-cookie": "secret=1", "x-request-id": "theirs"}
        path = request.path
        if path.endswith(("/speech", "/content")):
            exchange.start(200, {"content-type": "audio/mpeg"})
            for at in range(0, len(SOUND), 10_000):
                await exchange.write(SOUND[at : at + 10_000])
            await exchange.end()
        elif "/bad/" in path:
            await exchange.send(int(path.rpartition("/")[2]), kind, b'{"error":{"message":"as it was said"}}')
        elif "/tells/" in path:
            result = {"error": {"message": f"the key {dict(request.headers)['authorization']} is used up"}}
            headers = {**kind, "x-used": dict(request.headers)["authorization"]}
            await exchange.send(int(path.rpartition("/")[2]), headers, json.dumps(result).encode())
        elif path.endswith("/stale"):
            reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
            error = {
                "code": 400,
                "message": "API key AIza not valid.",
                "status": "INVALID_ARGUMENT",
                "details": [reason],
            }
            await exchange.send(400, kind, json.dumps({"error": error}).encode())
        elif path.endswith("/cut"):
            exchange.start(200, kind)
            await exchange.write(b"half")
            exchange.truncate()
        else:
            headers, body = self._reply(request, path)
            await exchange.send(200, {**kind, **headers}, body)

    def _reply(self, request: Request, path: str) -> tuple[dict[str, str], bytes]:
        if "x-goog-upload-command" in dict(request.headers):
            if request.header("x-goog-upload-command") == "start":
                return {"x-goog-upload-url": f"{self.base_url}/upload/v1beta/files?upload_id=7"}, b"{}"
            result = {"file": {"name": "files/7", "uri": "https://vendor/files/7", "mimeType": "text/plain"}}
            return {"x-goog-upload-status": "final"}, json.dumps(result).encode()
        rows: dict[str, Any] = {
            "/embeddings": EMBEDDED,
            "/files": FILE,
            "/batches": BATCH,
            "/transcriptions": {"text": "words"},
            "/cachedContents": {"name": "cachedContents/1", "model": "models/gemini-3"},
            ":batchEmbedContents": {"embeddings": [{"values": [0.5, 1.0]}]},
        }
        return {}, json.dumps(
            next((result for end, result in rows.items() if path.endswith(end)), {"path": path})
        ).encode()


class Passing:
    """A gateway before that vendor."""

    def __init__(self, base_url: str, vendor: Vendor) -> None:
        self.base_url = base_url
        self.vendor = vendor


@contextmanager
def run_gateway(*keys: KeyTable, more: dict[str, UpstreamTable] | None = None) -> Generator[Passing]:
    vendor = Vendor()
    with run_in_thread(lambda: listen(vendor.handle, grace=0.1), "vendor") as server:
        vendor.base_url = server.base_url
        upstreams = {
            "oai": UpstreamTable(kind="openai", base_url=f"{server.base_url}/api/v1", api_key="oai-key"),
            "ant": UpstreamTable(kind="anthropic", base_url=server.base_url, api_key="ant-key"),
            "goo": UpstreamTable(kind="gemini", base_url=server.base_url, api_key="goo-key"),
            "vertex": UpstreamTable(kind="vertex-gemini", base_url=server.base_url, project="p", access_token="t"),  # noqa: S106
        }
        config = Config(
            server=ServerTable(listen="127.0.0.1:0"),
            keys=keys,
            upstreams=upstreams | (more or {}),
            models={"emb": ("oai/real-embedding",), "gemb": ("goo/gemini-embedding",), "cloud": ("vertex/gemini-3",)},
        )
        with run_in_thread(lambda: running(config, grace=0.2), "gateway") as gateway:
            yield Passing(gateway.base_url, vendor)


@pytest.fixture(scope="module")
def shared() -> Generator[Passing]:
    with run_gateway() as started:
        yield started


@pytest.fixture
def oai(shared):
    with openai.OpenAI(base_url=f"{shared.base_url}/v1", api_key="mine", max_retries=0) as client:
        yield client


def test_embeddings_go_to_the_models_upstream_under_its_own_name_with_the_gateways_key(shared, oai):
    reply = oai.embeddings.create(model="emb", input="words", encoding_format="float")
    assert reply.data[0].embedding == [0.5, 1.0]
    seen = shared.vendor.last
    assert (seen.method, seen.target) == ("POST", "/api/v1/embeddings")
    assert json.loads(seen.body)["model"] == "real-embedding"
    assert seen.header("authorization") == "Bearer oai-key"
    assert "mine" not in str(seen.headers)
    assert seen.header("user-agent").startswith("dragoman/")


def test_a_body_that_needs_no_other_name_is_not_touched(shared):
    body = b'{ "input" : "caf\\u00e9" , "model":"oai-is-not-a-prefix", "n":1.0 }'
    reply = httpx2.post(
        f"{shared.base_url}/upstreams/oai/v1/embeddings?a=b&key=mine&c=%20",
        content=body,
        headers={"content-type": "application/json", "x-own": "yes", "x-api-key": "mine", "cookie": "mine"},
    )
    assert reply.status_code == 200
    seen = shared.vendor.last
    assert seen.body == body
    assert seen.target == "/api/v1/embeddings?a=b&c=%20"
    assert seen.header("x-own") == "yes"
    assert "mine" not in str(seen)
    assert reply.headers["x-own"] == "1"
    assert "set-cookie" not in reply.headers
    assert reply.headers["x-dragoman-upstream"] == "oai"


def test_files_pass_in_both_directions(shared, oai):
    content = bytes(range(256)) * 100
    assert oai.files.create(file=("a.bin", io.BytesIO(content)), purpose="batch").id == "file-1"
    seen = shared.vendor.last
    assert content in seen.body
    assert seen.header("content-type").startswith("multipart/form-data; boundary=")
    assert oai.files.content("file-1").read() == SOUND
    assert shared.vendor.last.target == "/api/v1/files/file-1/content"
    oai.files.delete("file-1")
    assert shared.vendor.last.method == "DELETE"


def test_a_form_with_a_file_names_its_model_too(shared, oai):
    content = b'sound\r\n\r\n--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nother\r\n'
    assert oai.audio.transcriptions.create(model="emb", file=("a.wav", io.BytesIO(content))).text == "words"
    seen = shared.vendor.last
    assert b'name="model"\r\n\r\nreal-embedding\r\n' in seen.body
    assert content in seen.body


def test_sound_is_streamed_back(oai):
    with oai.audio.speech.with_streaming_response.create(model="emb", voice="alloy", input="words") as reply:
        assert b"".join(reply.iter_bytes()) == SOUND


def test_batches_of_messages_pass(shared):
    with anthropic.Anthropic(base_url=shared.base_url, api_key="mine", max_retries=0) as client:
        params = {"model": "claude-opus-4-8", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
        assert client.messages.batches.create(requests=[{"custom_id": "1", "params": params}]).id == "msgbatch_1"
        seen = shared.vendor.last
        assert seen.target == "/v1/messages/batches"
        assert seen.header("x-api-key") == "ant-key"
        assert seen.header("authorization") == ""
        assert seen.header("anthropic-version")
        client.beta.files.list()
        assert shared.vendor.last.path == "/v1/files"
        assert shared.vendor.last.header("x-api-key") == "ant-key"


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_embeddings_files_and_caches_of_google_pass(shared, version, tmp_path):
    options = {"base_url": shared.base_url, "api_version": version}
    with genai.Client(api_key="mine", http_options=options) as client:
        result = client.models.embed_content(model="gemb", contents="words")
        assert result.embeddings[0].values == [0.5, 1.0]
        seen = shared.vendor.last
        assert seen.path == f"/{version}/models/gemini-embedding:batchEmbedContents"
        assert {row["model"] for row in json.loads(seen.body)["requests"]} == {"models/gemini-embedding"}
        assert seen.header("x-goog-api-key") == "goo-key"
        made = client.caches.create(model="gemb", config={"system_instruction": "short"})
        assert made.name == "cachedContents/1"
        assert json.loads(shared.vendor.last.body)["model"] == "models/gemini-embedding"
        (tmp_path / "a.txt").write_text("words in a file")
        sent = client.files.upload(file=tmp_path / "a.txt", config={"mime_type": "text/plain"})
        assert sent.name == "files/7"
        assert shared.vendor.last.target == "/upload/v1beta/files?upload_id=7"
        assert shared.vendor.last.body == b"words in a file"
        assert shared.vendor.last.header("x-goog-api-key") == "goo-key"


def test_where_a_file_is_sent_to_is_here_and_not_where_the_client_has_no_key(shared):
    start = {"x-goog-upload-protocol": "resumable", "x-goog-upload-command": "start"}
    reply = httpx2.post(f"{shared.base_url}/upload/v1beta/files", headers=start, json={})
    assert reply.headers["x-goog-upload-url"] == f"{shared.base_url}/upstreams/goo/upload/v1beta/files?upload_id=7"


@pytest.mark.parametrize("status", [400, 404, 403, 429, 500])
def test_an_error_of_the_upstream_is_forwarded_unchanged(shared, status):
    reply = httpx2.get(f"{shared.base_url}/v1/files/bad/{status}")
    assert reply.status_code == status
    assert reply.content == b'{"error":{"message":"as it was said"}}'


@pytest.mark.parametrize("status", [300, 400, 403, 404, 429, 500, 503])
def test_an_error_that_repeats_the_gateways_key_is_redacted(shared, status):
    reply = httpx2.get(f"{shared.base_url}/v1/files/tells/{status}")
    assert reply.status_code == status
    assert "is used up" in reply.json()["error"]["message"]
    assert "oai-key" not in reply.text + str(reply.headers)


def test_a_refusal_of_the_gateways_key_is_the_gateways_failure(shared):
    assert httpx2.get(f"{shared.base_url}/v1/files/bad/401").status_code == 502
    reply = httpx2.get(f"{shared.base_url}/v1beta/files/stale")
    assert reply.status_code == 502
    assert "AIza" not in reply.text


def test_an_answer_that_is_cut_is_cut(shared):
    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.get(f"{shared.base_url}/v1/files/cut")


@pytest.mark.parametrize(
    "path",
    [
        "/upstreams/nobody/v1/files",
        "/upstreams/vertex/v1/files",
        "/upstreams/oai/admin",
        "/upstreams/oai/v1/../admin",
        "/upstreams/oai/v1/%2e%2e/admin",
        "/upstreams/oai/v1/%252e%252e/admin",
        "/upstreams/oai//evil.example.com/v1",
        "/upstreams/oai/v1/a%5cb",
        "/upstreams/oai/v1/a%0d%0ab",
        "/upstreams/oai",
        "/v1/nothing",
    ],
)
def test_there_is_no_way_to_anywhere_else(shared, path):
    before = len(shared.vendor.requests)
    host, _, port = shared.base_url.removeprefix("http://").partition(":")
    import socket

    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
        result = connection.recv(100)
    assert result.startswith(b"HTTP/1.1 404")
    assert len(shared.vendor.requests) == before


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"model":"a","Model":"b"}', "application/json"),
        (b'{"model":"emb","model":"emb","input":"x"}', "application/json"),
        (b'{"model":"forbidden","mod\\u0065l":"emb","input":"x"}', "application/json"),
        (b'{"model":1}', "application/json"),
        (
            b'--x\r\ncontent-disposition: form-data; name="model"\r\n\r\na\r\n' * 2 + b"--x--",
            "multipart/form-data; boundary=x",
        ),
        (b"", "multipart/form-data"),
    ],
)
def test_a_body_in_which_two_could_see_two_models_is_refused(shared, body, kind):
    reply = httpx2.post(f"{shared.base_url}/v1/embeddings", content=body, headers={"content-type": kind})
    assert reply.status_code == 400


def test_a_model_of_another_vendor_has_no_such_endpoint(shared):
    reply = httpx2.post(f"{shared.base_url}/v1/embeddings", json={"model": "gemb", "input": "x"})
    assert reply.status_code == 404
    reply = httpx2.post(f"{shared.base_url}/v1beta/models/cloud:embedContent", json={})
    assert reply.status_code == 404


def test_of_two_upstreams_one_must_be_named():
    other = {"oai2": UpstreamTable(kind="openai-responses", base_url="http://127.0.0.1:9/v1", api_key="k")}
    with run_gateway(more=other) as gateway:
        reply = httpx2.get(f"{gateway.base_url}/v1/files")
        assert reply.status_code == 404
        assert "/upstreams/oai/v1/files" in reply.json()["error"]["message"]
        assert httpx2.get(f"{gateway.base_url}/upstreams/oai/v1/files").status_code == 200
        assert httpx2.get(f"{gateway.base_url}/upstreams/oai2/v1/files").status_code == 502


def test_a_key_can_use_only_the_paths_that_its_patterns_allow():
    keys = (
        KeyTable(key="some", name="some", models=("emb", "gemini-*")),
        KeyTable(key="place", name="place", models=("oai/*",)),
    )
    with run_gateway(*keys) as gateway:

        def ask(key, method, path, **body):
            return httpx2.request(method, gateway.base_url + path, headers={"x-api-key": key}, **body).status_code

        named = {"json": {"model": "emb", "input": "x"}}
        assert ask("some", "POST", "/v1/embeddings", **named) == 200
        assert ask("some", "POST", "/v1/embeddings", json={"model": "oai/other", "input": "x"}) == 403
        assert ask("some", "POST", "/upstreams/oai/v1/embeddings", json={"model": "emb"}) == 403
        assert ask("some", "GET", "/v1/files") == 403
        assert ask("some", "POST", "/v1beta/models/gemb:embedContent", json={}) == 403
        assert ask("some", "POST", "/v1/models/gemini-x:embedContent", json={}) == 200
        assert ask("place", "GET", "/v1/files") == 200
        assert ask("place", "POST", "/upstreams/oai/v1/embeddings", json={"model": "any"}) == 200
        assert ask("place", "GET", "/upstreams/goo/v1beta/files") == 403
        assert ask("nobody", "GET", "/v1/files") == 401
