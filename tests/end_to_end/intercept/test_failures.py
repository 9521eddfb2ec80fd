"""What goes wrong between a client and a caller: retries, leaving, silence, bodies that cannot be read."""

import asyncio
import json
import logging
import socket
from urllib.parse import urlsplit

import anthropic
import openai
import pytest

from dragoman.config import Config
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.router import Routes, UpstreamSet
from dragoman.http.client import Client as HttpClient
from dragoman.http.message import Request
from dragoman.intercept.settings import InterceptTable
from dragoman.server.interception import Interception
from dragoman.sessions.store import open_store
from intercept.clients import CITY, MODEL, PROMPT, Caller, Client, last_request, post
from intercept.surroundings import between, is_awaited, session_of, start_caller, until


def capture(pool, middle, session, *, form="whole", text="call look", entry="me", **tools):
    """Bring a client to where its calls wait for results: the client, the caller and the calls."""
    client = Client(f"{middle.base_url}/intercept/{entry}@{session}", form)
    caller = Caller(middle, "responses", f"{entry}:{session}", tools or {"look": CITY})
    waiting = start_caller(pool, middle, entry, session, caller.ask, "go")
    client.say(text)
    return client, caller, waiting.result(10)[1]


def text_of(chunks):
    return chunks[0]["candidates"][0]["content"]["parts"][0]["text"]


def parts_of(simulator):
    return [[next(iter(part)) for part in turn["parts"]] for turn in last_request(simulator)["contents"]]


@pytest.mark.parametrize("form", ["whole", "events", "items"])
def test_a_retry_while_calls_wait_gets_the_same_placeholder(middle, pool, simulator, form):
    client, _, _ = capture(pool, middle, f"retried-{form}", form=form)
    count = len(simulator.requests)
    again = Client(client.base_url, form)
    assert again.say("call look") == client.history[1]["parts"][0]["text"]
    assert len(simulator.requests) == count


def test_results_are_put_back_when_the_client_sends_the_same_again(middle, pool, simulator):
    client, caller, calls = capture(pool, middle, "again")
    waiting = start_caller(pool, middle, "me", "again", caller.answer, [(calls[0], "rain")])
    body = client.request(PROMPT)
    first = client.send(body)
    waiting.result(10)
    for _ in range(2):
        assert text_of(client.send(body)) == text_of(first)
        assert parts_of(simulator) == [["text"], ["functionCall"], ["functionResponse"]]


def test_results_are_put_back_after_the_upstream_failed(middle, pool, simulator):
    client, caller, calls = capture(pool, middle, "failed")
    waiting = start_caller(pool, middle, "me", "failed", caller.answer, [(calls[0], "rain")])
    path = Client.path
    try:
        Client.path = property(lambda _: f"/v1beta/models/{MODEL}~503:generateContent")
        client.send(client.request(PROMPT))
    finally:
        Client.path = path
    assert client.status == 503
    assert not waiting.done()
    assert "rain" in client.say(PROMPT)
    assert "rain" in waiting.result(10)[0]
    assert parts_of(simulator) == [["text"], ["functionCall"], ["functionResponse"]]


def test_a_client_that_remembers_nothing_has_its_conversation_put_back_once(middle, pool, simulator):
    client, caller, calls = capture(pool, middle, "forgetful")
    waiting = start_caller(pool, middle, "me", "forgetful", caller.answer, [(calls[0], "rain")])
    body = Client(client.base_url).request(PROMPT)
    client.send(body)
    assert "rain" in waiting.result(10)[0]
    assert parts_of(simulator) == [["text"], ["functionCall"], ["functionResponse"]]
    client.send(body)
    assert parts_of(simulator) == [["text"], ["functionCall"], ["functionResponse"]]
    Client(client.base_url).say("something new")
    assert parts_of(simulator) == [["text"]]


def test_a_program_that_disconnects_before_the_calls_can_reconnect_for_the_answer(middle, pool, simulator):
    client = Client(f"{middle.base_url}/intercept/me@left", "events")
    caller = Caller(middle, "responses", "me:left", {"look": CITY})
    waiting = start_caller(pool, middle, "me", "left", caller.ask, "go")
    body = client.request("call look")
    with client.sending(body) as link:
        # Gone before a byte of the reply is read.
        link.shutdown(socket.SHUT_RDWR)
    _, calls = waiting.result(10)
    assert [one["name"] for one in calls] == ["look"]
    # Its retry is answered with the placeholder, or, once there are results, with what the model says to these.
    waiting = start_caller(pool, middle, "me", "left", caller.answer, [(calls[0], "rain")])
    assert "rain" in client.say("call look")
    assert "rain" in waiting.result(10)[0]
    assert parts_of(simulator) == [["text"], ["functionCall"], ["functionResponse"]]


def test_a_caller_that_lost_the_answer_gets_it_by_a_retry(middle, pool, simulator):
    client = Client(f"{middle.base_url}/intercept/me@lost")
    caller = Caller(middle, "gemini", "me:lost", {"look": CITY})
    declared = [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": CITY}]}]
    body = json.dumps({"model": MODEL, "conversation": "me:lost", "input": "go", "tools": declared}).encode()
    parts = urlsplit(middle.base_url)
    with socket.create_connection((parts.hostname, parts.port)) as link:
        head = f"POST /v1/gemini HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
        link.sendall(head.encode() + body)
        until(lambda: is_awaited(middle, "me", "lost"))
    until(lambda: not session_of(middle, "me", "lost").turn.is_followed)
    client.say("call look")
    count = len(simulator.requests)
    result = post(f"{middle.base_url}/v1/gemini", json.loads(body))
    call = result[0]["candidates"][0]["content"]["parts"][-1]["functionCall"]
    assert (call["name"], len(simulator.requests)) == ("look", count)
    waiting = start_caller(pool, middle, "me", "lost", caller.answer, [({"id": call["id"], "name": "look"}, "rain")])
    client.say(PROMPT)
    assert "rain" in waiting.result(10)[0]


@pytest.fixture(scope="module")
def hasty(simulator, tmp_path_factory):
    """A gateway with little patience."""
    entry = {"upstream": "google", "timeout": 0.2, "result_timeout": 0.3}
    with between(simulator.base_url, tmp_path_factory.mktemp("hasty"), intercept={"me": entry}) as one:
        yield one


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", ["responses", "chat", "messages"])
def test_a_program_that_sends_no_request_is_an_error_in_the_callers_dialect(hasty, dialect, streamed):
    errors = (openai.APIStatusError, anthropic.APIStatusError)
    caller = Caller(hasty, dialect, f"me:silent-{dialect}-{streamed}", {"look": CITY}, streamed=streamed)
    with pytest.raises(errors, match="sent no request within") as error:
        caller.ask("go")
    assert error.value.status_code == 504


def test_results_that_never_come_leave_the_client_free_and_are_refused_when_they_are_late(hasty, pool, simulator):
    client, caller, calls = capture(pool, hasty, "never")
    until(lambda: session_of(hasty, "me", "never").pending_group is None)
    assert client.say("well then") == "You said: well then"
    assert parts_of(simulator) == [["text"], ["text"], ["text"]]
    with pytest.raises(openai.BadRequestError, match="have expired: no results within"):
        caller.answer([(calls[0], "too late")])
    waiting = start_caller(pool, hasty, "me", "never", caller.ask, "go")
    assert "Waiting for tools" in client.say("call look")
    assert [one["name"] for one in waiting.result(10)[1]] == ["look"]


def test_results_that_no_client_fetches_are_a_timeout_and_still_there_for_the_next(hasty, pool):
    client, caller, calls = capture(pool, hasty, "unfetched")
    with pytest.raises(openai.APIStatusError, match=r"sent no request within 0.3 seconds"):
        caller.answer([(calls[0], "rain")])
    waiting = start_caller(pool, hasty, "me", "unfetched", caller.answer, [(calls[0], "sun")])
    assert "sun" in client.say(PROMPT)
    assert "sun" in waiting.result(10)[0]
    with pytest.raises(openai.BadRequestError, match="already have results"):
        caller.answer([(calls[0], "snow")])


@pytest.mark.parametrize("dialect", ["responses", "chat", "messages"])
def test_an_unknown_call_is_refused_by_name(middle, pool, dialect):
    session = f"unknown-{dialect}"
    caller = Caller(middle, dialect, f"me:{session}", {"look": CITY})
    made_up = {"id": "call_nobody", "name": "look", "arguments": "{}"}
    caller.history.append("go")
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError), match="call_nobody"):
        caller.answer([(made_up, "rain")])
    _, known, calls = capture(pool, middle, f"{session}-known")
    with pytest.raises(openai.BadRequestError, match="call_nobody"):
        known.answer([(calls[0], "rain"), (made_up, "rain")])
    with pytest.raises(openai.BadRequestError, match=calls[0]["id"]):
        known.ask("something else")


def test_results_for_some_of_the_calls_only_are_refused_by_the_missing_name(middle, pool):
    _, caller, calls = capture(pool, middle, "some", text="call one, two", one=CITY, two=CITY)
    with pytest.raises(openai.BadRequestError, match=f"no result for '{calls[1]['id']}'"):
        caller.answer([(calls[0], "rain")])


@pytest.mark.parametrize(
    "body",
    [
        b'{"contents": [',
        b"\xff\xfe",
        b"[1]",
        b'{"contents": 7}',
        b'{"contents": [{"parts": "x"}], "tools": 3}',
        b'{"contents": [{"role": 5, "parts": [{"text": 1}]}], "toolConfig": []}',
        b'{"contents":[{"parts":[{"text":"' + b"a" * 20_000_000,
    ],
    ids=["malformed", "not JSON", "an array", "no contents", "odd tools", "odd turns", "20 MB"],
)
def test_a_plan_that_does_not_apply_forwards_the_request_unchanged_and_is_logged(middle, pool, simulator, caplog, body):
    caller = Caller(middle, "responses", "me:odd", {"look": CITY})
    waiting = start_caller(pool, middle, "me", "odd", caller.ask, "go")
    client = Client(f"{middle.base_url}/intercept/me@odd")
    with caplog.at_level(logging.WARNING, "dragoman.intercept"):
        client.send(body)
    is_same = simulator.requests[-1].body == body
    assert is_same
    assert client.status == 400
    assert "is forwarded unchanged" in caplog.text
    assert client.say("hello") == waiting.result(10)[0]


def test_a_program_that_continues_alone_keeps_its_own_tools_and_nothing_is_captured(middle, pool, simulator):
    client, caller, calls = capture(pool, middle, "alone")
    waiting = start_caller(pool, middle, "me", "alone", caller.answer, [(calls[0], "rain")])
    client.say(PROMPT)
    waiting.result(10)
    client.tools = [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": CITY}]}]
    client.say("call look")
    assert last_request(simulator)["tools"] == client.tools
    assert client.history[-1]["parts"][0]["functionCall"]["name"] == "look"
    assert parts_of(simulator)[:3] == [["text"], ["functionCall"], ["functionResponse"]]


def test_sessions_need_a_process_to_themselves(tmp_path):
    config = Config(intercept={"me": InterceptTable(upstream="simulator")})
    store = open_store(f"sqlite:///{tmp_path}/s.db")
    alone = Interception(config, Routes(UpstreamSet({}, {}), {}), HttpClient(), store, is_single_process=False)
    request = Request("POST", "/v1/chat/completions", (("x-dragoman-conversation", "me:x"),), b"{}")
    ask = ClientRequest(dialect="chat", call=Call(b"{}", "m"))
    with pytest.raises(Problem, match="does not work with several workers"):
        asyncio.run(alone.find_bound_session(ask, request, None))
    assert asyncio.run(alone.find_bound_session(ask, Request("POST", "/v1/chat/completions", (), b"{}"), None)) is None
    asyncio.run(store.close())


def test_what_was_captured_and_answered_outlives_the_process(simulator, pool, tmp_path):
    entries = {"me": {"upstream": "google"}}
    with between(simulator.base_url, tmp_path, intercept=entries) as first:
        client, _, calls = capture(pool, first, "kept")
        until(lambda: first.passed)
    with between(simulator.base_url, tmp_path, intercept=entries) as second:
        client.base_url = f"{second.base_url}/intercept/me@kept"
        count = len(simulator.requests)
        assert client.say("are you there?") == client.history[1]["parts"][0]["text"]
        assert len(simulator.requests) == count
        caller = Caller(second, "responses", "me:kept", {"look": CITY})
        waiting = start_caller(pool, second, "me", "kept", caller.answer, [(calls[0], "rain")])
        assert "rain" in client.say(PROMPT)
        assert "rain" in waiting.result(10)[0]
    with between(simulator.base_url, tmp_path, intercept=entries) as third:
        client.base_url = f"{third.base_url}/intercept/me@kept"
        client.say("and now?")
    assert parts_of(simulator)[:3] == [["text"], ["functionCall"], ["functionResponse"]]
    assert "Waiting" not in json.dumps(last_request(simulator))


def test_an_incomplete_reply_is_no_call_and_the_program_may_retry(middle, pool, simulator):
    client = Client(f"{middle.base_url}/intercept/me@broken", "events")
    caller = Caller(middle, "responses", "me:broken", {"look": CITY})
    waiting = start_caller(pool, middle, "me", "broken", caller.ask, "go")
    path = Client.path
    try:
        Client.path = property(lambda _: f"/v1beta/models/{MODEL}~cut,after=0:streamGenerateContent?alt=sse")
        with pytest.raises(Exception, match=r"."):
            client.send(client.request("call look"))
    finally:
        Client.path = path
    assert not waiting.done()
    assert session_of(middle, "me", "broken").pending_group is None
    client.say("call look")
    assert [one["name"] for one in waiting.result(10)[1]] == ["look"]
    assert len(simulator.requests) > 1
