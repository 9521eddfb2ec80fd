"""Names that platforms make of a model's, and models that nobody has heard of yet."""

import pytest

from dragoman.dialects.record import Call
from dragoman.interpreter.traits import ROWS, bare_name, traits_for
from dragoman.interpreter.translate import translate_request
from dragoman.simulator.apis import APIS
from dragoman.simulator.rule import Situation, Violation
from dragoman.simulator.signatures import Signer
from interpreter.workbench import encoded


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
    assert bare_name(model) == bare
    assert all(traits_for(dialect, model) is traits_for(dialect, bare) for dialect in ROWS)


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
    told = translate_request(Call(encoded(body), "m"), "chat", dialect, model=model).call
    assert not isinstance(APIS[dialect].accept(told.body, Situation(model=model), Signer()), Violation)
