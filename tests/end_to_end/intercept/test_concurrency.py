"""Concurrent and late requests: programs that disconnect, send two requests at once, or reconnect late."""

import json

import pytest

from intercept.clients import CITY, PROMPT, Caller, Client, last_request
from intercept.surroundings import Gates, between, session_of, start_caller, until


def event(*parts, **more):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **more}
    return b"data: " + json.dumps({"candidates": [candidate], "usageMetadata": {}}).encode() + b"\r\n\r\n"


@pytest.fixture
def gated(server, tmp_path):
    with between(server.base_url, tmp_path, intercept={"me": {"upstream": "google", "timeout": 0.5}}) as one:
        yield one


def test_a_client_that_has_left_when_it_is_refused_leaves_its_caller_a_deadline(server, gated, pool):
    gates = Gates(server, {"one": (503, b"", b'{"error": {"code": 503, "message": "not now"}}')})
    client = Client(f"{gated.base_url}/intercept/me", "events")
    caller = Caller(gated, "responses", "me", {"look": CITY})
    waiting = start_caller(pool, gated, "me", "", caller.ask, "go")
    with client.sending(client.request("one")):
        until(lambda: gates.begun)
    gates.open("one")
    assert "not now" in str(waiting.exception(10))


@pytest.mark.parametrize("second", ["calls", "text"])
def test_calls_of_a_program_with_two_concurrent_requests_are_not_lost(server, gated, pool, second):
    call = {"functionCall": {"name": "look", "args": {"city": "Paris"}, "id": "a"}}
    end = {"calls": {"functionCall": {"name": "look", "args": {}, "id": "b"}}, "text": {"text": "aside"}}
    answers = {
        "one": (200, event(call), event({"text": ""}, finishReason="STOP")),
        "two": (200, event({"text": "so "}), event(end[second], finishReason="STOP")),
    }
    gates = Gates(server, answers)
    clients = {name: Client(f"{gated.base_url}/intercept/me", "events") for name in answers}
    caller = Caller(gated, "responses", "me", {"look": CITY})
    waiting = start_caller(pool, gated, "me", "", caller.ask, "go")
    other = pool.submit(clients["two"].say, "two")
    until(lambda: gates.begun == ["two"])
    first = pool.submit(clients["one"].say, "one")
    until(lambda: session_of(gated, "me").pending_group is not None)
    gates.open("two")
    other.result(10)
    gates.open("one")
    first.result(10)
    assert [one["id"] for one in waiting.result(10)[1]] == ["a"]


@pytest.mark.parametrize("form", ["whole", "events", "items"])
def test_two_identical_concurrent_requests_get_the_results_of_the_calls(simulator, pool, tmp_path, form):
    with between(simulator.base_url, tmp_path, intercept={"me": {"upstream": "google"}}) as middle:
        client, other = [Client(f"{middle.base_url}/intercept/me", form) for _ in range(2)]
        caller = Caller(middle, "responses", "me", {"look": CITY})
        for _ in range(2):
            waiting = start_caller(pool, middle, "me", "", caller.ask, "go")
            # Nobody knows which of the two is first, and nobody needs to.
            twin = pool.submit(other.send, client.request("call look"))
            client.say("call look")
            twin.result(10)
            (call,) = waiting.result(10)[1]
            waiting = start_caller(pool, middle, "me", "", caller.answer, [(call, "rain")])
            assert client.say(PROMPT) == "They said: rain"
            assert waiting.result(10)[0] == "They said: rain"
        client.say("and now?")
    assert json.dumps(last_request(simulator)).count('"functionResponse"') == 2
    assert "Waiting" not in json.dumps(last_request(simulator))


def test_an_answered_placeholder_stays_rewritten_for_a_client_that_comes_back_after_long(simulator, pool, tmp_path):
    entries = {"me": {"upstream": "google", "idle": 3600.0}}
    with between(simulator.base_url, tmp_path, intercept=entries) as middle:
        client = Client(f"{middle.base_url}/intercept/me")
        caller = Caller(middle, "responses", "me", {"look": CITY})
        client.say("hello")
        waiting = start_caller(pool, middle, "me", "", caller.ask, "go")
        client.say("call look")
        waiting = start_caller(pool, middle, "me", "", caller.answer, [(waiting.result(10)[1][0], "rain")])
        client.say(PROMPT)
        waiting.result(10)
        # It is written down after the client has its answer, so what is known is forgotten only then.
        until(lambda: session_of(middle, "me").saved_state == session_of(middle, "me").state)
        session_of(middle, "me").used -= 4000

        def is_rewritten():
            client.send(client.request("and now?"))
            return "functionResponse" in json.dumps(last_request(simulator))

        until(is_rewritten)
    assert "Waiting" not in json.dumps(last_request(simulator))


def test_two_identical_concurrent_requests_are_one_answer_and_late_calls_do_not_block(server, gated, pool):
    call = {"functionCall": {"name": "look", "args": {"city": "Paris"}, "id": "a"}}
    gates = Gates(server, {"one": (200, event({"text": "so "}), event({"text": "be it"}, finishReason="STOP"))})
    client, retry = (Client(f"{gated.base_url}/intercept/me", "events") for _ in range(2))
    caller = Caller(gated, "responses", "me", {"look": CITY})
    waiting = start_caller(pool, gated, "me", "", caller.ask, "go")
    first = pool.submit(client.say, "one")
    until(lambda: gates.begun == ["one"])
    late = Gates(server, {"one": (200, event({"text": "again "}), event(call, finishReason="STOP"))})
    again = pool.submit(retry.say, "one")
    until(lambda: late.begun == ["one"])
    gates.open("one")
    assert first.result(10) == waiting.result(10)[0] == "so be it"
    late.open("one")
    assert "Waiting for tools" in again.result(10)
    assert session_of(gated, "me").pending_group is None


def test_a_retry_fails_with_the_request_it_repeats(server, gated, pool):
    gates = Gates(server, {"one": (503, b"", b'{"error": {"code": 503, "message": "not now"}}')})
    client, retry = (Client(f"{gated.base_url}/intercept/me", "events") for _ in range(2))
    caller = Caller(gated, "responses", "me", {"look": CITY})
    waiting = start_caller(pool, gated, "me", "", caller.ask, "go")
    first = pool.submit(client.send, client.request("one"))
    until(lambda: gates.begun == ["one"])
    late = Gates(server, {"one": (200, event({"text": "so "}), event({"text": "be it"}, finishReason="STOP"))})
    again = pool.submit(retry.say, "one")
    until(lambda: late.begun == ["one"])
    gates.open("one")
    first.result(10)
    late.open("one")
    assert again.result(10) == waiting.result(10)[0] == "so be it"


@pytest.mark.parametrize("dialect", ["responses", "chat", "messages", "gemini"])
def test_started_text_ends_where_calls_of_another_request_end_the_turn(server, gated, pool, dialect):
    call = {"functionCall": {"name": "look", "args": {"city": "Paris"}, "id": "a"}}
    answers = {
        "one": (200, event({"text": "so "}), event({"text": "be it"}, finishReason="STOP")),
        "two": (200, event({"text": ""}), event(call, finishReason="STOP")),
    }
    gates = Gates(server, answers)
    client, other = (Client(f"{gated.base_url}/intercept/me", "events") for _ in range(2))
    caller = Caller(gated, dialect, "me", {"look": CITY}, streamed=True)
    waiting = start_caller(pool, gated, "me", "", caller.ask, "go")
    first = pool.submit(client.say, "one")
    until(lambda: gates.begun == ["one"])
    second = pool.submit(other.say, "two")
    until(lambda: gates.begun == ["one", "two"])
    gates.open("two")
    second.result(10)
    words, calls = waiting.result(10)
    assert (words, [one["id"] for one in calls]) == ("so ", ["a"])
    gates.open("one")
    first.result(10)


def test_a_retry_that_overtakes_a_stalled_reply_is_the_answer(server, gated, pool):
    gates = Gates(server, {"one": (200, event({"text": "so "}), event({"text": "be it"}, finishReason="STOP"))})
    client, retry = (Client(f"{gated.base_url}/intercept/me", "events") for _ in range(2))
    caller = Caller(gated, "responses", "me", {"look": CITY}, streamed=True)
    waiting = start_caller(pool, gated, "me", "", caller.ask, "go")
    first = pool.submit(client.say, "one")
    until(lambda: gates.begun == ["one"])
    late = Gates(server, {"one": (200, event({"text": "thus "}), event({"text": "it is"}, finishReason="STOP"))})
    again = pool.submit(retry.say, "one")
    until(lambda: late.begun == ["one"])
    late.open("one")
    assert again.result(10) == "thus it is"
    assert waiting.result(10)[0].endswith("thus it is")
    gates.open("one")
    first.result(10)
