"""The laws of requests for models that get tools as text: requests are accepted, and nothing is lost silently."""

import collections
import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request
from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.rule import CheckContext, Violation
from laws.canary import IDS, canaries, find_covering, survives
from laws.documents import DIALECTS, MODELS, distinct_requests
from laws.test_accepted import documents
from shelf import enough

KNOWN = dict.fromkeys(
    ("anthropic/langchain-0021", "anthropic/pydantic-ai-0084"),
    "a tool of the vendor's waits for its result until that of ours is there, which words cannot say",
)
PAIRS = [(source, target) for source in DIALECTS for target in DIALECTS]


def translate_as_text(document, source, target, form="json"):
    return translate_request(Call(document, "m"), source, target, model=MODELS[target], text_calls=form)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param(source, target, marks=() if source in (target, "chat") else pytest.mark.slow)
        for source, target in PAIRS
    ],
)
def test_a_request_with_tools_as_text_is_accepted_and_has_no_tools(source, target):
    signer = TokenSigner()
    refused: dict[str, str] = {}
    sent = 0
    for name, document in documents(source):
        try:
            output = translate_as_text(document, source, target, "legacy" if sent % 2 else "json").call
        except Problem as problem:
            if problem.kind != "unsupported":
                refused[name] = repr(problem)
            continue
        if output.body is document:
            continue
        sent += 1
        verdict = APIS[target].accept(output.body, CheckContext(model=MODELS[target], recorded=True), signer)
        if isinstance(verdict, Violation) and not _is_refused_at_home(document, source, target, signer):
            refused[name] = f"{verdict.rule}: {verdict.message} at {verdict.where}"
    assert sent > enough(20)
    refused = {name: what for name, what in refused.items() if name not in KNOWN}
    assert not refused, "\n".join(f"{name}: {what}" for name, what in sorted(refused.items())[:40])


def _is_refused_at_home(document, source, target, signer):
    """Return whether the client's own dialect would reject the request as the client wrote it."""
    if source != target:
        return False
    passed = translate_request(Call(document, "m"), source, target, model=MODELS[target]).call
    return isinstance(
        APIS[target].accept(passed.body, CheckContext(model=MODELS[target], recorded=True), signer), Violation
    )


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_leaf_survives_or_is_covered_by_a_loss(source, target):
    wrong: dict[str, str] = {}
    counts: collections.Counter[str] = collections.Counter()
    for name, body in distinct_requests(source):
        for where, expected, changed in canaries(body):
            try:
                output = translate_as_text(json.dumps(changed).encode(), source, target)
            except Problem:
                counts["refused"] += 1
                continue
            alive = survives(expected, output.call.body)
            counts["alive" if alive else "lost"] += 1
            is_covered = find_covering(where, output.losses) is not None
            if not alive and not is_covered and where.rsplit("/", 1)[-1] not in IDS:
                wrong.setdefault(_shape(where), f"{name} {where}")
    assert not wrong, "\n".join(f"{what} vanished: {example}" for what, example in sorted(wrong.items()))
    assert counts["alive"] > enough(1000)


def _shape(where: str) -> str:
    return "/".join("#" if token.isdigit() else token for token in where.split("/"))
