"""Rules about the choice of tools."""

from collections.abc import Iterator

from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.apis.messages.shape import (
    ChoiceAny,
    ChoiceTool,
    ThinkingEnabled,
)
from dragoman.simulator.apis.messages.tools import name_of
from dragoman.simulator.rule import Situation, Violation


@rule("tool-choice-tools", "no source: not documented")
def choice_tools(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A choice of tools needs tools."""
    if reading.request.tool_choice is not None and not reading.tools:
        yield Violation("tool_choice may only be specified while providing tools", "/tool_choice")


@rule("tool-choice-forced", "wire/anthropic_messages.md sections 0 and 5")
def choice_forced(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The newest models cannot be forced to call."""
    if isinstance(reading.request.tool_choice, ChoiceAny | ChoiceTool) and not reading.model.can_be_forced:
        words = 'tool_choice: type "tool" and "any" are not supported for this model.'
        yield Violation(words, "/tool_choice/type")


@rule("tool-choice-thinking", "wire/anthropic_messages.md section 5; mastra#7507")
def choice_thinking(reading: Reading, _: Situation) -> Iterator[Violation]:
    """With a budget of thoughts the model cannot be forced to call."""
    forced = isinstance(reading.request.tool_choice, ChoiceAny | ChoiceTool)
    if forced and isinstance(reading.request.thinking, ThinkingEnabled):
        yield Violation("Thinking may not be enabled when tool_choice forces tool use.", "/tool_choice/type")


@rule("tool-choice-name", "no source: not documented")
def choice_name(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The chosen tool must be declared."""
    choice = reading.request.tool_choice
    if isinstance(choice, ChoiceTool) and choice.name not in {name_of(tool) for tool in reading.tools}:
        yield Violation(f"Tool '{choice.name}' not found in provided tools", "/tool_choice/name")


RULES = (choice_tools, choice_forced, choice_thinking, choice_name)
