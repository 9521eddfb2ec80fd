"""Rules about calls and their results: every call is answered in the very next turn, first thing, exactly once."""

import re
from collections.abc import Iterator

from dragoman.simulator.apis.messages.blocks import (
    CodeCaller,
    Image,
    NewCodeCaller,
    ServerToolUse,
    Text,
    ToolResult,
    ToolUse,
)
from dragoman.simulator.apis.messages.reading import Placed, Reading, Turn
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.apis.messages.server_blocks import McpToolResult, McpToolUse
from dragoman.simulator.rule import Situation, Violation

_ID = r"^[a-zA-Z0-9_-]+$"
_LEGAL = re.compile(_ID)
_SECTION = "wire/anthropic_messages.md section 3"


def _uses(turn: Turn) -> list[tuple[Placed, ToolUse]]:
    return [(placed, placed.block) for placed in turn.blocks if isinstance(placed.block, ToolUse)]


def _results(turn: Turn) -> list[tuple[Placed, ToolResult]]:
    return [(placed, placed.block) for placed in turn.blocks if isinstance(placed.block, ToolResult)]


def _pairs(reading: Reading) -> Iterator[tuple[Turn, Turn | None]]:
    """Every turn that calls, with the turn after it."""
    for number, turn in enumerate(reading.turns):
        if turn.role == "assistant" and _uses(turn):
            yield turn, reading.turns[number + 1] if number + 1 < len(reading.turns) else None


def _unanswered(turn: Turn, ids: list[str]) -> Violation:
    words = (
        f"messages.{turn.number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )
    return Violation(words, turn.where)


@rule("tool-use-id", _SECTION)
def tool_use_id(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The id of a call has letters, digits, _ and -."""
    for _turn, placed in reading.blocks():
        if isinstance(placed.block, ToolUse | ServerToolUse) and not _LEGAL.fullmatch(placed.block.id):
            kind = type(placed.block).__struct_config__.tag
            words = f"{placed.path}.{kind}.id: String should match pattern '{_ID}'"
            yield Violation(words, f"{placed.where}/id")


@rule("tool-use-ids-unique", f"{_SECTION}; recorded 200s show an id in two turns (anthropic/pydantic-ai-0043)")
def tool_use_ids_unique(reading: Reading, _: Situation) -> Iterator[Violation]:
    """No two calls of one turn have one id."""
    for turn in reading.turns:
        seen: set[str] = set()
        for placed, use in _uses(turn):
            if use.id in seen:
                yield Violation(f"{placed.path}: `tool_use` ids must be unique", f"{placed.where}/id")
            seen.add(use.id)


@rule("tool-use-last", "recorded: anthropic/opencode-0006")
def tool_use_last(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The model says nothing between its calls and their results."""
    for turn, _after in _pairs(reading):
        waiting: list[str] = []
        for placed in turn.blocks:
            match placed.block:
                case ToolUse(id=call):
                    waiting.append(call)
                case Text() if waiting:
                    yield _unanswered(turn, waiting)
                    return
                case ServerToolUse():
                    waiting.clear()
                case _:
                    pass


@rule("tool-result-missing", f"recorded: anthropic/opencode-0006; {_SECTION}")
def tool_result_missing(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Every call is answered in the very next turn."""
    for turn, after in _pairs(reading):
        answered = {result.tool_use_id for _, result in _results(after)} if after is not None else set[str]()
        missing = [use.id for _, use in _uses(turn) if use.id not in answered]
        if missing:
            yield _unanswered(turn, missing)


@rule("tool-result-first", f"{_SECTION}; platform.claude.com handle-tool-calls")
def tool_result_first(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Results come before everything else the user says."""
    for turn, after in _pairs(reading):
        blocks = after.blocks if after is not None else ()
        behind = next(
            (number for number, placed in enumerate(blocks) if not isinstance(placed.block, ToolResult)), len(blocks)
        )
        late = [placed.block.tool_use_id for placed in blocks[behind:] if isinstance(placed.block, ToolResult)]
        if late:
            yield _unanswered(turn, late)


@rule("tool-result-unknown", "recorded: anthropic/anthropic-sdk-python-0027")
def tool_result_unknown(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A result answers a call of the turn before."""
    for number, turn in enumerate(reading.turns):
        before = reading.turns[number - 1] if number else None
        calls = {use.id for _, use in _uses(before)} if before is not None else set[str]()
        for placed, result in _results(turn):
            if result.tool_use_id not in calls:
                words = (
                    f"{placed.path}: unexpected `tool_use_id` found in `tool_result` blocks: {result.tool_use_id}. "
                    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
                yield Violation(words, f"{placed.where}/tool_use_id")


@rule("tool-result-once", "wire/mapping.md section 2; no source for the words")
def tool_result_once(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A call is answered once."""
    for turn in reading.turns:
        seen: set[str] = set()
        for placed, result in _results(turn):
            if result.tool_use_id in seen:
                words = "each tool_use must have a single result. Found multiple `tool_result` blocks with id"
                yield Violation(f"{placed.path}: {words}: {result.tool_use_id}", placed.where)
            seen.add(result.tool_use_id)


@rule("tool-result-error-text", f"{_SECTION} (seen in 2025, not verified since)")
def tool_result_error_text(reading: Reading, _: Situation) -> Iterator[Violation]:
    """What failed says so in words only."""
    for _turn, placed in reading.blocks():
        result = placed.block
        if not isinstance(result, ToolResult) or not result.is_error or not isinstance(result.content, list):
            continue
        if any(not isinstance(part, Text) for part in result.content):
            words = "all content must be type `text` if `is_error` is true"
            yield Violation(f"{placed.path}.tool_result: {words}", placed.where)


@rule("tool-result-toolset", "wire/anthropic_messages.md section 4; platform.claude.com handle-tool-calls")
def tool_result_toolset(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A result names the toolset of its call."""
    for turn, after in _pairs(reading):
        sets = {use.id: use.toolset_name for _, use in _uses(turn)}
        for placed, result in _results(after) if after is not None else ():
            if result.toolset_name != sets.get(result.tool_use_id):
                words = "`toolset_name` must match the `toolset_name` of the corresponding `tool_use` block"
                yield Violation(f"{placed.path}.tool_result.toolset_name: {words}", placed.where)


@rule("programmatic-results", "platform.claude.com programmatic-tool-calling, Message formatting")
def programmatic_results(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A program that waits for a result gets results only, as words."""
    for turn, after in _pairs(reading):
        if after is None or not any(isinstance(use.caller, CodeCaller | NewCodeCaller) for _, use in _uses(turn)):
            continue
        for placed in after.blocks:
            result = placed.block
            if not isinstance(result, ToolResult):
                words = "only `tool_result` blocks are allowed while programmatic tool calls are pending"
                yield Violation(f"{placed.path}: {words}", placed.where)
            elif isinstance(result.content, list) and any(isinstance(part, Image) for part in result.content):
                words = "the result of a programmatic tool call must be text"
                yield Violation(f"{placed.path}.tool_result: {words}", placed.where)


@rule(
    "programmatic-container",
    "platform.claude.com programmatic-tool-calling; no source for the words",
)
def programmatic_container(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A program that waits for a result is found by its container."""
    turns = list(reading.turns)
    waits = len(turns) > 1 and any(isinstance(use.caller, CodeCaller | NewCodeCaller) for _, use in _uses(turns[-2]))
    if waits and reading.generating is not None and reading.generating.container is None:
        words = "container_id is required when there are pending tool uses generated by code execution with tools."
        yield Violation(words, "/container")


@rule("server-result-unknown", "claude-code#64383")
def server_result_unknown(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A result of one of the vendor's tools follows its call."""
    seen: set[str] = set()
    for _turn, placed in reading.blocks():
        block = placed.block
        kind = str(type(block).__struct_config__.tag)
        call: str = getattr(block, "tool_use_id", "")
        if isinstance(block, ServerToolUse | McpToolUse):
            seen.add(block.id)
        elif kind.endswith("_tool_result") and call not in seen:
            before = "mcp_tool_use" if isinstance(block, McpToolResult) else "server_tool_use"
            words = (
                f"{placed.path}: unexpected `tool_use_id` found in `{kind}` blocks: {call}. "
                f"Each `{kind}` block must have a corresponding `{before}` block before it."
            )
            yield Violation(words, placed.where)


@rule("server-result-missing", "platform.claude.com troubleshooting-tool-use")
def server_result_missing(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A call of one of the vendor's tools has its result before the user speaks again."""
    for number, turn in enumerate(reading.turns[:-1]):
        after = reading.turns[number + 1]
        done = {getattr(placed.block, "tool_use_id", "") for placed in turn.blocks}
        if all(isinstance(placed.block, ToolResult) for placed in after.blocks):
            continue
        for placed in turn.blocks:
            use = placed.block
            if isinstance(use, ServerToolUse) and use.id not in done:
                words = f"was found without a corresponding `{use.name}_tool_result` block"
                yield Violation(f"`{use.name}` tool use with id `{use.id}` {words}", placed.where)


RULES = (
    tool_use_id,
    tool_use_ids_unique,
    tool_use_last,
    tool_result_missing,
    tool_result_once,
    tool_result_unknown,
    tool_result_first,
    tool_result_error_text,
    tool_result_toolset,
    programmatic_results,
    programmatic_container,
    server_result_unknown,
    server_result_missing,
)
