"""Rules about the choice of tools."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.messages.mutations import a_tool, changed, custom_tools, onto, with_tool
from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.apis.messages.shape import (
    ChoiceAny,
    ChoiceTool,
    ThinkingEnabled,
)
from dragoman.simulator.apis.messages.tools import name_of
from dragoman.simulator.rule import Json, Situation, Violation


def _choice_without_tools(body: Json, _: Random) -> Iterator[Json]:
    yield changed(body, tools=None, tool_choice={"type": "auto"})


@rule("tool-choice-tools", "no source: not documented", _choice_without_tools)
def choice_tools(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A choice of tools needs tools."""
    if reading.request.tool_choice is not None and not reading.tools:
        yield Violation("tool_choice may only be specified while providing tools", "/tool_choice")


def _forced(body: Json, chance: Random) -> Iterator[Json]:
    model = chance.choice(["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1", "some-new-model"])
    for number in custom_tools(body)[:1]:
        yield from onto(body, model, tool_choice={"type": "any"})
        yield from onto(body, model, tool_choice={"type": "tool", "name": body["tools"][number]["name"]})


@rule("tool-choice-forced", "wire/anthropic_messages.md sections 0 and 5", _forced)
def choice_forced(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The newest models cannot be forced to call."""
    if isinstance(reading.request.tool_choice, ChoiceAny | ChoiceTool) and not reading.model.can_be_forced:
        words = 'tool_choice: type "tool" and "any" are not supported for this model.'
        yield Violation(words, "/tool_choice/type")


def _forced_thinking(body: Json, _: Random) -> Iterator[Json]:
    for moved in onto(body, "claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 1024}):
        if not any(message["role"] == "assistant" for message in body["messages"]):
            yield changed(with_tool(moved, a_tool()), tool_choice={"type": "any"})


@rule("tool-choice-thinking", "wire/anthropic_messages.md section 5; mastra#7507", _forced_thinking)
def choice_thinking(reading: Reading, _: Situation) -> Iterator[Violation]:
    """With a budget of thoughts the model cannot be forced to call."""
    forced = isinstance(reading.request.tool_choice, ChoiceAny | ChoiceTool)
    if forced and isinstance(reading.request.thinking, ThinkingEnabled):
        yield Violation("Thinking may not be enabled when tool_choice forces tool use.", "/tool_choice/type")


def _other_choice(body: Json, _: Random) -> Iterator[Json]:
    if custom_tools(body):
        yield from onto(body, "claude-sonnet-4-5", tool_choice={"type": "tool", "name": "no_such_tool"})


@rule("tool-choice-name", "no source: not documented", _other_choice)
def choice_name(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The chosen tool must be declared."""
    choice = reading.request.tool_choice
    if isinstance(choice, ChoiceTool) and choice.name not in {name_of(tool) for tool in reading.tools}:
        yield Violation(f"Tool '{choice.name}' not found in provided tools", "/tool_choice/name")


RULES = (choice_tools, choice_forced, choice_thinking, choice_name)
