"""Mutators for the rules about shape: each yields bodies that break its rule."""

from collections.abc import Iterable
from random import Random
from typing import Any

from dragoman.simulator.apis.rule import Json
from simulator.apis.gemini import changes
from simulator.mutation import Mutate


def _first_part(body: Json) -> Json:
    return next(part for _, _, part in changes.place_parts(body))


def _unknown(body: Json, chance: Random) -> Iterable[Json]:
    for name in ("frobnicate", "max_tokens", "messages"):
        changed = changes.copy_body(body)
        changes.request_in(changed)[name] = 1
        yield changed
    changed = changes.copy_body(body)
    _first_part(changed)[chance.choice(("type", "cache_control", "cacheControl"))] = "text"
    yield changed
    yield changes.with_config(body, max_tokens=5)
    yield changes.with_function(body, strict=True)
    keyword = chance.choice(("$schema", "const", "oneOf", "exclusiveMinimum", "$ref", "patternProperties"))
    yield changes.with_function(body, parameters={"type": "OBJECT", "properties": {"it": {keyword: "x"}}})


def _types(body: Json, _: Random) -> Iterable[Json]:
    values: tuple[Any, ...] = (5, True, {"text": "x"}, ["x"])
    for value in values:
        changed = changes.copy_body(body)
        changes.contents(changed)[0]["parts"] = [{"text": value}]
        yield changed
    yield changes.with_config(body, temperature="hot")
    yield changes.with_config(body, max_output_tokens=1.5)
    yield changes.with_function(body, description=["x"])
    yield changes.with_function(body, parameters={"type": ["STRING", "NULL"]})
    yield changes.with_function(body, parameters={"type": "OBJECT", "properties": {"it": {"enum": [1]}}})
    yield changes.with_function(body, parameters={"type": "OBJECT", "properties": {"it": True}})
    for response in ("text", 5):
        changed = changes.copy_body(body)
        result = {"functionResponse": {"name": "f", "response": response}}
        changes.contents(changed).append({"role": "user", "parts": [result]})
        yield changed
    changed = changes.copy_body(body)
    _first_part(changed)["thoughtSignature"] = "not base64!"
    yield changed


def _enums(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.with_function(body)
    calling = changes.ensure_message(changes.request_in(changed), "tool_config", "function_calling_config")
    calling["mode"] = "REQUIRED"
    yield changed
    yield changes.with_config(body, thinking_config={"thinkingLevel": "MAX"})
    yield changes.with_function(body, parameters={"type": "ANY"})
    changed = changes.copy_body(body)
    setting = {"category": "HARM_CATEGORY_NONE", "threshold": "OFF"}
    changes.put(changes.request_in(changed), "safety_settings", [setting])
    yield changed


def _bounds(body: Json, _: Random) -> Iterable[Json]:
    yield changes.with_config(body, max_output_tokens=2**31)
    yield changes.with_config(body, seed=-(2**40))


def _oneofs(body: Json, _: Random) -> Iterable[Json]:
    for member, value in (("inlineData", {"mimeType": "image/png", "data": ""}), ("function_call", {"name": "f"})):
        changed = changes.copy_body(body)
        changes.contents(changed)[0]["parts"] = [{"text": "both", member: value}]
        yield changed


def _never(_body: Json, _chance: Random) -> Iterable[Json]:
    return ()


MUTATORS: dict[str, Mutate] = {
    "gemini.json": _never,
    "gemini.unknown-field": _unknown,
    "gemini.type": _types,
    "gemini.enum": _enums,
    "gemini.bounds": _bounds,
    "gemini.oneof": _oneofs,
    "gemini.model": _never,
    "gemini.envelope": _never,
}
