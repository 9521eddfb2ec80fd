"""Model lists of each vendor: the official SDKs' types know all fields, and a key is required."""

from typing import Any

import httpx2
import pytest
from anthropic.types import ModelInfo
from openai.types import Model
from pydantic import BaseModel

from dragoman.simulator.catalogue import (
    ANTHROPIC,
    build_anthropic_model,
    build_gemini_model,
    list_anthropic_models,
    list_openai_models,
)
from simulator.apis.gemini.asking import genai, types

ANTHROPIC_HEADERS = {"anthropic-version": "2026-10-21"}
GOOGLE_MEMBERS = {
    "name",
    "baseModelId",
    "version",
    "displayName",
    "description",
    "inputTokenLimit",
    "outputTokenLimit",
    "supportedGenerationMethods",
    "thinking",
    "temperature",
    "maxTemperature",
    "topP",
    "topK",
}
LISTS = {
    "openai": ("/v1/models", {}, 401),
    "one of openai": ("/v1/models/gpt-4.1", {}, 401),
    "anthropic": ("/v1/models", ANTHROPIC_HEADERS, 401),
    "one of anthropic": ("/v1/models/claude-opus-5", ANTHROPIC_HEADERS, 401),
    "google": ("/v1beta/models", {}, 403),
    "one of google": ("/v1beta/models/gemini-3.8-flash", {}, 403),
    "vertex": ("/v1beta1/publishers/google/models", {}, 401),
}


def extras(value: Any) -> list[str]:
    """Return the fields at any depth that a model of the SDK does not know."""
    if isinstance(value, list):
        return [name for one in value for name in extras(one)]
    if not isinstance(value, BaseModel):
        return []
    inner = [name for field in type(value).model_fields for name in extras(getattr(value, field))]
    return [*(value.model_extra or {}), *inner]


@pytest.mark.parametrize("name", [*ANTHROPIC, "claude-3-haiku-20240307", "claude-mythos-preview", "never-heard-of"])
def test_anthropics_models_have_all_members_of_the_official_type_and_no_other(name):
    result = build_anthropic_model(name)
    found = ModelInfo.model_validate(result)
    assert extras(found) == []
    assert set(result) == set(ModelInfo.model_fields)
    assert found.lifecycle == "active"


def test_what_a_model_can_do_is_what_it_takes():
    newest, old = (build_anthropic_model(name)["capabilities"] for name in ("claude-sonnet-5-5", "claude-haiku-4-5"))
    assert [kind for kind, result in newest["thinking"]["types"].items() if result["supported"]] == [
        "adaptive",
        "between_tools",
    ]
    assert [kind for kind, result in old["thinking"]["types"].items() if result["supported"]] == ["disabled", "enabled"]
    assert (newest["effort"]["supported"], old["effort"]["supported"]) == (True, False)
    assert build_anthropic_model("claude-opus-5")["line"] == "opus"
    assert build_anthropic_model("never-heard-of")["line"] is None


def test_lists_are_pages_of_the_official_types():
    page = list_anthropic_models()
    assert set(page) == {"data", "has_more", "first_id", "last_id"}
    assert extras([ModelInfo.model_validate(one) for one in page["data"]]) == []
    assert extras([Model.model_validate(one) for one in list_openai_models()["data"]]) == []


def test_googles_models_have_members_that_google_has_and_are_read_by_the_sdk(simulator):
    assert set(build_gemini_model("gemini-3.8-flash")) <= GOOGLE_MEMBERS
    options = types.HttpOptions(base_url=simulator.base_url)
    with genai.Client(api_key="k", http_options=options) as client:
        found = client.models.get(model="gemini-3.8-flash")
        listed = [one.name for one in client.models.list()]
    assert (found.name, found.thinking, found.input_token_limit) == ("models/gemini-3.8-flash", True, 1_048_576)
    assert found.name in listed


@pytest.mark.parametrize("listed", LISTS)
def test_models_are_listed_with_a_valid_key(simulator, listed):
    path, headers, status = LISTS[listed]
    without = httpx2.get(simulator.base_url + path, headers=headers)
    assert without.status_code == status
    assert without.json()["error"]
    invalid = httpx2.get(simulator.base_url + path, headers={**headers, "authorization": "Bearer invalid"})
    assert invalid.status_code in {400, 401}
    assert simulator.requests[-1].rule == "key"
    given = httpx2.get(simulator.base_url + path, headers={**headers, "authorization": "Bearer k"})
    assert given.status_code == 200


def test_a_list_is_rejected_with_the_wording_of_the_requested_vendor(simulator):
    url = simulator.base_url + "/v1/models"
    assert httpx2.get(url, headers=ANTHROPIC_HEADERS).json()["type"] == "error"
    assert httpx2.get(url, headers={"x-goog-api-key": "invalid"}).json()["error"]["status"] == "INVALID_ARGUMENT"
    assert httpx2.get(url, headers={"authorization": "Bearer invalid"}).json()["error"]["code"] == "invalid_api_key"


def test_only_the_wanted_key_is_shown_models(simulate):
    running = simulate(key="right")
    for key, status in (("wrong", 401), ("right", 200)):
        reply = httpx2.get(running.base_url + "/v1/models", headers={"authorization": f"Bearer {key}"})
        assert reply.status_code == status


@pytest.mark.parametrize("path", ["/health", "/rules", "/requests"])
def test_the_simulators_own_endpoints_need_no_key(simulator, path):
    assert httpx2.get(simulator.base_url + path).status_code == 200


@pytest.mark.parametrize("path", ["/v1/responses/resp_1", "/v1/conversations/conv_1"])
def test_stored_data_requires_a_key(simulator, path):
    assert httpx2.get(simulator.base_url + path).status_code == 401
