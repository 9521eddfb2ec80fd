"""Platform-specific spellings of model names, and unknown models."""

import pytest

from dragoman.dialects.record import Call
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.adaptation import strip_platform, traits_for
from dragoman.interpreter.translate import translate_request
from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.rule import CheckContext, Violation
from interpreter.workbench import encode


@pytest.mark.parametrize(
    ("model", "bare"),
    [
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("google/gemini-2.5-pro:free", "gemini-2.5-pro"),
        ("GEMINI-2.5-PRO", "gemini-2.5-pro"),
        ("publishers/google/models/gemini-2.5-pro-001", "gemini-2.5-pro-001"),
        ("anthropic.claude-opus-5-5-v1:0", "claude-opus-5-5-v1"),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0",
            "claude-haiku-4-5",
        ),
        ("claude-opus-5-5@20260901", "claude-opus-5-5"),
        ("claude-fable-5-20260601", "claude-fable-5"),
        ("anthropic/claude-sonnet-5.5", "claude-sonnet-5-5"),
        ("anthropic/claude-3.5-sonnet:beta", "claude-3-5-sonnet"),
        ("claude-4.5-sonnet", "claude-sonnet-4-5"),
        ("claude-4-opus-20250514", "claude-opus-4"),
        ("openai/gpt-5.2", "gpt-5.2"),
        ("openai.gpt-oss-120b-1:0", "gpt-oss-120b-1"),
        ("ft:gpt-4o-2024-08-06:org::id", "gpt-4o-2024-08-06"),
        ("llama3:8b", "llama3"),
        ("", ""),
    ],
)
def test_what_a_platform_puts_around_a_name_does_not_matter(model, bare):
    assert strip_platform(model) == bare
    assert all(traits_for(dialect, model) is traits_for(dialect, bare) for dialect in DIALECTS)


LATER = {
    "messages": [
        "claude-opus-5-6",
        "claude-opus-6",
        "claude-sonnet-5.5",
        "claude-sonnet-6",
        "claude-haiku-6",
        "anthropic.claude-opus-5-5-v1:0",
        "claude-mythos-preview",
        "unknown-model",
    ],
    "gemini": [
        "gemini-3.9-flash",
        "gemini-3.10-flash",
        "gemini-4-argon",
        "gemini-5",
        "google/gemini-3.8-pro",
        "gemma-3",
    ],
    "responses": ["gpt-7", "gpt-5.10", "openai/gpt-6-luna", "gpt-5.4-pro", "gpt-6-pro"],
}


@pytest.mark.parametrize(
    ("dialect", "model"), [(dialect, model) for dialect, names in LATER.items() for model in names]
)
@pytest.mark.parametrize("effort", ["none", "low", "max"])
def test_models_that_come_later_are_sent_nothing_that_the_newest_refuse(dialect, model, effort):
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    body = {
        "messages": [{"role": "user", "content": "q"}, {"role": "system", "content": "s"}],
        "tools": [tool],
        "tool_choice": "required",
        "reasoning_effort": effort,
        "temperature": 0.3,
    }
    result = translate_request(Call(encode(body), "m"), "chat", dialect, model=model).call
    assert not isinstance(APIS[dialect].accept(result.body, CheckContext(model=model), TokenSigner()), Violation)


@pytest.mark.parametrize(
    ("dialect", "models"),
    [
        ("chat", ["gpt-4.1", "gpt-4o-mini", "gpt-3.5-turbo", "chatgpt-4o-latest"]),
        ("chat", ["gpt-5.4-codex", "gpt-5.5-pro"]),
        ("chat", ["gpt-5.4", "gpt-5.4-mini"]),
        ("chat", ["gpt-5.2", "gpt-5.3"]),
        ("chat", ["gpt-5.6", "gpt-5.9", "gpt-5.10", "gpt-6", "gpt-7", "gpt-realtime"]),
        ("chat", ["gpt-5.2-codex", "gpt-5.1-codex-max", "gpt-5.2-chat-latest"]),
        ("chat", ["gpt-5.1", "gpt-5.1-mini"]),
        ("chat", ["gpt-5", "gpt-5-mini"]),
        ("chat", ["o3", "o1-mini", "o4-mini"]),
        ("chat", ["nobody", "gpt-oss-120b", "llama-4", "", "o2"]),
        ("responses", ["gpt-4.1", "gpt-4o"]),
        ("responses", ["gpt-5.6", "gpt-5.7", "gpt-5.10", "gpt-6", "gpt-7"]),
        ("responses", ["gpt-5.2-pro", "gpt-5.4-pro-2026-03-05", "gpt-6-pro"]),
        ("responses", ["gpt-5.4", "gpt-5.4-mini"]),
        ("responses", ["gpt-5.5", "gpt-5.4-codex"]),
        ("responses", ["gpt-5.2", "gpt-5.3"]),
        ("responses", ["gpt-5.2-codex", "gpt-5.1-codex-max"]),
        ("responses", ["gpt-5.1", "gpt-5.1-mini"]),
        ("responses", ["o3", "o1-pro", "o4-mini"]),
        ("responses", ["nobody", "gpt-oss-20b", ""]),
        ("messages", ["claude-3-5-sonnet", "claude-3-haiku", "claude-2.1"]),
        ("messages", ["claude-4.5-sonnet", "claude-sonnet-4-5-20250929", "claude-haiku-4-5"]),
        ("messages", ["claude-opus-4-6", "claude-sonnet-4-6"]),
        ("messages", ["claude-opus-4-8", "claude-sonnet-4-8", "claude-opus-5", "claude-opus-5-1"]),
        ("messages", ["claude-opus-4-0", "claude-opus-4-20250514"]),
        ("messages", ["claude-sonnet-4", "claude-sonnet-4-0"]),
        (
            "messages",
            ["claude-opus-5-5", "claude-opus-5-6", "claude-opus-6", "claude-fable-5-1", "claude-mythos-5-2"],
        ),
        ("messages", ["claude-opus-5-5", "claude-fable-6", "claude-mythos-7-1"]),
        ("messages", ["claude-fable-5", "claude-mythos-5"]),
        ("messages", ["claude-opus-4-7", "claude-sonnet-5", "claude-sonnet-5-1"]),
        (
            "messages",
            ["nobody", "claude-sonnet-5-6", "claude-sonnet-6", "claude-haiku-6", "claude-opus-5-10", "claude-next", ""],
        ),
        ("gemini", ["gemini-3.6-flash", "gemini-3.7-flash", "gemini-3.6-flash-lite", "gemini-3.8-flash-lite"]),
        ("gemini", ["gemini-3-pro", "gemini-3.1-pro-preview"]),
        ("gemini", ["gemini-3-flash", "gemini-3.5-flash", "gemini-3.1-flash-lite"]),
        ("gemini", ["gemini-2.5-flash", "gemini-2.5-flash-lite"]),
        ("gemini", ["gemini-2.0-flash", "gemma-3-27b-it"]),
        ("gemini", ["nobody", "gemini-3.9-flash-lite", "gemini-3.10-flash", "gemini-4-argon", "gemini-12-pro"]),
        (
            "gemini",
            ["nobody", "gemini-3.8-pro", "gemini-3.8-flash", "gemini-3.6-pro", "gemini-3.9-flash", "gemini-4", ""],
        ),
    ],
)
def test_models_of_one_generation_share_a_row(dialect, models):
    assert all(traits_for(dialect, model) == traits_for(dialect, models[0]) for model in models)
