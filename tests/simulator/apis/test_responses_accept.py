"""Requests that the vendor accepted are accepted, and those it rejected are rejected."""

import pytest

from dragoman.simulator.apis.rule import Violation
from shelf import exchanges, needs_shelf
from simulator.apis.responses.bodies import (
    MOCKED,
    asks,
    client_requests,
    judge,
    load_recordings,
    require_accepted,
    sample_requests,
)


@needs_shelf
def test_every_sample_is_accepted():
    requests = sample_requests()
    assert len(requests) > 10
    assert {
        name: found for name, body in requests.items() if isinstance(found := judge(body, recorded=True), Violation)
    } == {}


@needs_shelf
def test_every_request_of_a_real_client_is_accepted():
    requests = client_requests()
    assert len(requests) > 40
    assert {
        name: found for name, body in requests.items() if isinstance(found := judge(body, recorded=True), Violation)
    } == {}


@needs_shelf
def test_recorded_requests_that_the_vendor_took_are_accepted():
    requests = load_recordings(200)
    assert len(requests) > 600
    wrong = {
        name: found for name, body in requests.items() if isinstance(found := judge(body, recorded=True), Violation)
    }
    assert wrong.keys() == MOCKED.keys()


@needs_shelf
def test_recorded_requests_that_the_vendor_rejected_are_rejected_with_its_wording():
    output = {
        "openai_responses/mirascope-0057": "Invalid schema for function 'get_current_weather': In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'unit'.",
        "openai_responses/pydantic-ai-0078": "The file type you uploaded is not supported. Please try again with a pdf",
        "openai_responses/pydantic-ai-0187": "Item 'rs_68c42de022c881948db7ed1cc2529f2e0202c9ad459e0d23' of type 'reasoning' was provided without its required following item.",
    }
    unknown = {
        "openai_responses/mirascope-0003": "this-model-does-not-exist-12345",
        "openai_responses/mirascope-0004": "this-model-does-not-exist-12345",
        "openai_responses/mirascope-0066": "invalid-model-that-does-not-exist-12345",
        "openai_responses/opentelemetry-python-contrib-0001": "this-model-does-not-exist",
        "openai_responses/rig-0003": "gpt-nonexistent-model-for-error-edge",
    }
    output |= {name: f"The requested model '{model}' does not exist." for name, model in unknown.items()}
    refusals = {name: judge(body, recorded=True) for name, body in load_recordings(400).items()}
    assert {name: getattr(found, "message", "") for name, found in refusals.items()} == output


@needs_shelf
def test_recorded_requests_for_a_count_are_accepted():
    counted = [row["request"] for row in exchanges("responses") if row["op"] == "count_tokens" and row["status"] == 200]
    assert counted
    for body in counted:
        require_accepted(body, recorded=True)


@needs_shelf
def test_foreign_signatures_pass_only_in_recordings():
    body = sample_requests()["thinking_tool.followup.request.json"]
    require_accepted(body, recorded=True)
    found = judge(body)
    assert isinstance(found, Violation)
    assert found.rule == "responses.encrypted-content"


@pytest.mark.parametrize("name", ["my-own-model", "gpt-7-nova", "grok-4.3"])
def test_an_unknown_model_is_taken_for_a_new_one(name):
    assert require_accepted(asks(model=name)).model_request.thinks


def test_a_model_that_does_not_exist_is_refused():
    found = judge(asks(model="no-such-model"))
    assert isinstance(found, Violation)
    assert (found.status, found.rule) == (400, "responses.model-found")
    assert found.message == "The requested model 'no-such-model' does not exist."


def test_what_is_not_json_is_refused():
    from dragoman.simulator.apis.conversation import TokenSigner
    from dragoman.simulator.apis.responses import API
    from dragoman.simulator.apis.rule import CheckContext

    for body in (b"", b"{", b"[]", b'"text"', b"\xff\xfe", b"[" * 100_000):
        found = API.accept(body, CheckContext(model=""), TokenSigner())
        assert isinstance(found, Violation)
        assert found.rule == "responses.json"
