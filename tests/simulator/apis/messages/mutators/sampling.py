"""Mutators for the rules about sampling: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import onto
from simulator.mutation import Mutate


def _set_sampling(body: Json, chance: Random) -> Iterator[Json]:
    model = chance.choice(["claude-opus-4-7", "claude-sonnet-5", "claude-opus-5-5", "some-new-model"])
    yield from onto(body, model, temperature=0.2)
    yield from onto(body, model, top_p=0.5)
    yield from onto(body, model, top_k=40)


def _doubly_sampled(body: Json, chance: Random) -> Iterator[Json]:
    yield from onto(body, chance.choice(["claude-sonnet-4-5", "claude-haiku-4-5"]), temperature=0.5, top_p=0.9)


def _other_thinking(body: Json, _: Random) -> Iterator[Json]:
    enabled = {"type": "enabled", "budget_tokens": 1024}
    for model, thinking in (
        ("claude-sonnet-4-5", {"type": "adaptive"}),
        ("claude-opus-4-7", enabled),
        ("claude-opus-5-5", enabled),
        ("claude-opus-5-5", {"type": "disabled"}),
        ("claude-sonnet-5-5", {"type": "disabled"}),
        ("claude-opus-5", {"type": "between_tools"}),
    ):
        yield from onto(body, model, thinking=thinking)


def _set_sampling_and_thinking(body: Json, _: Random) -> Iterator[Json]:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    if any(message["role"] == "assistant" for message in body["messages"]):
        return
    for sampling in ({"temperature": 0.3}, {"top_k": 20}, {"top_p": 0.5}):
        yield from onto(body, "claude-sonnet-4-5", thinking=thinking, **sampling)


def _large_budget(body: Json, _: Random) -> Iterator[Json]:
    yield from onto(body, "claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 4096})


def _other_effort(body: Json, _: Random) -> Iterator[Json]:
    yield from onto(body, "claude-haiku-4-5", output_config={"effort": "low"})
    yield from onto(body, "claude-opus-4-5", output_config={"effort": "max"})
    yield from onto(body, "claude-sonnet-4-6", output_config={"effort": "xhigh"})


def _quiet_at_most_effort(body: Json, _: Random) -> Iterator[Json]:
    yield from onto(body, "claude-opus-5", thinking={"type": "disabled"}, output_config={"effort": "max"})
    yield from onto(body, "claude-sonnet-5-5", thinking={"type": "between_tools"}, output_config={"effort": "xhigh"})


MUTATORS: dict[str, Mutate] = {
    "messages.sampling": _set_sampling,
    "messages.temperature-and-top-p": _doubly_sampled,
    "messages.thinking-type": _other_thinking,
    "messages.thinking-sampling": _set_sampling_and_thinking,
    "messages.thinking-budget": _large_budget,
    "messages.effort": _other_effort,
    "messages.thinking-effort": _quiet_at_most_effort,
}
