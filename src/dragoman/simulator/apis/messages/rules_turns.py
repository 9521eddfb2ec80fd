"""Rules about the turns of a conversation: who speaks when, and what may be said."""

from collections.abc import Iterator
from random import Random
from typing import Any

from dragoman.simulator.apis.messages.blocks import (
    Image,
    RedactedThinking,
    SearchResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    WebFetchToolResult,
    WebSearchToolResult,
)
from dragoman.simulator.apis.messages.mutations import changed, ends_with, onto, places, user_blocks_added
from dragoman.simulator.apis.messages.reading import Reading, Turn
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.apis.messages.server_blocks import (
    AdvisorToolResult,
    AssistantMessage,
    BashToolResult,
    CodeExecutionToolResult,
    McpToolResult,
    McpToolUse,
    SystemMessage,
    TextEditorToolResult,
    ToolSearchToolResult,
)
from dragoman.simulator.rule import Json, Situation, Violation

_FROM_SERVER = (
    WebSearchToolResult,
    WebFetchToolResult,
    AdvisorToolResult,
    CodeExecutionToolResult,
    BashToolResult,
    TextEditorToolResult,
    ToolSearchToolResult,
    McpToolResult,
)
_NOT_OF_USER = (Thinking, RedactedThinking, ToolUse, ServerToolUse, McpToolUse, *_FROM_SERVER)
_NOT_OF_MODEL = (ToolResult, Image, SearchResult)
_SECTION = "wire/anthropic_messages.md section 3"


def _nothing_said(body: Json, _: Random) -> Iterator[Json]:
    yield changed(body, messages=[])


@rule("messages-present", "no source: not documented", _nothing_said)
def messages_present(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Somebody must say something."""
    if not reading.request.messages:
        yield Violation("messages: at least one message is required", "/messages")


def _empty_messages(body: Json, _: Random) -> Iterator[Json]:
    question = {"role": "user", "content": "Go on."}
    empty: list[Any] = ["", []]
    for nothing in empty:
        yield changed(body, messages=[{"role": "user", "content": nothing}])
        if ends_with(body) == "user" and not list(places(body, "tool_result")):
            silent = {"role": "assistant", "content": nothing}
            yield changed(body, messages=[*body["messages"], silent, question])


@rule("message-empty", "claude-code#6774, langchain#35676", _empty_messages)
def message_empty(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Every message has content, but the last one of the model need not."""
    messages = reading.request.messages
    for number, message in enumerate(messages):
        last = number == len(messages) - 1 and isinstance(message, AssistantMessage)
        configures = isinstance(message, SystemMessage) and message.output_config is not None
        if not message.content and not last and not configures:
            words = "all messages must have non-empty content except for the optional final assistant message"
            yield Violation(f"messages.{number}: {words}", f"/messages/{number}/content")


def _model_first(body: Json, _: Random) -> Iterator[Json]:
    first = {"role": "assistant", "content": "How can I help?"}
    for moved in onto(body, "claude-opus-4-7"):
        yield changed(moved, messages=[first, *moved["messages"]])
    if body["messages"]:
        yield changed(body, messages=[{"role": "system", "content": "Be brief."}, *body["messages"]])


@rule(
    "first-turn", f"{_SECTION}; recorded 200s show that models up to 4.6 take a first turn of the model", _model_first
)
def first_turn(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The user speaks first."""
    role = reading.turns[0].role if reading.turns else "user"
    if role == "system" or (role == "assistant" and not reading.model.takes_assistant_first):
        yield Violation('messages: first message must use the "user" role', "/messages/0/role")


def _instructed(body: Json, _: Random) -> Iterator[Json]:
    instruction = {"role": "system", "content": "Answer in French."}
    for moved in onto(body, "claude-sonnet-5"):
        yield changed(moved, messages=[*moved["messages"], instruction])


@rule("system-turn-model", f"{_SECTION}; claude-code#61412", _instructed)
def system_turn_model(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Instructions stand in the middle of the conversation only for models that know them there."""
    for turn in reading.turns:
        if turn.role == "system" and not reading.model.takes_system_turns:
            yield Violation("role 'system' is not supported on this model", f"{turn.where}/role")


def _misplaced(body: Json, _: Random) -> Iterator[Json]:
    instruction = {"role": "system", "content": "Answer in French."}
    question = {"role": "user", "content": "Go on."}
    for moved in onto(body, "claude-opus-5-5"):
        yield changed(moved, messages=[*moved["messages"], instruction, question])
        yield changed(moved, messages=[*moved["messages"], instruction, instruction])


@rule("system-turn-place", f"{_SECTION}; platform.claude.com mid-conversation-system-messages", _misplaced)
def system_turn_place(reading: Reading, _: Situation) -> Iterator[Violation]:
    """An instruction follows a turn of the user, and the model or nobody speaks after it."""
    for number, turn in enumerate(reading.turns):
        if turn.role != "system":
            continue
        before = reading.turns[number - 1]
        after = reading.turns[number + 1] if number + 1 < len(reading.turns) else None
        follows = before.role == "user" or _ends_on_server(before)
        if not follows or (after is not None and after.role != "assistant"):
            words = (
                "`system` messages must immediately follow a `user` message or an `assistant` message ending in a "
                "server tool result, and must precede an `assistant` message or end the conversation"
            )
            yield Violation(f"messages.{turn.number}: {words}", turn.where)


def _ends_on_server(turn: Turn) -> bool:
    last = turn.blocks[-1].block if turn.role == "assistant" and turn.blocks else None
    return isinstance(last, _FROM_SERVER)


def _empty_text(body: Json, _: Random) -> Iterator[Json]:
    yield from user_blocks_added(body, {"type": "text", "text": ""})
    if isinstance(body.get("system"), str):
        yield changed(body, system=[{"type": "text", "text": ""}])


@rule("text-empty", f"{_SECTION}; claude-code#59812", _empty_text)
def text_empty(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A text block has text."""
    for _turn, placed in reading.blocks():
        if isinstance(placed.block, Text) and not placed.block.text:
            yield Violation("messages: text content blocks must be non-empty", placed.where)
    system = reading.request.system
    for number, block in enumerate(system if isinstance(system, list) else ()):
        if not block.text:
            yield Violation("system: text content blocks must be non-empty", f"/system/{number}")


def _blank_text(body: Json, _: Random) -> Iterator[Json]:
    yield from user_blocks_added(body, {"type": "text", "text": " \n"})


@rule("text-blank", f"{_SECTION}; claude-code#23440, home-assistant/core#175637", _blank_text)
def text_blank(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A text block has more than white space, unless a call stands beside it (anthropic/llm-anthropic-0017)."""
    for turn, placed in reading.blocks():
        if not isinstance(placed.block, Text) or placed.block.text.strip():
            continue
        calls = turn.role == "assistant" and any(isinstance(other.block, ToolUse) for other in turn.blocks)
        if not calls:
            yield Violation("messages: text content blocks must contain non-whitespace text", placed.where)


def _misattributed(body: Json, _: Random) -> Iterator[Json]:
    used: Json = {"type": "tool_use", "id": "toolu_01Extra", "name": "get_weather", "input": {}}
    yield from user_blocks_added(body, used)
    result = {"type": "tool_result", "tool_use_id": "toolu_01Extra", "content": "18"}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Well."}, result]}
    if ends_with(body) == "user":
        yield changed(body, messages=[*body["messages"], answer, {"role": "user", "content": "Go on."}])


@rule("block-role", f"no source: {_SECTION} tells where blocks stand, not the words", _misattributed)
def block_role(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Calls, thoughts and results of the vendor's tools are the model's; results of calls and images are the user's."""
    for turn, placed in reading.blocks():
        wrong = _NOT_OF_USER if turn.role == "user" else _NOT_OF_MODEL if turn.role == "assistant" else ()
        if isinstance(placed.block, wrong):
            other = "assistant" if turn.role == "user" else "user"
            kind = type(placed.block).__struct_config__.tag
            words = f"messages.{turn.number}: `{kind}` blocks can only be in `{other}` messages"
            yield Violation(words, placed.where)


def _begun(body: Json, chance: Random) -> Iterator[Json]:
    model = chance.choice(["claude-sonnet-4-6", "claude-opus-4-7", "claude-opus-5-5", "some-new-model"])
    for moved in onto(body, model):
        yield changed(moved, messages=[*moved["messages"], {"role": "assistant", "content": "The answer is"}])


@rule("prefill", "wire/anthropic_messages.md section 0; platform.claude.com api/errors", _begun)
def prefill(reading: Reading, _: Situation) -> Iterator[Violation]:
    """From 4.6 on the answer cannot be begun for the model; a turn that the vendor paused may be sent back."""
    last = reading.turns[-1] if reading.turns else None
    if last is None or last.role != "assistant" or reading.model.takes_prefill:
        return
    end = last.blocks[-1].block if last.blocks else None
    if not isinstance(end, (ServerToolUse, McpToolUse, *_FROM_SERVER)):
        words = "This model does not support assistant message prefill. The conversation must end with a user message."
        yield Violation(words, last.where)


def _trailing(body: Json, _: Random) -> Iterator[Json]:
    for moved in onto(body, "claude-haiku-4-5"):
        yield changed(moved, messages=[*moved["messages"], {"role": "assistant", "content": "The answer is "}])


@rule("prefill-whitespace", "forgecode#1872, langchain#35071", _trailing)
def prefill_whitespace(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The beginning of an answer does not end with white space."""
    last = reading.turns[-1] if reading.turns else None
    end = last.blocks[-1].block if last is not None and last.role == "assistant" and last.blocks else None
    if last is not None and isinstance(end, Text) and end.text != end.text.rstrip():
        yield Violation("messages: final assistant content cannot end with trailing whitespace", last.where)


RULES = (
    messages_present,
    message_empty,
    first_turn,
    system_turn_model,
    system_turn_place,
    text_empty,
    text_blank,
    block_role,
)
ENDING = (prefill, prefill_whitespace)
"""They come after the pairing of calls: a call that was not answered is that, not the beginning of an answer."""
