"""Mutators for the rules about request: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.responses.changes import OBJECT, change, is_standalone, on_model
from simulator.mutation import Mutate


def _drop_model(body: Json, _: Random) -> Iterator[Json]:
    if not body.get("prompt"):
        yield {name: value for name, value in body.items() if name != "model"}


def _rename_model(body: Json, chance: Random) -> Iterator[Json]:
    yield change(body, model=f"no-such-model-{chance.randrange(100)}")
    yield change(body, model="")


def _drop_input(body: Json, _: Random) -> Iterator[Json]:
    if is_standalone(body):
        yield {name: value for name, value in body.items() if name != "input"}
        yield change(body, input=[])


def _add_states(body: Json, _: Random) -> Iterator[Json]:
    yield change(body, previous_response_id="resp_1", conversation="conv_1")
    yield change(body, previous_response_id="resp_1", conversation={"id": "conv_1"})


def _odden_state_id(body: Json, _: Random) -> Iterator[Json]:
    if is_standalone(body):
        yield change(body, previous_response_id="chatcmpl-1")
        yield change(body, conversation="thread_1")


def _run_unstored(body: Json, _: Random) -> Iterator[Json]:
    yield change(body, background=True, store=False)


def _add_stream_options(body: Json, _: Random) -> Iterator[Json]:
    yield change(body, stream=False, stream_options={"include_obfuscation": False})


def _ask_for_json(body: Json, _: Random) -> Iterator[Json]:
    if not any(body.get(name) for name in ("previous_response_id", "conversation", "prompt")):
        yield change(body, text={"format": {"type": "json_object"}}, input="Say hello.")


def _odden_format_name(body: Json, _: Random) -> Iterator[Json]:
    expected: Json = {"type": "json_schema", "schema": OBJECT}
    for name in ("two words", "", "n" * 65):
        yield change(body, text={"format": {**expected, "name": name}})


def _odden_format_schema(body: Json, _: Random) -> Iterator[Json]:
    loose = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}
    schemas = (
        ({"type": "array", "items": {"type": "string"}}, False),
        (loose, True),
        ({**loose, "additionalProperties": False}, True),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, False),
    )
    for schema, strict in schemas:
        expected = {"type": "json_schema", "name": "answer", "schema": schema, "strict": strict}
        yield change(body, text={"format": expected})


def _cache_shortly(body: Json, _: Random) -> Iterator[Json]:
    yield on_model(body, "gpt-5.6", prompt_cache_retention="in_memory")


def _cache_early(body: Json, _: Random) -> Iterator[Json]:
    yield on_model(body, "gpt-5.4", prompt_cache_options={"mode": "explicit"})
    if is_standalone(body):
        part: Json = {"type": "input_text", "text": "Hello, json.", "prompt_cache_breakpoint": {"mode": "explicit"}}
        yield on_model(body, "gpt-5.4", input=[{"role": "user", "content": [part]}])


MUTATORS: dict[str, Mutate] = {
    "responses.model": _drop_model,
    "responses.model-found": _rename_model,
    "responses.input": _drop_input,
    "responses.one-state": _add_states,
    "responses.state-id": _odden_state_id,
    "responses.background-stored": _run_unstored,
    "responses.stream-options": _add_stream_options,
    "responses.json-word": _ask_for_json,
    "responses.format-name": _odden_format_name,
    "responses.format-schema": _odden_format_schema,
    "responses.cache-retention": _cache_shortly,
    "responses.cache-options": _cache_early,
}
