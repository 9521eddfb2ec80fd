"""Words reach both sides as they come, also where calls are taken out of what follows them."""

import asyncio
import gzip
import json
import socket
from urllib.parse import urlsplit

import openai
import pytest

from intercept.clients import CITY, MODEL, Caller
from intercept.surroundings import between, is_awaited, session_of, until, upstream
from intercept.test_untouched import sent


def chunk(part, **more):
    return {"candidates": [{"content": {"role": "model", "parts": [part]}, **more}]}


FIRST = b"data: " + json.dumps(chunk({"text": "Let me see. "})).encode() + b"\r\n\r\n"
CALL = json.dumps(chunk({"functionCall": {"name": "look", "args": {"city": "Rome"}}}, finishReason="STOP")).encode()


@pytest.fixture(scope="module")
def server():
    with upstream() as one:
        yield one


@pytest.fixture(scope="module")
def middle(server, tmp_path_factory):
    entries = {"me": {"upstream": "google"}}
    with between(server.base_url, tmp_path_factory.mktemp("pace"), intercept=entries) as one:
        yield one


def test_words_before_a_call_reach_client_and_caller_before_the_call_is_made(server, middle, pool):
    goes_on = asyncio.Event()
    loops = []

    async def answer(exchange):
        loops.append(asyncio.get_running_loop())
        exchange.start(200, {"content-type": "text/event-stream"}, first=FIRST)
        await goes_on.wait()
        await exchange.end(b"data: " + CALL + b"\r\n\r\n")

    server.answer = answer
    heard = []
    tool = {"type": "function", "name": "look", "parameters": CITY}

    def listen():
        sdk = middle.client(openai.OpenAI, "/v1")
        asked = {"model": MODEL, "input": "go", "conversation": "me:pace", "tools": [tool], "stream": True}
        heard.extend(sdk.responses.create(**asked))

    listening = pool.submit(listen)
    until(lambda: is_awaited(middle, "me", "pace"))
    parts = urlsplit(middle.base_url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as link:
        path = f"/intercept/me@pace/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"
        body = b'{"contents":[{"parts":[{"text":"hi"}]}]}'
        link.sendall(f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        told = b""
        while FIRST not in told:
            told += link.recv(65536)
        until(lambda: [event for event in heard if event.type == "response.output_text.delta"])
        assert b"Waiting" not in told
        assert not listening.done()
        loops[0].call_soon_threadsafe(goes_on.set)
        while b"Waiting for tools" not in told:
            told += link.recv(65536)
        assert b"functionCall" not in told
    listening.result(10)
    done = [event.item for event in heard if event.type == "response.output_item.done"]
    assert [item.type for item in done] == ["message", "function_call"]
    assert heard[-1].type == "response.completed"


def test_a_client_that_leaves_in_the_middle_does_not_keep_the_call_from_its_caller(server, middle, pool):
    goes_on = asyncio.Event()
    loops = []

    async def answer(exchange):
        loops.append(asyncio.get_running_loop())
        exchange.start(200, {"content-type": "text/event-stream"}, first=FIRST)
        await goes_on.wait()
        await exchange.end(b"data: " + CALL + b"\r\n\r\n")

    server.answer = answer
    caller = Caller(middle, "chat", "me:gone", {"look": CITY}, streamed=True)
    waiting = pool.submit(caller.ask, "go")
    until(lambda: is_awaited(middle, "me", "gone"))
    parts = urlsplit(middle.base_url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as link:
        path = f"/intercept/me@gone/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"
        body = b'{"contents":[{"parts":[{"text":"hi"}]}]}'
        link.sendall(f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        told = b""
        while FIRST not in told:
            told += link.recv(65536)
    loops[0].call_soon_threadsafe(goes_on.set)
    words, calls = waiting.result(10)
    assert (words, [call["name"] for call in calls]) == ("Let me see. ", ["look"])
    assert session_of(middle, "me", "gone").pending is not None


def test_a_reply_that_comes_packed_all_the_same_is_told_plain(server, middle):
    async def answer(exchange):
        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        await exchange.send(200, headers, gzip.compress(b'{"models": []}'))

    server.answer = answer
    status, headers, told = sent(middle.base_url, "/intercept/me/v1beta/models", method="GET")
    assert (status, told) == (200, b'{"models": []}')
    assert "content-encoding" not in headers
    assert dict(server.heard[-1].headers)["accept-encoding"] == "identity"
