"""A server over HTTP without any SDK: what we send it, and what it may do to us."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from dragoman.mcp.client import transports
from dragoman.mcp.settings import ToolServer
from mcp_peers import Visit, text_of, visit_servers

TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}} for name in ("large", "fine", "away", "odd", "refused", "forget")
]
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "bare", "version": "1"}}


class _Bare(BaseHTTPRequestHandler):
    """Answers POST with JSON, and does what the called tool is named after."""

    server: Any

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((message.get("method"), dict(self.headers)))
        if message.get("method") != "initialize" and self.headers["mcp-session-id"] != f"s{self.server.session}":
            self._send(404, b"")
            return
        match message.get("method"):
            case "initialize":
                self._answer(message, HELLO)
            case "tools/list":
                self._answer(message, {"tools": TOOLS})
            case "tools/call":
                self._called(message, message["params"]["name"])
            case _:
                self._send(202, b"")

    def do_GET(self) -> None:
        self._send(self.server.news, b"")

    do_DELETE = do_HEAD = do_GET  # noqa: N815  named after the methods

    def _called(self, message: Any, name: str) -> None:
        match name:
            case "large":
                self._answer(message, {"content": [{"type": "text", "text": "x" * 50_000}]})
            case "away":
                self._send(307, b"", location=self.server.elsewhere)
            case "odd":
                self._send(200, b"<html>", type="text/html")
            case "refused":
                self._send(503, b"")
            case "forget":
                self._answer(message, {"content": []})
                self.server.session += 1
            case _:
                self._answer(message, {"content": [{"type": "text", "text": name}]})

    def _answer(self, message: Any, result: Any) -> None:
        self._send(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    def _send(self, status: int, body: bytes, type: str = "application/json", location: str = "") -> None:  # noqa: A002
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", type)
        self.send_header("mcp-session-id", f"s{self.server.session}")
        if location:
            self.send_header("location", location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def bare(elsewhere: str = "", news: int = 405) -> Generator[tuple[str, list[Any]]]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Bare)
    server.seen, server.elsewhere, server.news, server.session = [], elsewhere, news, 1
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", server.seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def build_server(url: str, **settings: Any) -> ToolServer:
    return ToolServer(url=url, protocol="2025-11-25", **settings)


def test_headers_are_sent_with_every_request_and_to_no_other_server():
    with bare() as (other, others), bare(other) as (url, seen):

        async def visit(peer: Visit):
            return await peer.call("b__fine"), await peer.call("b__away")

        fine, away = visit_servers(visit, b=build_server(url, headers={"authorization": "Bearer t0ken"}))
    assert text_of(fine) == "fine"
    assert away.failed
    assert "not followed" in text_of(away)
    assert {headers["authorization"] for _, headers in seen} == {"Bearer t0ken"}
    assert others == []


@pytest.mark.parametrize("name", ["odd", "refused"])
def test_an_answer_that_is_none_is_a_failed_result(name):
    with bare() as (url, _):

        async def visit(peer: Visit):
            return await peer.call(f"b__{name}"), await peer.call("b__fine")

        result, after = visit_servers(visit, b=build_server(url))
    assert result.failed
    assert "did not run the tool" in text_of(result)
    assert not after.failed


def test_an_answer_without_end_has_one(monkeypatch):
    monkeypatch.setattr(transports, "MAX_MESSAGE_BYTES", 20_000)
    with bare() as (url, _):

        async def visit(peer: Visit):
            return await peer.call("b__large"), await peer.call("b__fine")

        result, after = visit_servers(visit, b=build_server(url))
    assert result.failed
    assert "larger than 20000 bytes" in text_of(result)
    assert not after.failed


def test_a_server_that_forgets_us_at_every_call_is_reminded_at_every_call():
    with bare() as (url, seen):

        async def visit(peer: Visit):
            return [await peer.call(f"b__{name}") for name in ("forget", "fine", "fine", "forget", "fine")]

        results = visit_servers(visit, b=build_server(url))
    assert [result.failed for result in results] == [False] * 5
    assert [method for method, _ in seen].count("initialize") == 3
    assert [method for method, _ in seen].count("tools/call") == 7


def test_a_server_that_rejects_the_event_stream_is_not_initialized_again():
    with bare(news=404) as (url, seen):

        async def visit(peer: Visit):
            return [await peer.call("b__fine") for _ in range(3)]

        results = visit_servers(visit, b=build_server(url))
    assert [result.failed for result in results] == [False] * 3
    assert [method for method, _ in seen].count("initialize") == 1
