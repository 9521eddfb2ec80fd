import json

import httpx2
import pytest

import shelf
from dragoman.simulator.apis.gemini import unwrap_request
from dragoman.simulator.apis.gemini.code_assist import handle_setup_call
from dragoman.simulator.apis.rule import Violation
from simulator.apis.gemini.asking import NEW, build_request, require_accepted, situation, user

REQUEST = {"contents": [user("Hi.")]}


def unwrap(body):
    return unwrap_request(json.dumps(body).encode())


def require_rejected(body):
    found = unwrap(body)
    assert isinstance(found, Violation), found
    return found


def test_an_envelope_holds_the_model_and_the_request():
    body = {
        "model": NEW,
        "project": "p",
        "user_prompt_id": "1",
        "request": {**build_request(), "session_id": "s", "labels": {"a": "b"}},
    }
    model, request = unwrap(body)
    assert model == NEW
    assert json.loads(request) == {**build_request(), "labels": {"a": "b"}}
    require_accepted(json.loads(request), situation(model, vertex=True))


def test_antigravitys_envelope_is_known_too():
    body = {"model": NEW, "request": REQUEST, "requestId": "r", "userAgent": "antigravity", "requestType": "agent"}
    assert unwrap(body) == (NEW, json.dumps(REQUEST, separators=(",", ":")).encode())


def test_only_a_request_to_count_tokens_names_the_model_within():
    assert unwrap({"request": {"model": f"models/{NEW}", **REQUEST}})[0] == NEW
    found = require_rejected({"model": NEW, "request": {"model": NEW, **REQUEST}})
    assert (found.rule, found.where) == ("gemini.unknown-field", "/request/model")


def test_a_known_but_unsupported_flag_is_omitted():
    request = {**REQUEST, "toolConfig": {"includeServerSideToolInvocations": True, "retrievalConfig": {}}}
    assert json.loads(unwrap({"model": NEW, "request": request})[1])["toolConfig"] == {"retrievalConfig": {}}


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({"model": NEW}, "gemini.envelope"),
        ({"model": 5, "request": REQUEST}, "gemini.type"),
        ({"model": NEW, "request": []}, "gemini.type"),
        ({"model": NEW, "request": REQUEST, "stream": True}, "gemini.unknown-field"),
        ({"model": NEW, "request": {**REQUEST, "session_id": 5}}, "gemini.type"),
    ],
)
def test_an_envelope_that_is_none_is_refused(body, rule):
    assert require_rejected(body).rule == rule


@shelf.needs_shelf
def test_an_onboarded_user_gets_the_tier_and_the_project():
    [path] = shelf.samples("code_assist", "load_code_assist.request.json")
    answer = json.loads(handle_setup_call("loadCodeAssist", "", path.read_bytes()))
    [sample] = shelf.samples("code_assist", "load_code_assist.response.json")
    assert answer.keys() == json.loads(sample.read_bytes()).keys()
    assert answer["currentTier"]["id"] == "standard-tier"
    assert answer["cloudaicompanionProject"] == "my-gcp-project"


def test_a_new_user_gets_the_tiers_and_is_onboarded_at_once():
    answer = json.loads(handle_setup_call("loadCodeAssist", "", b'{"cloudaicompanionProject": "new-one"}'))
    assert "currentTier" not in answer
    assert [tier["id"] for tier in answer["allowedTiers"] if tier["isDefault"]] == ["standard-tier"]
    asked = b'{"tierId": "standard-tier", "cloudaicompanionProject": "new-one"}'
    operation = json.loads(handle_setup_call("onboardUser", "", asked))
    assert operation["done"] is True
    assert operation["response"]["cloudaicompanionProject"]["id"] == "new-one"


def test_a_user_without_a_project_gets_one():
    for body in (b"{}", b"", b'{"cloudaicompanionProject": null}'):
        assert (
            json.loads(handle_setup_call("loadCodeAssist", "", body))["cloudaicompanionProject"] == "simulated-project"
        )
        operation = json.loads(handle_setup_call("onboardUser", "", body))
        assert operation["response"]["cloudaicompanionProject"]["id"] == "simulated-project"


@pytest.mark.parametrize("method", ["loadCodeAssist", "onboardUser", "retrieveUserQuota", "recordCodeAssistMetrics"])
@pytest.mark.parametrize(
    "body",
    [b"[]", b"1", b'{"a": "\xff"}', b"not json", b'{"a":' * 2000, b'{"cloudaicompanionProject": {}}'],
    ids=["a list", "a number", "not UTF-8", "not JSON", "too deep", "no text"],
)
def test_a_call_that_is_no_message_is_refused_with_googles_error(simulator, method, body):
    reply = httpx2.post(
        f"{simulator.base_url}/v1internal:{method}", content=body, headers={"authorization": "Bearer t"}
    )
    assert reply.status_code == 400
    assert reply.json()["error"]["status"] == "INVALID_ARGUMENT"
    assert reply.headers["x-dragoman-rule"] in {"gemini.json", "gemini.type"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", ":loadCodeAssist"),
        ("POST", ":onboardUser"),
        ("POST", ":fetchAdminControls"),
        ("GET", ":getCodeAssistGlobalUserSetting"),
        ("GET", "/operations/onboard.p"),
    ],
)
@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer invalid"}], ids=["none", "invalid"])
def test_code_assist_calls_require_a_token(simulator, method, path, headers):
    reply = httpx2.request(method, f"{simulator.base_url}/v1internal{path}", headers=headers)
    assert (reply.status_code, reply.json()["error"]["status"]) == (401, "UNAUTHENTICATED")
    assert reply.headers["x-dragoman-rule"] == "key"


def post(simulator, method, body, query=""):
    reply = httpx2.post(
        f"{simulator.base_url}/v1internal:{method}{query}", json=body, headers={"authorization": "Bearer t"}
    )
    assert reply.status_code == 200, reply.text
    return reply


def test_the_envelope_is_taken_off_and_put_on_over_loopback(simulator):
    body = {"model": NEW, "project": "p", "user_prompt_id": "1", "request": {**REQUEST, "session_id": "s"}}
    whole = post(simulator, "generateContent", body).json()
    assert whole["response"]["candidates"][0]["content"]["parts"][0]["text"]
    streamed = post(simulator, "streamGenerateContent", body, "?alt=sse").text
    frames = [json.loads(line.removeprefix("data: ")) for line in streamed.splitlines() if line]
    assert len({frame["traceId"] for frame in frames}) == 1
    assert frames[-1]["response"]["candidates"][0]["finishReason"] == "STOP"
    array = post(simulator, "streamGenerateContent", body).json()
    assert array[-1]["response"]["candidates"][0]["finishReason"] == "STOP"


def test_tokens_are_counted_and_users_are_onboarded_over_loopback(simulator):
    counted = post(simulator, "countTokens", {"request": {"model": f"models/{NEW}", **REQUEST}}).json()
    assert counted.keys() == {"totalTokens"}
    assert counted["totalTokens"] > 0
    assert post(simulator, "loadCodeAssist", {"cloudaicompanionProject": "p"}).json()["cloudaicompanionProject"] == "p"
    assert post(simulator, "onboardUser", {"tierId": "standard-tier"}).json()["done"] is True


def test_onboarding_may_take_time(simulator):
    begun = post(
        simulator, "onboardUser", {"tierId": "standard-tier", "cloudaicompanionProject": "new-slow-one"}
    ).json()
    assert begun == {"name": "operations/onboard.new-slow-one", "done": False}
    done = httpx2.get(f"{simulator.base_url}/v1internal/{begun['name']}", headers={"authorization": "Bearer t"}).json()
    assert done["done"] is True
    assert done["response"]["cloudaicompanionProject"]["id"] == "new-slow-one"


def test_the_other_calls_of_the_cli_are_answered(simulator):
    [bucket, *_] = post(simulator, "retrieveUserQuota", {"project": "p"}).json()["buckets"]
    assert (bucket["modelId"], bucket["remainingFraction"]) == (NEW, 1)
    assert post(simulator, "listExperiments", {"project": "p"}).json() == {"experimentIds": [], "flags": []}
    assert post(simulator, "fetchAdminControls", {"project": "p"}).json() == {"adminControlsApplicable": False}
    assert post(simulator, "recordCodeAssistMetrics", {"project": "p", "metrics": []}).json() == {}
    opted = {"cloudaicompanionProject": "p", "freeTierDataCollectionOptin": True}
    assert post(simulator, "setCodeAssistGlobalUserSetting", opted).json() == opted
    url = f"{simulator.base_url}/v1internal:getCodeAssistGlobalUserSetting"
    asked = httpx2.get(url, headers={"authorization": "Bearer t"})
    assert asked.json()["freeTierDataCollectionOptin"] is False


def test_an_error_has_no_envelope(simulator):
    url = f"{simulator.base_url}/v1internal:streamGenerateContent?alt=sse"
    body = {"model": NEW, "request": {"contents": []}}
    reply = httpx2.post(url, json=body, headers={"authorization": "Bearer t"})
    assert (reply.status_code, list(reply.json())) == (400, ["error"])
    fault = {"authorization": "Bearer t", "x-dragoman-fault": "stream-error"}
    first, last = httpx2.post(url, json={"model": NEW, "request": REQUEST}, headers=fault).text.split("\r\n\r\n")[:2]
    assert first.startswith('data: {"response":')
    assert last.startswith('data: {"error":')
