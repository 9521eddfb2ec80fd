"""Rules about the turns of a conversation: who speaks when, and what may be said."""

from collections.abc import Iterator

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
from dragoman.simulator.rule import Situation, Violation

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


@rule("messages-present", "no source: not documented")
def messages_present(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Somebody must say something."""
    if not reading.request.messages:
        yield Violation("messages: at least one message is required", "/messages")


@rule("message-empty", "claude-code#6774, langchain#35676")
def message_empty(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Every message has content, but the last one of the model need not."""
    messages = reading.request.messages
    for number, message in enumerate(messages):
        last = number == len(messages) - 1 and isinstance(message, AssistantMessage)
        configures = isinstance(message, SystemMessage) and message.output_config is not None
        if not message.content and not last and not configures:
            words = "all messages must have non-empty content except for the optional final assistant message"
            yield Violation(f"messages.{number}: {words}", f"/messages/{number}/content")


@rule("first-turn", f"{_SECTION}; recorded 200s show that models up to 4.6 take a first turn of the model")
def first_turn(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The user speaks first."""
    role = reading.turns[0].role if reading.turns else "user"
    if role == "system" or (role == "assistant" and not reading.model.takes_assistant_first):
        yield Violation('messages: first message must use the "user" role', "/messages/0/role")


@rule("system-turn-model", f"{_SECTION}; claude-code#61412")
def system_turn_model(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Instructions stand in the middle of the conversation only for models that know them there."""
    for turn in reading.turns:
        if turn.role == "system" and not reading.model.takes_system_turns:
            yield Violation("role 'system' is not supported on this model", f"{turn.where}/role")


@rule("system-turn-place", f"{_SECTION}; platform.claude.com mid-conversation-system-messages")
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


@rule("text-empty", f"{_SECTION}; claude-code#59812")
def text_empty(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A text block has text."""
    for _turn, placed in reading.blocks():
        if isinstance(placed.block, Text) and not placed.block.text:
            yield Violation("messages: text content blocks must be non-empty", placed.where)
    system = reading.request.system
    for number, block in enumerate(system if isinstance(system, list) else ()):
        if not block.text:
            yield Violation("system: text content blocks must be non-empty", f"/system/{number}")


@rule("text-blank", f"{_SECTION}; claude-code#23440, home-assistant/core#175637")
def text_blank(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A text block has more than white space, unless a call stands beside it (anthropic/llm-anthropic-0017)."""
    for turn, placed in reading.blocks():
        if not isinstance(placed.block, Text) or placed.block.text.strip():
            continue
        calls = turn.role == "assistant" and any(isinstance(other.block, ToolUse) for other in turn.blocks)
        if not calls:
            yield Violation("messages: text content blocks must contain non-whitespace text", placed.where)


@rule("block-role", f"no source: {_SECTION} tells where blocks stand, not the words")
def block_role(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Calls, thoughts and results of the vendor's tools are the model's; results of calls and images are the user's."""
    for turn, placed in reading.blocks():
        wrong = _NOT_OF_USER if turn.role == "user" else _NOT_OF_MODEL if turn.role == "assistant" else ()
        if isinstance(placed.block, wrong):
            other = "assistant" if turn.role == "user" else "user"
            kind = type(placed.block).__struct_config__.tag
            words = f"messages.{turn.number}: `{kind}` blocks can only be in `{other}` messages"
            yield Violation(words, placed.where)


@rule("prefill", "wire/anthropic_messages.md section 0; platform.claude.com api/errors")
def prefill(reading: Reading, _: Situation) -> Iterator[Violation]:
    """From 4.6 on the answer cannot be begun for the model; a turn that the vendor paused may be sent back."""
    last = reading.turns[-1] if reading.turns else None
    if last is None or last.role != "assistant" or reading.model.takes_prefill:
        return
    end = last.blocks[-1].block if last.blocks else None
    if not isinstance(end, (ServerToolUse, McpToolUse, *_FROM_SERVER)):
        words = "This model does not support assistant message prefill. The conversation must end with a user message."
        yield Violation(words, last.where)


@rule("prefill-whitespace", "forgecode#1872, langchain#35071")
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
