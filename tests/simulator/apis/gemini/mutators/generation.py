"""Mutators for the rules about generation: each yields bodies that break its rule."""

from collections.abc import Iterable
from random import Random
from typing import Any

from dragoman.simulator.apis.rule import Json
from simulator.apis.gemini import changes
from simulator.mutation import Mutate

_JSON = "application/json"


def _out_of_range(body: Json, _: Random) -> Iterable[Json]:
    for name, value in (
        ("temperature", 2.5),
        ("temperature", -0.1),
        ("top_p", 1.2),
        ("top_k", 0),
        ("max_output_tokens", 0),
        ("candidate_count", 9),
        ("presence_penalty", 3),
        ("logprobs", 21),
    ):
        yield changes.with_config(body, **{name: value})


def _plain(body: Json, **members: Any) -> Json:
    """Return a copy with only these fields in its generation config."""
    changed = changes.copy_body(body)
    changes.put(
        changes.request_in(changed), "generation_config", {changes.camel(name): members[name] for name in members}
    )
    return changed


def _set_stop(body: Json, _: Random) -> Iterable[Json]:
    yield changes.with_config(body, stop_sequences=["a", "b", "c", "d", "e", "f"])


def _set_probe(body: Json, _: Random) -> Iterable[Json]:
    yield _plain(body, logprobs=3)
    yield _plain(body, logprobs=3, response_logprobs=False)


def _set_penalty(body: Json, _: Random) -> Iterable[Json]:
    yield changes.with_config(body, presence_penalty=0.5)
    yield changes.with_config(body, frequency_penalty=0)


def _several(body: Json, _: Random) -> Iterable[Json]:
    yield changes.with_config(body, candidate_count=2)


def _other_media(body: Json, chance: Random) -> Iterable[Json]:
    yield _plain(body, response_mime_type=chance.choice(("text/html", "json", "image/png")))


def _schema_for_text(body: Json, _: Random) -> Iterable[Json]:
    yield _plain(body, response_schema={"type": "STRING"})
    yield _plain(body, response_json_schema={"type": "object"}, response_mime_type="text/plain")


def _two_schemas(body: Json, _: Random) -> Iterable[Json]:
    schemas = {"response_schema": {"type": "OBJECT"}, "response_json_schema": {"type": "object"}}
    yield _plain(changes.with_tools(body), response_mime_type=_JSON, **schemas)


def _set_schema_with_tools(body: Json, _: Random) -> Iterable[Json]:
    yield _plain(changes.with_function(body), response_mime_type=_JSON)
    yield _plain(changes.with_tools(body, {"googleSearch": {}}), responseMimeType=_JSON)


def _set_thinking_twice(body: Json, _: Random) -> Iterable[Json]:
    yield _plain(body, thinking_config={"thinkingBudget": 1024, "thinking_level": "LOW"})


def _other_level(body: Json, _: Random) -> Iterable[Json]:
    yield _plain(body, thinking_config={"thinking_level": "MINIMAL"})


def _other_budget(body: Json, _: Random) -> Iterable[Json]:
    for budget in (0, 1, 100_000, -2):
        yield _plain(body, thinking_config={"thinkingBudget": budget})


def _thoughtless(body: Json, _: Random) -> Iterable[Json]:
    yield _plain(body, thinking_config={"thinkingBudget": 0, "includeThoughts": True})


MUTATORS: dict[str, Mutate] = {
    "gemini.ranges": _out_of_range,
    "gemini.stop-sequences": _set_stop,
    "gemini.logprobs": _set_probe,
    "gemini.penalties": _set_penalty,
    "gemini.candidates": _several,
    "gemini.response-type": _other_media,
    "gemini.response-schema-type": _schema_for_text,
    "gemini.response-schema-once": _two_schemas,
    "gemini.response-with-tools": _set_schema_with_tools,
    "gemini.thinking-once": _set_thinking_twice,
    "gemini.thinking-level": _other_level,
    "gemini.thinking-budget": _other_budget,
    "gemini.thoughts": _thoughtless,
}
