"""Mutators for the rules about settings: each yields bodies that break its rule."""

from collections.abc import Iterable
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.chat import changes
from simulator.mutation import Mutate

_MOST_PAIRS = 16


_LONGEST_KEY = 64


_LONGEST_VALUE = 512


_IDENTIFIERS = {"prompt_cache_key": 64, "safety_identifier": 128}


def _break_stop(body: Json, _: Random) -> Iterable[Json]:
    if (older := changes.change_model(body, "gpt-4.1")) is not None:
        yield changes.change(older, stop=["a", "b", "c", "d", "e"])


def _break_metadata(body: Json, _: Random) -> Iterable[Json]:
    yield changes.change(body, metadata={f"key{number}": "value" for number in range(_MOST_PAIRS + 1)})
    yield changes.change(body, metadata={"k" * (_LONGEST_KEY + 1): "value"})
    yield changes.change(body, metadata={"key": "v" * (_LONGEST_VALUE + 1)})


def _break_identifiers(body: Json, _: Random) -> Iterable[Json]:
    for name, longest in _IDENTIFIERS.items():
        yield changes.change(body, **{name: "x" * (longest + 1)})


def _break_stream_options(body: Json, _: Random) -> Iterable[Json]:
    yield changes.change(body, stream=False, stream_options={"include_usage": True})
    yield changes.change(changes.without(body, "stream"), stream_options={"include_obfuscation": False})


def _break_top_logprobs(body: Json, _: Random) -> Iterable[Json]:
    if (older := changes.change_model(body, "gpt-4.1")) is not None:
        yield changes.change(older, top_logprobs=2)


def _break_both_limits(body: Json, _: Random) -> Iterable[Json]:
    if (older := changes.change_model(body, "gpt-4.1")) is not None:
        yield changes.change(older, max_tokens=100, max_completion_tokens=100)


def _break_format_name(body: Json, _: Random) -> Iterable[Json]:
    if changes.schema_answer(body):
        for name in ("a person", "", "x" * 65, "Person[int]"):
            yield changes.put(body, ("response_format", "json_schema", "name"), name)


def _break_audio(body: Json, _: Random) -> Iterable[Json]:
    if (texts := changes.change_model(body, "gpt-audio")) is not None:
        yield changes.change(texts, modalities=["text", "audio"])


def _break_json_word(body: Json, _: Random) -> Iterable[Json]:
    yield changes.change(
        body, messages=[{"role": "user", "content": "Who are you?"}], response_format={"type": "json_object"}
    )


MUTATORS: dict[str, Mutate] = {
    "chat.json-word": _break_json_word,
    "chat.stop-count": _break_stop,
    "chat.metadata": _break_metadata,
    "chat.identifier-length": _break_identifiers,
    "chat.stream-options-without-stream": _break_stream_options,
    "chat.top-logprobs-without-logprobs": _break_top_logprobs,
    "chat.token-limits": _break_both_limits,
    "chat.response-format-name": _break_format_name,
    "chat.audio-parameters": _break_audio,
}
