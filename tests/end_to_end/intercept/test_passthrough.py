"""With nothing to do for a client, every byte passes as it is, as soon as it comes."""

import asyncio
import http.client
import json
import socket
from urllib.parse import urlsplit

import pytest

from dragoman.config import KeyTable
from intercept.surroundings import between, until, upstream
from shelf import exchanges, needs_shelf

PATH = "/v1beta/models/gemini-3-flash:generateContent"
STREAM = "/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse"


@pytest.fixture(scope="module")
def middle(server, tmp_path_factory):
    with between(server.base_url, tmp_path_factory.mktemp("sessions")) as one:
        yield one


def send(base_url, path, body=b"", method="POST", headers=None):
    """Send bytes and return status, headers and bytes."""
    parts = urlsplit(base_url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    try:
        connection.request(method, path, body, headers or {"content-type": "application/json"})
        reply = connection.getresponse()
        return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
    finally:
        connection.close()


def answer_with(server, status, headers, *pieces):
    async def answer(exchange):
        if len(pieces) == 1:
            await exchange.send(status, headers, pieces[0])
            return
        exchange.start(status, headers)
        for piece in pieces:
            await exchange.write(piece)
        await exchange.end()

    server.answer = answer


@needs_shelf
def test_a_thousand_recorded_exchanges_pass_byte_by_byte(server, middle):
    google = [("google", one) for one in exchanges("gemini")] + [("assist", one) for one in exchanges("code_assist")]
    # What else was recorded is no less to be passed: nobody here reads it.
    others = [("google", one) for one in (*exchanges("responses"), *exchanges("chat"))]
    recorded = (google + others)[:1000]
    assert len(recorded) == 1000
    for name, one in recorded:
        stream = isinstance(one.get("sse"), str) and bool(one["sse"])
        body = json.dumps(one["request"]).encode()
        reply = one["sse"].encode() if stream else json.dumps(one.get("response")).encode()
        kind = "text/event-stream" if stream else "application/json"
        pieces = [reply[at : at + 700] for at in range(0, len(reply), 700)] if stream else [reply]
        answer_with(server, one["status"] or 200, {"content-type": kind}, *pieces)
        path = one["url_path"] or PATH
        status, headers, result = send(middle.base_url, f"/intercept/{name}{path}", body)
        assert (status, headers["content-type"], result) == (one["status"] or 200, kind, reply)
        assert (server.received[-1].body, server.received[-1].target) == (body, path)


@pytest.mark.parametrize(
    "body",
    [
        b'{"contents": [',
        b"\xff\xfe not json",
        b"",
        b"[1,2]",
        b'"x"',
        b'{"contents":[{"parts":[{"text":"' + b"a" * 20_000_000,
    ],
    ids=["malformed", "not JSON", "empty", "an array", "a string", "20 MB"],
)
def test_a_body_that_cannot_be_read_is_forwarded_as_it_is(server, middle, body):
    answer_with(server, 400, {"content-type": "application/json"}, b'{"error": "as the upstream says"}')
    status, _, result = send(middle.base_url, "/intercept/google" + PATH, body)
    assert (status, result) == (400, b'{"error": "as the upstream says"}')
    assert server.received[-1].body == body


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_an_unknown_path_and_any_method_are_forwarded_with_their_query(server, middle, method):
    answer_with(server, 418, {"x-odd": "1", "content-type": "text/plain"}, b"teapot")
    path = "/some/where%2Felse/v9?b=%20c&alt=media"
    status, headers, result = send(middle.base_url, "/intercept/vertex" + path, b"x" * 10, method)
    assert (status, headers["x-odd"], result) == (418, "1", b"teapot")
    assert (server.received[-1].method, server.received[-1].target, server.received[-1].body) == (
        method,
        path,
        b"x" * 10,
    )


def test_the_clients_own_credentials_go_on_and_the_gateways_never_do(server, middle):
    answer_with(server, 200, {"content-type": "application/json"}, b"{}")
    own = {
        "authorization": "Bearer mine",
        "x-goog-api-key": "mine-too",
        "x-goog-api-client": "me/1",
        "user-agent": "me",
        "cookie": "no",
        "x-forwarded-for": "1.2.3.4",
        "x-dragoman-key": "ours",
    }
    for name in ("google", "assist", "vertex"):
        send(middle.base_url, f"/intercept/{name}{PATH}?key=mine-as-well&x=1&access_token=mine", b"{}", headers=own)
        received = server.received[-1]
        assert received.target == PATH + "?key=mine-as-well&x=1&access_token=mine"
        result = dict(received.headers)
        assert {name: result.get(name) for name in list(own)[:4]} == dict(list(own.items())[:4])
        assert not {"cookie", "x-forwarded-for", "x-dragoman-key"} & set(result)
        assert "gateways-own" not in str(received.headers)
        until(lambda: middle.passed)
        passing = middle.passed[-1]
        assert "mine" not in str((passing.headers, passing.target, passing.target_left))


def test_the_first_event_is_forwarded_before_the_last_one_comes(server, middle):
    first, last = b'data: {"a":1}\r\n\r\n', b'data: {"b":2}\r\n\r\n'
    received = asyncio.Event()
    loops = []

    async def answer(exchange):
        loops.append(asyncio.get_running_loop())
        exchange.start(200, {"content-type": "text/event-stream"}, first=first)
        await received.wait()
        await exchange.end(last)

    server.answer = answer
    parts = urlsplit(middle.base_url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as link:
        head = f"POST /intercept/google{STREAM} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n"
        link.sendall(head.encode() + b"{}")
        result = b""
        while first not in result:
            result += link.recv(65536)
        assert last not in result
        loops[0].call_soon_threadsafe(received.set)
        while last not in result:
            result += link.recv(65536)


@pytest.mark.parametrize("name", ["nobody", "claude"])
def test_requests_go_only_to_configured_upstreams_with_the_gemini_api(middle, name):
    status, _, result = send(middle.base_url, f"/intercept/{name}{PATH}", b"{}")
    assert status == 404
    assert name in json.loads(result)["error"]["message"]


def test_an_unreachable_upstream_is_an_error_in_the_programs_dialect(tmp_path):
    with upstream() as gone:
        base_url = gone.base_url
    with between(base_url, tmp_path) as middle:
        status, _, result = send(middle.base_url, "/intercept/google" + PATH, b"{}")
        assert (status, json.loads(result)["error"]["code"]) == (503, 503)


def test_if_keys_are_configured_a_program_sends_one_in_addition_to_its_own(server, tmp_path):
    answer_with(server, 200, {"content-type": "application/json"}, b"{}")
    with between(server.base_url, tmp_path, keys=(KeyTable(key="ours", name="me"),)) as middle:
        path = "/intercept/google" + PATH
        for shown, expected in (
            ({"x-goog-api-key": "ours"}, 401),
            ({"x-goog-api-key": "mine"}, 401),
            ({"x-dragoman-key": "wrong"}, 401),
            ({"x-dragoman-key": "ours", "x-goog-api-key": "mine"}, 200),
        ):
            status, _, result = send(middle.base_url, path, b"{}", headers=shown)
            assert status == expected
            assert status == 200 or "in x-dragoman-key" in json.loads(result)["error"]["message"]
        assert dict(server.received[-1].headers)["x-goog-api-key"] == "mine"
