"""Translated requests pass the simulator of the target, which is independent of the interpreter."""

import functools
import json
from typing import Any

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request
from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.rule import CheckContext, Violation
from laws.documents import DIALECTS, requests, shape
from shelf import enough

MODELS = {
    "chat": ("gpt-4.1", "gpt-6-luna"),
    "responses": ("gpt-4.1", "gpt-6-luna"),
    "messages": ("claude-opus-5-5", "claude-haiku-4-5"),
    "gemini": ("gemini-3.8-flash", "gemini-2.5-flash"),
}
PAIRS = [(source, target) for source in DIALECTS for target in DIALECTS if source != target]
KNOWN: dict[tuple[str, str], str] = {}
"""Requests that no translation can make valid, by name and target, with the reason: their own vendor rejects them too."""


@functools.cache
def documents(source: str) -> list[tuple[str, bytes]]:
    """One request of every shape there is."""
    found: dict[frozenset[str], tuple[str, dict[str, Any]]] = {}
    for name, body in requests(source):
        found.setdefault(shape(body), (name, body))
    return [(name, json.dumps(body).encode()) for name, body in found.values()]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_what_is_written_for_a_target_is_accepted_by_it(source, target):
    signer = TokenSigner()
    refused: dict[tuple[str, str], str] = {}
    sent = 0
    for name, document in documents(source):
        for model in MODELS[target]:
            try:
                result = translate_request(Call(document, "m"), source, target, model=model).call
            except Problem as problem:
                if problem.kind != "unsupported":
                    refused[name, target] = repr(problem)
                continue
            sent += 1
            verdict = APIS[target].accept(result.body, CheckContext(model=model, recorded=True), signer)
            if isinstance(verdict, Violation):
                refused[name, target] = f"{model}: {verdict.rule}: {verdict.message} at {verdict.where}"
    assert sent > enough(50)
    unexpected = {key: what for key, what in refused.items() if key not in KNOWN}
    assert not unexpected, "\n".join(f"{name}: {what}" for (name, _), what in sorted(unexpected.items())[:40])
