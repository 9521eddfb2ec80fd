"""Signing in at an authorization server with credentials of our own, as the configuration says."""

import base64
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from dragoman.config import ConfigError, load
from dragoman.mcp.settings import OAuth, ToolServer
from mcp_peers import Visit, text_of, visit_servers

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
SECRET = "a-secret-of-ours"  # noqa: S105


class _Guarded(BaseHTTPRequestHandler):
    """A server that wants a token, and the authorization server that gives one, in one."""

    server: Any

    def do_GET(self) -> None:
        base = f"http://127.0.0.1:{self.server.server_port}"
        if self.path.startswith("/.well-known/oauth-protected-resource"):
            about = {"resource": f"{base}/mcp", "authorization_servers": [base], "scopes_supported": ["tools"]}
            self._send(200, about)
        elif self.path.startswith("/.well-known/oauth-authorization-server"):
            about = {"issuer": base, "token_endpoint": f"{base}/token", "authorization_endpoint": f"{base}/authorize"}
            self._send(200, {**about, "response_types_supported": ["code"]})
        else:
            self._send(405, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/token":
            self.server.asked.append((self.headers["authorization"], body.decode()))
            self._send(200, {"access_token": "t0ken", "token_type": "Bearer", "expires_in": 3600})
        elif self.headers["authorization"] != "Bearer t0ken":
            metadata = f"http://127.0.0.1:{self.server.server_port}/.well-known/oauth-protected-resource"
            self._send(401, {}, f'Bearer resource_metadata="{metadata}"')
        else:
            self._answer(json.loads(body))

    def _answer(self, message: Any) -> None:
        results = {
            "initialize": HELLO,
            "tools/list": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "done"}]},
        }
        if message["method"] in results:
            self._send(200, {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]})
        else:
            self._send(202, {})

    def _send(self, status: int, document: Any, wants: str = "") -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", "application/json")
        if wants:
            self.send_header("www-authenticate", wants)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def run_guarded_server() -> Generator[tuple[str, list[Any]]]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Guarded)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sign(base: str, issuer: str = "") -> ToolServer:
    oauth = OAuth(issuer=issuer or base, client_id="dragoman", client_secret=SECRET)
    return ToolServer(url=f"{base}/mcp", protocol="2025-11-25", oauth=oauth)


def test_a_token_is_requested_with_the_configured_credentials_and_used():
    async def visit(peer: Visit):
        return peer.status, await peer.call("s__work")

    with run_guarded_server() as (base, asked):
        status, result = visit_servers(visit, s=sign(base))
    assert status.connected, status.error
    assert text_of(result) == "done"
    ((authorization, body),) = asked
    assert base64.b64decode(authorization.removeprefix("Basic ")).decode() == f"dragoman:{SECRET}"
    assert "grant_type=client_credentials" in body
    assert "scope=tools" in body


def test_credentials_go_to_no_other_issuer_than_the_configured_one():
    async def visit(peer: Visit):
        return peer.status

    with run_guarded_server() as (base, asked):
        status = visit_servers(visit, s=sign(base, "https://auth.example"))
    assert not status.connected
    assert "https://auth.example" in status.error
    assert asked == []


def test_oauth_is_configured_in_the_file_and_its_secret_in_the_environment(tmp_path):
    file = tmp_path / "dragoman.toml"
    table = 'oauth = { issuer = "https://auth.example", client_id = "d", client_secret = "env:FAR_SECRET" }\n'
    file.write_text(f'[tools.far]\nurl = "https://far.example/mcp"\n{table}')
    config = load(file, {"FAR_SECRET": SECRET})
    assert config.tools["far"].oauth == OAuth(issuer="https://auth.example", client_id="d", client_secret=SECRET)
    assert SECRET in config.secrets


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            'command = "x"\noauth = { issuer = "https://a", client_id = "d", client_secret = "s" }',
            "cannot be combined with",
        ),
        ('url = "https://b"\noauth = { issuer = "a", client_id = "d", client_secret = "s" }', "'a' is not a URL"),
        ('url = "https://b"\noauth = { client_id = "d", client_secret = "s" }', "issuer"),
    ],
)
def test_invalid_oauth_settings_are_reported(tmp_path, text, words):
    file = tmp_path / "dragoman.toml"
    file.write_text(f"[tools.far]\n{text}\n")
    with pytest.raises(ConfigError, match=words) as error:
        load(file, {})
    assert "tools.far" in str(error.value)
