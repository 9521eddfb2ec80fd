"""Caches change no result: bytes, losses, undo, messages and errors are the same with caches on, off and tiny."""

import functools
import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

import strategies
from dragoman.core.parts import Signature
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter import translate
from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.adaptation import Adaptation, traits_for
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.prefix_cache import PrefixCache
from dragoman.interpreter.signature_recorder import digest_call
from dragoman.interpreter.tools_cache import ToolsCache
from dragoman.interpreter.translate import Caches, translate_request
from dragoman.interpreter.translation import PlacedSignature, SavedSignatures, Translation
from laws.alike import assert_alike
from laws.documents import DIALECTS, MODELS, requests, shape
from shelf import enough

PAIRS = [(source, target) for source in DIALECTS for target in DIALECTS if source != target]


class CountingPrefixes(PrefixCache):
    """Counts the hits of the prefix cache."""

    found = 0

    def find(self, scope: tuple[str, ...], body: bytes, start: int) -> Any:
        known = super().find(scope, body, start)
        self.found += bool(known is not None and known.messages)
        return known


class CountingTools(ToolsCache):
    """Counts the hits of the tool cache."""

    found = 0

    def find(self, *key: Any) -> Any:
        known = super().find(*key)
        self.found += known is not None and bool(known.adapted)
        return known


def off() -> Caches:
    return Caches(ToolsCache(max_bytes=0), PrefixCache(min_bytes=1 << 40))


def on() -> Caches:
    return Caches(CountingTools(), CountingPrefixes(min_bytes=64))


def tiny() -> Caches:
    """Caches that evict all the time."""
    return Caches(ToolsCache(max_bytes=20_000), PrefixCache(min_bytes=64, max_bytes=4_000))


def _translate(body: bytes, source: str, target: str, caches: Caches, **options: Any) -> Translation | tuple[str, ...]:
    options = {"model": MODELS[target], **options}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translate, "CACHES", caches)
        try:
            return translate_request(Call(body, "m"), source, target, **options)
        except Problem as problem:
            return (problem.kind, problem.message, problem.where)


def _assert_alike(body: bytes, source: str, target: str, *caches: Caches, **options: Any) -> None:
    new = _translate(body, source, target, off(), **options)
    for some in caches:
        assert_alike(_translate(body, source, target, some, **options), new)


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


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_recorded_conversations_are_translated_alike_whatever_is_cached(source, target):
    caches, small = on(), tiny()
    for number, body in enumerate(_conversations(source)):
        length = len(body[dialect_named(source).history])
        steps = [max(1, length // 2), max(1, length // 2), length - 1, length]
        for document in _grown(body, source, steps, spaced=number % 2 == 0):
            _assert_alike(document, source, target, caches, small)
    assert caches.prefixes.found > enough(20)


@settings(deadline=None)
@given(data=st.data(), pair=st.sampled_from(PAIRS), tidy=st.booleans(), spaced=st.booleans())
def test_any_conversation_is_translated_alike_whatever_is_cached(data, pair, tidy, spaced):
    source, target = pair
    drawn = data.draw(strategies.requests(source, tidy=tidy))
    source_dialect, traits = dialect_named(source), traits_for(source, "")
    request, _ = adapt(structs.replace(drawn, candidates=None), Adaptation(traits, Ledger({}), source_dialect.issuer))
    body = json.loads(source_dialect.render_request(request, traits).body)
    if not _is_long(body, source):
        return
    length = len(body[dialect_named(source).history])
    steps = sorted(data.draw(st.lists(st.integers(1, length), min_size=1, max_size=4)))
    caches, small = on(), tiny()
    for document in _grown(body, source, [steps[0], *steps, length, length], spaced=spaced):
        _assert_alike(document, source, target, caches, small)


def _weather(name: str, written: str) -> dict[str, Any]:
    """A tool loop of two rounds with JSON output, which the system prompt mentions too."""
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
        "contents": [
            {"role": "user", "parts": [{"text": written}]},
            *rounds,
            {"role": "model", "parts": [{"text": "x"}]},
        ],
        "generationConfig": {"responseMimeType": "application/json"},
    }


@pytest.mark.parametrize(
    ("name", "written", "place"),
    [
        ("read_json", "How is the weather in Tokyo today?", "input"),
        ("read_weather", "How is the weather in Tokyo today?", "input"),
        ("read_json", "How is the weather, as JSON?", "instructions"),
    ],
)
@pytest.mark.parametrize("spaced", [True, False])
def test_the_word_json_that_openai_requires_is_present_whatever_is_cached(name, written, place, spaced):
    caches = on()
    for document in _grown(_weather(name, written), "gemini", [3, 5, 5, 6, 6], spaced=spaced):
        _assert_alike(document, "gemini", "responses", caches)
    actual = json.loads(_translate(document, "gemini", "responses", caches).call.body)
    assert caches.prefixes.found > 2
    assert "JSON" in json.dumps(actual[place])
    assert ("instructions" in actual) == (place == "instructions")


def _write(body: dict[str, Any], *, spaced: bool) -> bytes:
    return json.dumps(body, separators=None if spaced else (",", ":"), ensure_ascii=not spaced).encode()


@functools.cache
def _bodies(source: str) -> list[dict[str, Any]]:
    """One request of every shape there is, with a history in a list."""
    member = dialect_named(source).history
    listed = [body for _, body in requests(source) if isinstance(body.get(member), list) and body[member]]
    return list({shape(body): body for body in listed}.values())


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_recorded_tools_are_translated_alike_with_any_history(source, target):
    member = dialect_named(source).history
    bodies = _bodies(source)
    histories = itertools.cycle(body[member] for body in bodies)
    caches, small = on(), tiny()
    for number, body in enumerate(bodies):
        own, other = body[member], next(histories)
        for history in (own, own, [*own[:-1], other[-1]], [*own, *other], other):
            document = _write(body | {member: history}, spaced=number % 2 == 0)
            _assert_alike(document, source, target, caches, small)
    assert caches.tools.found > len([body for body in bodies if body.get("tools")])


MODELS_OF = {
    "chat": ("gpt-4.1", "gpt-5.6"),
    "responses": ("gpt-4.1", "gpt-5.6"),
    "messages": ("claude-opus-5-5", "claude-sonnet-4-5"),
    "gemini": ("gemini-2.5-flash", "gemini-3.8-pro"),
}


class Owner:
    """Has the signatures of one owner's calls: those whose id has a length of the owner's parity."""

    is_empty = False

    def __init__(self, scope: str, parity: int) -> None:
        self.scope = scope
        self._parity = parity

    def find_signatures(self, section_id: str) -> dict[str, SavedSignatures]:
        if len(section_id) % 2 != self._parity:
            return {}
        placed = tuple(
            PlacedSignature("reasoning", Signature(issuer, f"of {self.scope}"), texts=("Thinking.",))
            for issuer in ("anthropic", "openai")
        )
        return {digest_call("f", "{}"): SavedSignatures(Signature("google", f"of {self.scope}"), placed)}


def _loop(rounds: int) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = [{"role": "user", "content": "x" * 80}]
    for number in range(rounds):
        name = "c" * (number + 1)
        call = {"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        turns.append({"role": "assistant", "content": None, "tool_calls": [call]})
        turns.append({"role": "tool", "tool_call_id": name, "content": f"result {number}", "name": "f"})
    return turns


@pytest.mark.parametrize("target", [target for target in DIALECTS if target != "chat"])
def test_owners_models_and_strictness_are_kept_apart(target):
    parameters = {"type": "object", "properties": {"a b": {"type": "integer"}}, "additionalProperties": False}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters, "strict": True}}]
    caches, small = on(), tiny()
    for rounds in (2, 2, 3, 4, 4, 5):
        body = _write({"model": "m", "messages": _loop(rounds), "tools": tools}, spaced=False)
        for model, strict, owner in itertools.product(MODELS_OF[target], (False, True), (None, 0, 1)):
            signer = None if owner is None else Owner(f"owner {owner}", owner)
            _assert_alike(body, "chat", target, caches, small, model=model, strict=strict, signer=signer)
    assert caches.prefixes.found > 20
    assert caches.tools.found > 20
