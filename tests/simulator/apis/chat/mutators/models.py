"""Mutators for the rules about models: each yields bodies that break its rule."""

from collections.abc import Iterable
from random import Random
from typing import Any

from dragoman.simulator.apis.rule import Json
from simulator.apis.chat import changes
from simulator.mutation import Mutate

_REASONING = ("o3", "gpt-5", "gpt-5-mini", "gpt-5.6-terra")


_SEARCH_REFUSED = ("temperature", "top_p", "presence_penalty", "frequency_penalty")


_DEFAULTS: dict[str, Any] = {
    "temperature": 1,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "logprobs": False,
    "top_logprobs": 0,
}
"""Sampling parameters, and the values that are accepted even while a model reasons."""


def _with(model_names: Iterable[str], **members: Any) -> Mutate:
    """Return a mutator that sends a body to other models and adds fields."""

    def mutate(body: Json, _: Random) -> Iterable[Json]:
        for model in model_names:
            if (other := changes.change_model(body, model)) is not None:
                yield {**other, **members}

    return mutate


def _each(*mutators: Mutate) -> Mutate:
    def mutate(body: Json, chance: Random) -> Iterable[Json]:
        for mutator in mutators:
            yield from mutator(body, chance)

    return mutate


def _rename(*names: str) -> Mutate:
    def mutate(body: Json, _: Random) -> Iterable[Json]:
        for name in names:
            yield changes.change(body, model=name)

    return mutate


def _without_tools(mutate: Mutate) -> Mutate:
    """Return a mutator that removes tools first, because another rule would reject them earlier."""

    def mutat(body: Json, chance: Random) -> Iterable[Json]:
        yield from mutate(changes.without(body, "tools", "tool_choice", "parallel_tool_calls"), chance)

    return mutat


_SCHEMA = {"type": "json_schema", "json_schema": {"name": "person", "schema": {"type": "object"}}}


MUTATORS: dict[str, Mutate] = {
    "chat.model-unknown": _rename("no-such-model"),
    "chat.model-endpoint": _rename("gpt-3.5-turbo-instruct", "gpt-5.2-pro", "gpt-5-codex", "o3-deep-research"),
    "chat.max-tokens-model": _with(_REASONING, max_tokens=100),
    "chat.stop-model": _each(_with(_REASONING, stop="END"), _with(_REASONING, stop=["END", "STOP"])),
    "chat.bias-model": _each(
        _with(_REASONING, logit_bias={"50256": -100}),
        _with(_REASONING, prediction={"type": "content", "content": "Hello"}),
    ),
    "chat.reasoning-effort": _without_tools(
        _each(
            _with(("gpt-4o", "gpt-4.1"), reasoning_effort="low"),
            _with(("gpt-5", "o3"), reasoning_effort="none"),
            _with(("gpt-5.1", "gpt-5.6-sol", "gpt-6-luna"), reasoning_effort="minimal"),
            _with(("gpt-5.1", "gpt-5.6-sol"), reasoning_effort="max"),
            _with(("gpt-6-astra", "gpt-6.1-sol"), reasoning_effort="none"),
        )
    ),
    "chat.sampling-model": _without_tools(
        _each(
            _with(_REASONING, temperature=0.5),
            _with(_REASONING, top_p=0.5),
            _with(_REASONING, presence_penalty=0.5),
            _with(_REASONING, frequency_penalty=-1),
            _with(_REASONING, logprobs=True),
            _with(("gpt-5.1", "gpt-5.4"), reasoning_effort="low", temperature=0),
        )
    ),
    "chat.web-search-model": _with(("gpt-4o", "gpt-6-luna"), web_search_options={}),
    "chat.search-model-arguments": _each(
        *(_with(("gpt-4o-search-preview",), **{name: _DEFAULTS[name]}) for name in _SEARCH_REFUSED),
    ),
    "chat.audio-model": _each(
        _with(("gpt-4o", "gpt-5.6-sol"), modalities=["text", "audio"], audio={"voice": "alloy", "format": "wav"}),
        _with(("gpt-5.6-sol",), audio={"voice": "alloy", "format": "wav"}),
    ),
    "chat.response-format-model": lambda body, chance: _with(("gpt-4", "gpt-3.5-turbo"), response_format=_SCHEMA)(
        changes.without(body, "response_format"), chance
    ),
    "chat.choices-model": _with(("gpt-5.6-terra",), n=9),
    "chat.top-logprobs-model": _with(("gpt-5.6-terra",), reasoning_effort="none", logprobs=True, top_logprobs=6),
    "chat.cache-retention-model": _with(("gpt-5.5", "gpt-6-luna"), prompt_cache_retention="in_memory"),
}
