"""Mutators for the rules about choice: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import a_tool, change, custom_tools, onto, with_tool
from simulator.mutation import Mutate


def _choice_without_tools(body: Json, _: Random) -> Iterator[Json]:
    yield change(body, tools=None, tool_choice={"type": "auto"})


def _force_tool(body: Json, chance: Random) -> Iterator[Json]:
    model = chance.choice(["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1", "some-new-model"])
    for number in custom_tools(body)[:1]:
        yield from onto(body, model, tool_choice={"type": "any"})
        yield from onto(body, model, tool_choice={"type": "tool", "name": body["tools"][number]["name"]})


def _force_with_thinking(body: Json, _: Random) -> Iterator[Json]:
    for moved in onto(body, "claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 1024}):
        if not any(message["role"] == "assistant" for message in body["messages"]):
            yield change(with_tool(moved, a_tool()), tool_choice={"type": "any"})


def _other_choice(body: Json, _: Random) -> Iterator[Json]:
    if custom_tools(body):
        yield from onto(body, "claude-sonnet-4-5", tool_choice={"type": "tool", "name": "no_such_tool"})


MUTATORS: dict[str, Mutate] = {
    "messages.tool-choice-tools": _choice_without_tools,
    "messages.tool-choice-forced": _force_tool,
    "messages.tool-choice-thinking": _force_with_thinking,
    "messages.tool-choice-name": _other_choice,
}
