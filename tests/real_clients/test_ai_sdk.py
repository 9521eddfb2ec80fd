"""The Vercel AI SDK, set up as the README says: each of its providers runs a tool for every foreign model."""

import json
import secrets
import shutil

import pytest

from npm import NODE
from real_clients.conftest import PACKAGES
from real_clients.runs import RUNS
from real_clients.settings import block
from real_clients.stage import open_stage

pytestmark = pytest.mark.slow
MODELS = {"gemini-3-flash": "gemini", "claude-opus-4-8": "anthropic", "gpt-5.2": "responses", "house-model": "chat"}
"""The names by which models are asked for, and where each is answered."""
PROVIDERS = {
    "anthropic": "AI SDK: anthropic",
    "google": "AI SDK: google",
    "responses": "AI SDK: openai (Responses)",
    "chat": "AI SDK: openai (Chat), openai-compatible",
    "compatible": "AI SDK: openai (Chat), openai-compatible",
}
RUN = [(provider, model) for provider, row in PROVIDERS.items() for model in MODELS if MODELS[model] in RUNS[row]]
WORD = secrets.token_hex(8)


@pytest.fixture(scope="module")
def outcomes(programs, tmp_path_factory):
    """What every provider came to with every model; all of them are asked by one program."""
    with open_stage(tmp_path_factory.mktemp("ai-sdk"), MODELS) as stage:
        (stage.folder / "node_modules").symlink_to(programs.modules)
        shutil.copy(PACKAGES / "ai_sdk.mjs", stage.folder)
        providers = block("js", "ai-sdk", stage.base_url) + "export { anthropic, compatible, google, openai }\n"
        (stage.folder / "providers.mjs").write_text(providers, encoding="utf-8")
        found = json.loads(stage.run([NODE, "ai_sdk.mjs", WORD, *MODELS], {}))
        assert stage.outside.asked == set()
    return found


@pytest.mark.parametrize("form", ["whole", "streamed", "whole thinking", "streamed thinking"])
@pytest.mark.parametrize(("provider", "model"), RUN)
def test_a_provider_runs_a_tool_for_a_model(outcomes, provider, model, form):
    found = outcomes[f"{provider} {model} {form}"]
    assert "error" not in found, found["error"]
    assert (found["cities"], found["steps"], found["finish"]) == (["Paris", "Tokyo"], 2, "stop")
    assert all(f"{WORD} in {city}" in found["text"] for city in found["cities"])
