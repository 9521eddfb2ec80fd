"""Words reach both sides as they come, also where calls are taken out of what follows them."""

import gzip
import json

import openai
import pytest

from end_to_end.intercept.test_passthrough import send
from intercept.clients import CITY, MODEL, Caller, Client
from intercept.surroundings import Gates, between, is_awaited, session_of, until


def event(part, **more):
    result = {"candidates": [{"content": {"role": "model", "parts": [part]}, **more}]}
    return b"data: " + json.dumps(result).encode() + b"\r\n\r\n"


FIRST = event({"text": "Let me see. "})
CALL = event({"functionCall": {"name": "look", "args": {"city": "Rome"}}}, finishReason="STOP")


@pytest.fixture(scope="module")
def middle(server, tmp_path_factory):
    entries = {"me": {"upstream": "google"}}
    with between(server.base_url, tmp_path_factory.mktemp("pace"), intercept=entries) as one:
        yield one


def test_text_before_a_call_reaches_program_and_caller_before_the_call(server, middle, pool):
    gates = Gates(server, {"hi": (200, FIRST, CALL)})
    collected = []
    tool = {"type": "function", "name": "look", "parameters": CITY}

    def listen():
        sdk = middle.client(openai.OpenAI, "/v1")
        asked = {"model": MODEL, "input": "go", "conversation": "me:pace", "tools": [tool], "stream": True}
        collected.extend(sdk.responses.create(**asked))

    listening = pool.submit(listen)
    until(lambda: is_awaited(middle, "me", "pace"))
    client = Client(f"{middle.base_url}/intercept/me@pace", "events")
    with client.sending(client.request("hi")) as link:
        result = b""
        while FIRST not in result:
            result += link.recv(65536)
        until(lambda: [event for event in collected if event.type == "response.output_text.delta"])
        assert b"Waiting" not in result
        assert not listening.done()
        gates.open("hi")
        while b"Waiting for tools" not in result:
            result += link.recv(65536)
        assert b"functionCall" not in result
    listening.result(10)
    done = [event.item for event in collected if event.type == "response.output_item.done"]
    assert [item.type for item in done] == ["message", "function_call"]
    assert collected[-1].type == "response.completed"


def test_a_client_that_leaves_in_the_middle_does_not_keep_the_call_from_its_caller(server, middle, pool):
    gates = Gates(server, {"hi": (200, FIRST, CALL)})
    caller = Caller(middle, "chat", "me:gone", {"look": CITY}, streamed=True)
    waiting = pool.submit(caller.ask, "go")
    until(lambda: is_awaited(middle, "me", "gone"))
    client = Client(f"{middle.base_url}/intercept/me@gone", "events")
    with client.sending(client.request("hi")) as link:
        result = b""
        while FIRST not in result:
            result += link.recv(65536)
    gates.open("hi")
    words, calls = waiting.result(10)
    assert (words, [call["name"] for call in calls]) == ("Let me see. ", ["look"])
    assert session_of(middle, "me", "gone").pending_group is not None


def test_a_reply_that_is_compressed_nevertheless_is_decompressed(server, middle):
    async def answer(exchange):
        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        await exchange.send(200, headers, gzip.compress(b'{"models": []}'))

    server.answer = answer
    status, headers, result = send(middle.base_url, "/intercept/me/v1beta/models", method="GET")
    assert (status, result) == (200, b'{"models": []}')
    assert "content-encoding" not in headers
    assert dict(server.received[-1].headers)["accept-encoding"] == "identity"
