"""A conversation of which the beginning is known is translated as if it were new: the same bytes, losses and messages."""

import functools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

import strategies
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter import translate
from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.frames import Frames
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.recall import Recall
from dragoman.interpreter.traits import traits_for
from dragoman.interpreter.translate import Translation, translate_request
from laws.alike import assert_alike
from laws.documents import DIALECTS, MODELS, requests, shape
from shelf import needs_shelf

PAIRS = [(source, target) for source in DIALECTS for target in DIALECTS if source != target]
FORGETFUL = Recall(least=1 << 40)


class Counting(Recall):
    """Counts how often a beginning was known."""

    found = 0

    def find(self, scope: tuple[str, str, str], body: bytes, start: int) -> Any:
        known = super().find(scope, body, start)
        self.found += bool(known is not None and known.messages)
        return known


def _translated(body: bytes, source: str, target: str, recall: Recall) -> Translation | tuple[str, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translate, "RECALL", recall)
        patch.setattr(translate, "FRAMES", Frames())
        try:
            return translate_request(Call(body, "m"), source, target, model=MODELS[target])
        except Problem as problem:
            return (problem.kind, problem.message, problem.where)


def _assert_alike(body: bytes, source: str, target: str, recall: Recall) -> None:
    known = _translated(body, source, target, recall)
    new = _translated(body, source, target, FORGETFUL)
    assert_alike(known, new)


def _grown(body: dict[str, Any], source: str, steps: list[int], *, spaced: bool) -> list[bytes]:
    """The same conversation at several lengths."""
    member = dialect_named(source).history
    separators = None if spaced else (",", ":")
    return [
        json.dumps(body | {member: body[member][:length]}, separators=separators, ensure_ascii=not spaced).encode()
        for length in steps
    ]


def _is_long(body: dict[str, Any], source: str) -> bool:
    history = body.get(dialect_named(source).history)
    return isinstance(history, list) and len(history) > 2


@functools.cache
def _conversations(source: str) -> list[dict[str, Any]]:
    """One conversation of every shape there is."""
    return list({shape(body): body for _, body in requests(source) if _is_long(body, source)}.values())


@needs_shelf
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_recorded_conversations_are_translated_alike_whatever_is_remembered(source, target):
    recall = Counting(least=64)
    for number, body in enumerate(_conversations(source)):
        length = len(body[dialect_named(source).history])
        steps = [max(1, length // 2), max(1, length // 2), length - 1, length]
        for document in _grown(body, source, steps, spaced=number % 2 == 0):
            _assert_alike(document, source, target, recall)
    assert recall.found > 20


@settings(deadline=None)
@given(data=st.data(), pair=st.sampled_from(PAIRS), tidy=st.booleans(), spaced=st.booleans())
def test_any_conversation_is_translated_alike_whatever_is_remembered(data, pair, tidy, spaced):
    source, target = pair
    drawn = data.draw(strategies.requests(source, tidy=tidy))
    here, traits = dialect_named(source), traits_for(source, "")
    request, _ = adapt(structs.replace(drawn, candidates=None), here.issuer, traits, Ledger({}))
    body = json.loads(here.render_request(request, traits).body)
    if not _is_long(body, source):
        return
    length = len(body[dialect_named(source).history])
    steps = sorted(data.draw(st.lists(st.integers(1, length), min_size=1, max_size=4)))
    recall = Recall(least=64)
    for document in _grown(body, source, [steps[0], *steps, length, length], spaced=spaced):
        _assert_alike(document, source, target, recall)


def _weather(name: str, said: str) -> dict[str, Any]:
    """A tool loop of two rounds whose answer shall be JSON, which the system prompt says too."""
    rounds = [
        turn
        for number in range(2)
        for turn in (
            {"role": "model", "parts": [{"functionCall": {"id": f"c{number}", "name": name, "args": {"a": number}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": f"c{number}", "name": name, "response": {"output": "sunny"}}}],
            },
        )
    ]
    return {
        "systemInstruction": {"parts": [{"text": "Answer in JSON."}]},
        "contents": [{"role": "user", "parts": [{"text": said}]}, *rounds, {"role": "model", "parts": [{"text": "x"}]}],
        "generationConfig": {"responseMimeType": "application/json"},
    }


@pytest.mark.parametrize(
    ("name", "said", "place"),
    [
        ("read_json", "How is the weather in Tokyo today?", "input"),
        ("read_weather", "How is the weather in Tokyo today?", "input"),
        ("read_json", "How is the weather, as JSON?", "instructions"),
    ],
)
@pytest.mark.parametrize("spaced", [True, False])
def test_the_word_that_openai_wants_to_hear_is_heard_alike_whatever_is_remembered(name, said, place, spaced):
    recall = Counting(least=64)
    for document in _grown(_weather(name, said), "gemini", [3, 5, 5, 6, 6], spaced=spaced):
        _assert_alike(document, "gemini", "responses", recall)
    told = json.loads(_translated(document, "gemini", "responses", recall).call.body)
    assert recall.found > 2
    assert "JSON" in json.dumps(told[place])
    assert ("instructions" in told) == (place == "instructions")
