"""If an upstream rejects a rewritten request, the program still gets an answer, and the log has the reason."""

import json
import logging

import openai
import pytest

from intercept.clients import CITY, PROMPT, Caller, Client
from intercept.surroundings import between, session_of, start_caller, until


@pytest.fixture(scope="module")
def hasty(simulator, tmp_path_factory):
    """A gateway with little patience."""
    entries = {
        "me": {"upstream": "google", "strip": "none", "timeout": 0.3, "result_timeout": 0.3},
        "told": {"upstream": "google", "system": "Be short."},
    }
    with between(simulator.base_url, tmp_path_factory.mktemp("refused"), intercept=entries) as one:
        yield one


@pytest.mark.parametrize(
    "more",
    [{"cachedContent": "cachedContents/one"}, {"tools": [{"googleSearch": {}}]}],
    ids=["cached content", "a tool of Google's own"],
)
def test_a_client_whose_request_takes_no_tools_is_answered_as_without_them(hasty, pool, simulator, caplog, more):
    session = next(iter(more))
    client = Client(f"{hasty.base_url}/intercept/me@{session}")
    caller = Caller(hasty, "responses", f"me:{session}", {"look": CITY})
    waiting = start_caller(pool, hasty, "me", session, caller.ask, "go")
    body = client.request("call look", **more)
    with caplog.at_level(logging.WARNING, "dragoman.intercept"):
        client.send(body)
    assert client.status == 200
    assert simulator.requests[-1].body == body
    assert "is forwarded unchanged: the upstream rejected it" in caplog.text
    until(lambda: hasty.passed and hasty.passed[-1].came == body)
    passed = hasty.passed[-1]
    assert (passed.rules, passed.left, passed.captured) == ((), body, ())
    with pytest.raises(openai.BadRequestError, match="rule: gemini"):
        waiting.result(10)


def test_instructions_that_a_request_cannot_have_do_not_break_it(hasty, simulator):
    client = Client(f"{hasty.base_url}/intercept/told")
    body = client.request("hello", cachedContent="cachedContents/one")
    client.send(body)
    assert (client.status, simulator.requests[-1].body) == (200, body)
    assert "Be short." in json.dumps(json.loads(simulator.requests[-2].body))


def test_a_request_that_is_refused_either_way_is_refused_with_the_clients_own_error(hasty, simulator):
    client = Client(f"{hasty.base_url}/intercept/told")
    client.send(client.request("hello", cachedContent=7))
    assert client.status == 400
    assert "Be short." not in json.dumps(json.loads(simulator.requests[-1].body))


def test_results_are_still_there_after_a_request_that_could_not_have_them(hasty, pool, simulator):
    client = Client(f"{hasty.base_url}/intercept/me@kept")
    caller = Caller(hasty, "responses", "me:kept", {"look": CITY})
    waiting = start_caller(pool, hasty, "me", "kept", caller.ask, "go")
    client.say("call look")
    calls = waiting.result(10)[1]
    waiting = start_caller(pool, hasty, "me", "kept", caller.answer, [(calls[0], "rain")])
    forgetful = Client(client.base_url)
    forgetful.send(forgetful.request("hello", cachedContent="cachedContents/one"))
    assert forgetful.status == 200
    assert session_of(hasty, "me", "kept").build_plan(b"another").ready is not None
    assert "rain" in client.say(PROMPT)
    waiting.exception(10)
