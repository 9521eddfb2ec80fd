"""Requests that the vendor accepted are accepted; those it rejected are rejected, with its own error text."""

from collections import Counter

import pytest

from dragoman.simulator.apis.api import AcceptedRequest
from dragoman.simulator.apis.rule import Violation
from shelf import exchanges, needs_shelf
from simulator.apis.messages.bodies import client_requests, judge, load_recordings, sample_requests

NOT_TO_BE_JUDGED = {"anthropic/ruby-llm-0027": "the prompt that was too long is cut out of the recording"}
OTHER_WORDS = {"anthropic/braintrust-sdk-ruby-0001": "two things are wrong, and the vendor tells the other one first"}
SIGNED_BY_THE_VENDOR = {"messages.thinking-signature": 22, "messages.search-sealed": 6}
"""How many recorded requests these rules reject unless `recorded` is set: only the vendor can verify its signatures."""
REFUSED_CLIENTS = {
    "sdk-anthropic/04": "the stand-in it was captured on let it think and answered without a thought, as no vendor does",
    "sdk-anthropic/07": "threads are not kept; the tool runner then sends everything",
    "sdk-anthropic/08": "threads are not kept; the tool runner then sends everything",
    "sdk-js/07": "threads are not kept; the tool runner then sends everything",
    "sdk-js/08": "threads are not kept; the tool runner then sends everything",
}


@needs_shelf
@pytest.mark.parametrize("name", sample_requests())
def test_a_sample_is_accepted(name):
    body, situation = sample_requests()[name]
    assert isinstance(judge(body, **situation), AcceptedRequest)


@needs_shelf
def test_what_clients_send_is_accepted():
    judged = {name: judge(body, **situation) for name, (body, situation) in client_requests().items()}
    assert len(judged) > 40
    assert {name for name, found in judged.items() if isinstance(found, Violation)} == set(REFUSED_CLIENTS)


@needs_shelf
def test_what_the_vendor_took_is_accepted():
    requests = load_recordings(200)
    assert len(requests) > 600
    found = {name: judge(body, **situation) for name, (body, situation) in requests.items()}
    assert not {name: one for name, one in found.items() if isinstance(one, Violation)}


@needs_shelf
def test_without_the_setting_only_the_vendors_own_signatures_are_refused():
    found = [judge(body, **{**situation, "recorded": False}) for body, situation in load_recordings(200).values()]
    assert Counter(one.rule for one in found if isinstance(one, Violation)) == SIGNED_BY_THE_VENDOR


@needs_shelf
def test_requests_that_the_vendor_rejected_are_rejected_with_its_wording():
    words = {one["id"]: one["response"]["error"]["message"] for one in exchanges("messages") if one["status"] == 400}
    requests = load_recordings(400)
    assert set(words) == set(requests)
    for name, (body, situation) in requests.items():
        found = judge(body, **situation)
        if name in NOT_TO_BE_JUDGED:
            assert isinstance(found, AcceptedRequest)
            continue
        assert isinstance(found, Violation), name
        if name not in OTHER_WORDS:
            assert found.message == words[name]
