import json

import pytest
from msgspec import structs

import shelf
from dragoman.simulator.apis.api import AcceptedRequest
from dragoman.simulator.apis.gemini import API
from dragoman.simulator.apis.rule import CheckContext, Violation
from simulator.apis.gemini.asking import (
    NEW,
    SIGNER,
    captures,
    judge,
    load_recordings,
    recordings,
    require_accepted,
    require_rejected,
    situation,
    unpack,
    user,
)

NOT_IN_THE_BODY = {
    "gemini/crewai-0029": "the key",
    "gemini/mirascope-0001": "the key",
    "gemini/newrelic-python-agent-0005": "the key",
    "gemini/rig-0034": "the key",
    "gemini/ruby-llm-0013": "the key",
    "gemini/pydantic-ai-0132": "a URL that forbids robots",
    "gemini/pydantic-ai-0152": "a URL that forbids robots",
    "gemini/pydantic-ai-0170": "a URL that forbids robots",
}
"""Recorded rejections that cannot be predicted from the body alone."""
ONLY_AS_RECORDINGS = {
    "gemini.signature-foreign": "Google issued the signature, and nobody else can check it",
}
"""Rules that reject requests which Google answered, unless they are sent as recordings, and why they stay."""


def accept(body, given):
    return API.accept(body, given, SIGNER)


@shelf.needs_shelf
@pytest.mark.parametrize("path", shelf.samples("gemini", ".request.json"), ids=lambda path: path.name)
def test_every_sample_request_is_accepted(path):
    given = CheckContext(model=NEW, recorded=True, vertex="vertex" in path.name, counting="count" in path.name)
    assert isinstance(accept(path.read_bytes(), given), AcceptedRequest)


@shelf.needs_shelf
@pytest.mark.parametrize("name", ["generate", "count_tokens"])
def test_every_sample_request_of_code_assist_is_accepted(name):
    [path] = [one for one in shelf.samples("code_assist", ".request.json") if one.name.startswith(name)]
    body, given = unpack({"request": json.loads(path.read_bytes())})
    assert given.model == NEW
    assert isinstance(accept(body, given), AcceptedRequest)


@shelf.needs_shelf
def test_what_the_official_sdk_was_seen_to_send_is_accepted():
    folder = shelf.ROOT / "wire" / "samples" / "captured"
    seen = 0
    for path in sorted(folder.glob("genai*.json")):
        captured = json.loads(path.read_bytes())
        if "/models/" not in captured["url"]:
            continue
        vertex = "aiplatform" in captured["url"]
        given = CheckContext(model=NEW, recorded=True, vertex=vertex, counting="countTokens" in captured["url"])
        assert isinstance(judge(captured["body"], given), AcceptedRequest), path.name
        seen += 1
    assert seen >= 9


@shelf.needs_shelf
def test_every_request_of_real_clients_is_accepted_by_their_model_and_by_the_newest():
    seen = 0
    for name, body, given in captures():
        for tried in (given, CheckContext(model=NEW, recorded=True, vertex=given.vertex, counting=given.counting)):
            assert isinstance(accept(body, tried), AcceptedRequest), (name, accept(body, tried))
        seen += 1
    assert seen > 40


@shelf.needs_shelf
def test_every_recorded_request_that_google_answered_is_accepted():
    found = recordings()
    assert len(found) > 500
    wrong = {one["id"]: judge(one["request"], load_recordings(one)) for one in found}
    assert not {name: verdict for name, verdict in wrong.items() if isinstance(verdict, Violation)}


@shelf.needs_shelf
def test_recorded_requests_that_come_as_new_ones_are_refused_for_the_listed_reasons_only():
    verdicts = (judge(one["request"], structs.replace(load_recordings(one), recorded=False)) for one in recordings())
    assert {found.rule for found in verdicts if isinstance(found, Violation)} == ONLY_AS_RECORDINGS.keys()


@shelf.needs_shelf
def test_every_recorded_request_that_code_assist_answered_is_accepted():
    found = [one for one in shelf.exchanges("code_assist") if one["request"]]
    assert found
    for one in found:
        assert isinstance(accept(*unpack(one)), AcceptedRequest), one["id"]


@shelf.needs_shelf
def test_recorded_refusals_are_refused_unless_the_reason_is_not_in_the_body():
    found = {one["id"]: one for one in recordings(400)}
    assert found.keys() >= NOT_IN_THE_BODY.keys()
    for name in found.keys() - NOT_IN_THE_BODY.keys():
        verdict = judge(found[name]["request"], load_recordings(found[name]))
        assert isinstance(verdict, Violation), name
        assert verdict.message == found[name]["response"]["error"]["message"]


@pytest.mark.parametrize("name", ["", "gemini-9.9-ultra", "my-tuned-model", "claude-sonnet-4-6"])
def test_an_unknown_model_is_answered(name):
    require_accepted({"contents": [user("Hi.")]}, situation(name))


@pytest.mark.parametrize(
    ("vertex", "words"),
    [(False, "models/no-such-model is not found for API version"), (True, "was not found or your project")],
)
def test_a_model_that_does_not_exist_is_not_found(vertex, words):
    found = require_rejected({"contents": [user("Hi.")]}, situation("no-such-model", vertex=vertex))
    assert (found.status, found.rule) == (404, "gemini.model")
    assert words in found.message


def test_a_request_to_count_tokens_holds_contents_or_a_request():
    counting = situation(counting=True)
    inner = {"model": "models/x", "contents": [user("Hi.")], "systemInstruction": {"parts": {"text": "Be brief."}}}
    assert require_accepted({"generateContentRequest": inner}, counting).model_request.turns[0].role == "system"
    assert require_accepted({"contents": [user("Hi.")]}, counting).model_request.turns[0].text == "Hi."
    assert require_rejected({"generateContentRequest": inner}).rule == "gemini.unknown-field"
    flat = {**inner, "model": None}
    assert require_rejected(flat, counting).rule == "gemini.unknown-field"
    require_accepted(flat, situation(counting=True, vertex=True))


def test_what_is_too_long_to_answer_can_be_counted():
    body = {"contents": [user("a" * 4_200_000)]}
    assert require_rejected(body).rule == "gemini.input-tokens"
    require_accepted(body, situation(counting=True))


@pytest.mark.parametrize("vertex", [False, True])
def test_a_token_count_has_the_format_of_the_api(vertex):
    given = require_accepted({"contents": [user("Hello")]}, situation(counting=True, vertex=vertex))
    rendered = json.loads(API.render_token_count(given, 7))
    assert rendered["totalTokens"] == 7
    assert rendered.get("totalBillableCharacters") == (5 if vertex else None)
