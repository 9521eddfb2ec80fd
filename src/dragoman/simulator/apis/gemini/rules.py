"""All rules, in the order in which a request is held to them, and how the shape of a request is broken."""

from collections.abc import Iterable
from random import Random
from typing import Any

from dragoman.simulator.api import RuleNote
from dragoman.simulator.apis.gemini import (
    bodies,
    rules_contents,
    rules_generation,
    rules_schema,
    rules_schema_limits,
    rules_signatures,
    rules_tools,
    rules_turns,
)
from dragoman.simulator.apis.gemini.heard import HeardRule
from dragoman.simulator.rule import Json, Situation

RULES: tuple[HeardRule, ...] = (
    *rules_contents.RULES,
    *rules_tools.RULES,
    *rules_schema.RULES,
    *rules_schema_limits.RULES,
    *rules_generation.RULES,
    *rules_turns.RULES,
    *rules_signatures.RULES,
)
_PROTO = "wire/gemini.md sections 1 and 2"


def _first_part(body: Json) -> Json:
    return next(part for _, _, part in bodies.placed_parts(body))


def _unknown(body: Json, chance: Random) -> Iterable[Json]:
    for name in ("frobnicate", "max_tokens", "messages"):
        changed = bodies.copied(body)
        bodies.request_in(changed)[name] = 1
        yield changed
    changed = bodies.copied(body)
    _first_part(changed)[chance.choice(("type", "cache_control", "cacheControl"))] = "text"
    yield changed
    yield bodies.with_config(body, max_tokens=5)
    yield bodies.with_function(body, strict=True)
    keyword = chance.choice(("$schema", "const", "oneOf", "exclusiveMinimum", "$ref", "patternProperties"))
    yield bodies.with_function(body, parameters={"type": "OBJECT", "properties": {"it": {keyword: "x"}}})


def _types(body: Json, _: Random) -> Iterable[Json]:
    values: tuple[Any, ...] = (5, True, {"text": "x"}, ["x"])
    for value in values:
        changed = bodies.copied(body)
        bodies.contents(changed)[0]["parts"] = [{"text": value}]
        yield changed
    yield bodies.with_config(body, temperature="hot")
    yield bodies.with_config(body, max_output_tokens=1.5)
    yield bodies.with_function(body, description=["x"])
    yield bodies.with_function(body, parameters={"type": ["STRING", "NULL"]})
    yield bodies.with_function(body, parameters={"type": "OBJECT", "properties": {"it": {"enum": [1]}}})
    yield bodies.with_function(body, parameters={"type": "OBJECT", "properties": {"it": True}})
    for response in ("text", 5):
        changed = bodies.copied(body)
        result = {"functionResponse": {"name": "f", "response": response}}
        bodies.contents(changed).append({"role": "user", "parts": [result]})
        yield changed
    changed = bodies.copied(body)
    _first_part(changed)["thoughtSignature"] = "not base64!"
    yield changed


def _enums(body: Json, _: Random) -> Iterable[Json]:
    changed = bodies.with_function(body)
    calling = bodies.nested(bodies.request_in(changed), "tool_config", "function_calling_config")
    calling["mode"] = "REQUIRED"
    yield changed
    yield bodies.with_config(body, thinking_config={"thinkingLevel": "MAX"})
    yield bodies.with_function(body, parameters={"type": "ANY"})
    changed = bodies.copied(body)
    setting = {"category": "HARM_CATEGORY_NONE", "threshold": "OFF"}
    bodies.put(bodies.request_in(changed), "safety_settings", [setting])
    yield changed


def _bounds(body: Json, _: Random) -> Iterable[Json]:
    yield bodies.with_config(body, max_output_tokens=2**31)
    yield bodies.with_config(body, seed=-(2**40))


def _oneofs(body: Json, _: Random) -> Iterable[Json]:
    for member, value in (("inlineData", {"mimeType": "image/png", "data": ""}), ("function_call", {"name": "f"})):
        changed = bodies.copied(body)
        bodies.contents(changed)[0]["parts"] = [{"text": "both", member: value}]
        yield changed


def _never(_body: Json, _chance: Random) -> Iterable[Json]:
    return ()


_SHAPE = (
    RuleNote("gemini.json", "A request is JSON.", f"{_PROTO}; the words are ours", _never),
    RuleNote(
        "gemini.unknown-field",
        "A request has only names the protos know, in camel case or snake case; some are for one surface alone.",
        f"{_PROTO} and 13, wire/gemini_schema.md section 2; wire/samples/gemini/bad_schema.error.json",
        _unknown,
    ),
    RuleNote("gemini.type", "Values have the types of the protos.", "wire/gemini_schema.md section 2", _types),
    RuleNote("gemini.enum", "Words of enums are those of the protos, in any case.", _PROTO, _enums),
    RuleNote("gemini.bounds", "A number fits its type.", "protobuf's JSON mapping", _bounds),
    RuleNote(
        "gemini.oneof",
        "A part holds one thing.",
        "wire/gemini.md section 2; Google's words from public threads",
        _oneofs,
    ),
    RuleNote(
        "gemini.model",
        "There is such a model.",
        "recorded: gemini/newrelic-python-agent-0004, gemini/newrelic-python-agent-0006",
        _never,
    ),
    RuleNote("gemini.envelope", "Code Assist's envelope holds a request.", "wire/gemini.md section 11", _never),
)
NOTES = (*_SHAPE, *(RuleNote(rule.name, rule.says, rule.source, rule.mutate) for rule in RULES))
UNBROKEN = frozenset({"gemini.json", "gemini.model", "gemini.envelope"})
"""Rules no change of a JSON body breaks: the body is JSON, the model stands in the path, an envelope around it."""

_NEW = Situation(model=bodies.MODEL, recorded=True)
_OLD = Situation(model="gemini-2.5-pro", recorded=True)
_VERTEX = Situation(model="gemini-2.5-flash", recorded=True, vertex=True)
CIRCUMSTANCES: dict[str, Situation] = {
    "gemini.role": Situation(model="gemini-2.5-flash", recorded=True),
    "gemini.empty-text": _VERTEX,
    "gemini.file-uploaded": _VERTEX,
    "gemini.file-data": Situation(model="gemini-2.5-flash", recorded=True),
    "gemini.function-count": _VERTEX,
    "gemini.tools-mixed": _OLD,
    "gemini.tools-flagged": _NEW,
    "gemini.streamed-arguments": _VERTEX,
    "gemini.schema-format": _OLD,
    "gemini.schema-any-of": _VERTEX,
    "gemini.schema-defs": _VERTEX,
    "gemini.schema-properties": Situation(model="gemini-1.5-flash", recorded=True),
    "gemini.first-turn": _NEW,
    "gemini.last-turn": _NEW,
    "gemini.result-last": _NEW,
    "gemini.results-together": _NEW,
    "gemini.result-match": _NEW,
    "gemini.penalties": _NEW,
    "gemini.candidates": _NEW,
    "gemini.response-with-tools": _OLD,
    "gemini.thinking-once": _NEW,
    "gemini.thinking-level": _NEW,
    "gemini.thinking-budget": _OLD,
    "gemini.thoughts": Situation(model="gemini-2.5-flash", recorded=True),
    "gemini.signature-missing": _NEW,
    "gemini.signature-altered": _NEW,
    "gemini.signature-foreign": Situation(model=bodies.MODEL),
    "gemini.continuation-token": Situation(model="gemini-4-argon"),
    "gemini.signature-moved": _NEW,
    "gemini.signature-model": _NEW,
    "gemini.signature-twice": _NEW,
}
"""Where a rule holds that does not hold for every model and surface: its mutators break it there."""
