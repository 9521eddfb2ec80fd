"""Mutators for the rules about shape: each yields bodies that break its rule."""

from collections.abc import Iterable
from math import inf, nan
from random import Random
from typing import Any

from dragoman.simulator.apis.rule import Json
from simulator.apis.chat import changes
from simulator.mutation import Mutate

_FOREIGN: dict[str, Any] = {
    "system": "Be brief.",
    "thinking": {"type": "enabled"},
    "top_k": 40,
    "previous_response_id": "resp_1",
    "max_output_tokens": 100,
    "contents": [],
    "repetition_penalty": 1.1,
}


_WRONG_TYPES: dict[str, Any] = {
    "messages": "Hello",
    "tools": "none",
    "n": "2",
    "temperature": "hot",
    "store": "yes",
    "stream": "yes",
    "seed": 1.5,
    "user": {"id": 1},
    "tool_choice": 7,
    "response_format": "json",
    "metadata": {"number": 7},
    "stop": 7,
    "max_completion_tokens": "100",
}


_WRONG_WORDS: dict[str, Any] = {
    "service_tier": "bogus",
    "verbosity": "loud",
    "reasoning_effort": "extreme",
    "tool_choice": "any",
    "response_format": {"type": "xml"},
    "modalities": ["video"],
    "prompt_cache_retention": "1h",
}


_OUT_OF_BOUNDS: dict[str, Any] = {
    "temperature": 2.5,
    "top_p": -0.1,
    "presence_penalty": -3,
    "frequency_penalty": 2.1,
    "n": 0,
    "max_completion_tokens": 0,
    "top_logprobs": 21,
    "logit_bias": {"50256": 101},
}


def _break_json(body: Json, _: Random) -> Iterable[Json]:
    """Set a number that Python can write but JSON does not have."""
    yield changes.change(body, temperature=nan)
    yield changes.change(body, seed=inf)


def _break_unknown(body: Json, chance: Random) -> Iterable[Json]:
    for name, value in _FOREIGN.items():
        yield changes.change(body, **{name: value})
    place = chance.randrange(len(body["messages"]))
    for name in ("reasoning_content", "reasoning", "thought_signature"):
        yield changes.put(body, ("messages", place, name), "Hm.")
    for path, _part in changes.parts(body):
        yield changes.put(body, (*path, "citations"), [])
    for path, _call in changes.calls(body):
        yield changes.put(body, (*path, "extra_content"), {"google": {"thought_signature": "abc"}})
    for index, _tool in enumerate(changes.tools(body)):
        yield changes.put(body, ("tools", index, "cache_control"), {"type": "ephemeral"})


def _break_type(body: Json, chance: Random) -> Iterable[Json]:
    for name, value in _WRONG_TYPES.items():
        yield changes.change(body, **{name: value})
    place = chance.randrange(len(body["messages"]))
    yield changes.put(body, ("messages", place), "Hello")
    yield changes.put(body, ("messages", place, "content"), 7)
    for path, call in changes.calls(body):
        if call["type"] == "function":
            yield changes.put(body, (*path, "function", "arguments"), {"city": "Paris"})
    for path, _part in changes.parts(body, "image_url"):
        yield changes.put(body, (*path, "image_url"), "https://example.com/cat.png")


def _break_enum(body: Json, chance: Random) -> Iterable[Json]:
    for name, value in _WRONG_WORDS.items():
        yield changes.change(body, **{name: value})
    place = chance.randrange(len(body["messages"]))
    for role in ("model", "human"):
        yield changes.put(body, ("messages", place, "role"), role)
    yield changes.put(body, ("messages", place, "content"), [{"type": "input_text", "text": "Hello"}])
    for index, _tool in enumerate(changes.tools(body)):
        yield changes.put(body, ("tools", index, "type"), "web_search")


def _break_required(body: Json, chance: Random) -> Iterable[Json]:
    yield changes.without(body, "model")
    yield changes.without(body, "messages")
    place = chance.randrange(len(body["messages"]))
    yield changes.drop(body, ("messages", place, "role"))
    for path, call in changes.calls(body):
        for name in ("id", "type", call["type"]):
            yield changes.drop(body, (*path, name))
    for place, _message in changes.messages(body, "tool"):
        yield changes.drop(body, ("messages", place, "tool_call_id"))
    for path, _function in changes.functions(body):
        yield changes.drop(body, (*path, "name"))
    yield changes.change(body, response_format={})
    yield changes.change(body, response_format={"type": "json_schema"})


def _break_bounds(body: Json, _: Random) -> Iterable[Json]:
    for name, value in _OUT_OF_BOUNDS.items():
        yield changes.change(body, **{name: value})


MUTATORS: dict[str, Mutate] = {
    "chat.json": _break_json,
    "chat.unknown-field": _break_unknown,
    "chat.type": _break_type,
    "chat.enum": _break_enum,
    "chat.required": _break_required,
    "chat.bounds": _break_bounds,
}
