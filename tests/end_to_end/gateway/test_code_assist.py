"""Code Assist as Gemini CLI uses it: setup calls, then prompts, on any upstream."""

import re

import httpx2
import pytest

ALL = ["gem", "claude", "gpt", "resp", "vgem", "vclaude", "assist"]
METADATA = {"ideType": "IDE_UNSPECIFIED", "platform": "PLATFORM_UNSPECIFIED", "pluginType": "GEMINI"}


def call_method(gateway, verb, body):
    headers = {"authorization": "Bearer anything", "x-goog-api-client": "gl-node/24.21.0"}
    reply = httpx2.post(f"{gateway.base_url}/v1internal:{verb}", json=body, headers=headers)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_the_first_steps_find_everything_set_up(gateway):
    loaded = call_method(gateway, "loadCodeAssist", {"metadata": METADATA})
    assert loaded["currentTier"]["id"]
    project = loaded["cloudaicompanionProject"]
    named = call_method(gateway, "loadCodeAssist", {"cloudaicompanionProject": "mine", "metadata": METADATA})
    assert named["cloudaicompanionProject"] == "mine"
    operation = call_method(gateway, "onboardUser", {"tierId": loaded["allowedTiers"][0]["id"], "metadata": METADATA})
    assert operation["done"]
    assert operation["response"]["cloudaicompanionProject"]["id"] == project
    again = httpx2.get(f"{gateway.base_url}/v1internal/{operation['name']}").json()
    assert again["done"]


def test_the_other_calls_of_gemini_cli_are_answered(gateway):
    buckets = call_method(gateway, "retrieveUserQuota", {"project": "p"})["buckets"]
    assert {"gem", "gemini-3-flash-preview"} <= {bucket["modelId"] for bucket in buckets}
    assert call_method(gateway, "listExperiments", {"project": "p", "metadata": METADATA}) == {
        "experimentIds": [],
        "flags": [],
    }
    assert call_method(gateway, "fetchAdminControls", {"project": "p"}) == {"adminControlsApplicable": False}
    assert not call_method(gateway, "getCodeAssistGlobalUserSetting", {})["freeTierDataCollectionOptin"]
    assert call_method(gateway, "recordCodeAssistMetrics", {"metrics": []}) == {}
    assert httpx2.post(f"{gateway.base_url}/v1internal:nothing", json={}).status_code == 404


@pytest.mark.parametrize("model", ALL)
def test_a_question_is_answered_in_the_envelope_by_any_upstream(gateway, model):
    inner = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}], "session_id": "s"}
    asked = {"model": model, "project": "dragoman", "user_prompt_id": "u", "request": inner}
    whole = call_method(gateway, "generateContent", asked)
    assert whole["response"]["candidates"][0]["content"]["parts"]
    with httpx2.stream("POST", f"{gateway.base_url}/v1internal:streamGenerateContent?alt=sse", json=asked) as stream:
        lines = [line for line in stream.iter_lines() if line]
        assert stream.status_code == 200
        lost = stream.headers.get("x-dragoman-losses", "")
    # Only what the envelope itself is about has no place elsewhere.
    assert set(re.findall(r"dropped (\S+):", lost)) <= {"/project", "/user_prompt_id", "/request/session_id"}
    assert lost.count("; dropped") <= 3
    assert "material=0" in lost or not lost
    assert all(line.startswith('data: {"response":') for line in lines)


@pytest.mark.parametrize("model", ["gem", "claude", "gpt", "assist"])
def test_tokens_are_counted_from_within_the_envelope(gateway, model):
    inner = {"model": f"models/{model}", "contents": [{"role": "user", "parts": [{"text": "hello there"}]}]}
    assert call_method(gateway, "countTokens", {"request": inner})["totalTokens"] > 0
    refused = httpx2.post(f"{gateway.base_url}/v1internal:countTokens", json={"request": {}})
    assert refused.status_code == 400
