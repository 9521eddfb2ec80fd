"""Mutators for the rules about model: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.responses.changes import items_of, on_model, places, tools_of
from simulator.mutation import Mutate

_PLAIN = "gpt-4o"


def _odden_effort(body: Json, chance: Random) -> Iterator[Json]:
    yield on_model(body, _PLAIN, reasoning={"effort": chance.choice(["low", "medium", "none"])})
    yield on_model(body, "gpt-5.6-terra", reasoning={"effort": "minimal"})
    yield on_model(body, "gpt-6.1-sol", reasoning={"effort": "none"})
    yield on_model(body, "gpt-5.4", reasoning={"effort": "max"})


def _odden_summary(body: Json, _: Random) -> Iterator[Json]:
    yield on_model(body, _PLAIN, reasoning={"summary": "auto"})
    yield on_model(body, _PLAIN, reasoning={"generate_summary": "auto"})


def _sample(body: Json, chance: Random) -> Iterator[Json]:
    value = chance.choice([0.1, 0.5, 0.9])
    for name in ("temperature", "top_p", "presence_penalty", "frequency_penalty"):
        yield on_model(body, "gpt-5.6", reasoning={"effort": "low"}, **{name: value})
    yield on_model(body, "gpt-5", temperature=value)


def _ask_logprobs(body: Json, _: Random) -> Iterator[Json]:
    yield on_model(body, "gpt-5.6", top_logprobs=3)
    yield on_model(body, "gpt-5.6", include=["message.output_text.logprobs"])


def _ask_sealed(body: Json, _: Random) -> Iterator[Json]:
    yield on_model(body, _PLAIN, include=["reasoning.encrypted_content"])


def _ask_tersely(body: Json, _: Random) -> Iterator[Json]:
    yield on_model(body, _PLAIN, text={"verbosity": "low"})


def _customise_early(body: Json, _: Random) -> Iterator[Json]:
    tools = [tool for tool in tools_of(body) if tool.get("type") == "function" and not tool.get("async")]
    if not list(places(items_of(body), "additional_tools", "tool_search_output", "configuration_update")):
        chosen = {"tool_choice": "auto", "tools": [*tools, {"type": "custom", "name": "odd_tool"}]}
        yield on_model(body, "gpt-4.1", **chosen)


def _name_as_before(body: Json, _: Random) -> Iterator[Json]:
    yield on_model(body, "gpt-5.6-terra", reasoning={"generate_summary": "auto"})


MUTATORS: dict[str, Mutate] = {
    "responses.effort": _odden_effort,
    "responses.summary": _odden_summary,
    "responses.sampling": _sample,
    "responses.logprobs": _ask_logprobs,
    "responses.include-encrypted": _ask_sealed,
    "responses.generate-summary": _name_as_before,
    "responses.verbosity": _ask_tersely,
    "responses.custom-tool": _customise_early,
}
