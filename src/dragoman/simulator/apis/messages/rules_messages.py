"""Rules about messages: cache breakpoints, images and documents, the order of roles, and the blocks they may have."""

from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Iterator

from dragoman.simulator.apis.messages.errors import format_pointer
from dragoman.simulator.apis.messages.request import (
    SERVER_RESULT_TYPES,
    MessagesRequest,
    MessagesTurn,
    define_rule,
    find_cache_breakpoints,
    find_media,
)
from dragoman.simulator.apis.rule import CheckContext, Json, PathCheck, Rule, Violation

_MOST_BREAKPOINTS = 4
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)
_MESSAGE_NOT_DOCUMENTED = "no source: the error text is not documented"
_FORBIDDEN_BLOCKS = {
    "user": {"thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use", *SERVER_RESULT_TYPES},
    "assistant": {"tool_result", "image", "search_result"},
    "system": set[str](),
}
"""The blocks that are not allowed in a turn of each role."""
_CACHE = "wire/anthropic_messages.md section 12"
_SECTION = "wire/anthropic_messages.md section 3"


@define_rule("cache-count", _CACHE)
def _check_breakpoint_count(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """There are at most four cache breakpoints, including the automatic one."""
    marks = find_cache_breakpoints(request)
    found = len(marks) + (request.get("cache_control") is not None)
    if found > _MOST_BREAKPOINTS:
        message = f"A maximum of {_MOST_BREAKPOINTS} blocks with cache_control may be provided. Found {found}."
        yield Violation(message, marks[-1][0])


@define_rule("cache-order", f"{_CACHE}; headroom#2939")
def _check_breakpoint_order(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A breakpoint with a longer lifetime comes before one with a shorter."""
    seen: set[str] = set()
    for where, ttl in find_cache_breakpoints(request):
        if ttl == "1h" and "5m" in seen:
            message = (
                "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks "
                "are processed in the following order: `tools`, `system`, `messages`."
            )
            yield Violation(f"{format_pointer(where)}.cache_control.ttl: {message}", f"{where}/cache_control/ttl")
        seen.add(ttl)


def _decode_data(source: Json) -> bytes:
    """Return the decoded inline data; empty if it is not valid base64."""
    try:
        return b64decode(source["data"], validate=True)
    except (Error, ValueError):
        return b""


def _detect_image_type(raw: bytes) -> str:
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _MAGIC if raw.startswith(start)), "")


def _build_media_rule(
    name: str, says: str, kind: str, member: str, find_problem: Callable[[Json], str]
) -> Rule[MessagesRequest]:
    """Return a rule about sources of one type; `find_problem` returns the error text about the field `member`."""

    def check(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
        for where, path, shown in find_media(request):
            source = shown["source"]
            if source["type"] == kind and (message := find_problem(source)):
                named = "data" if kind == "base64" else member
                yield Violation(f"{path}.source.{kind}.{named}: {message}", f"{where}/source/{member}")

    return Rule(f"messages.{name}", says, _MESSAGE_NOT_DOCUMENTED, check)


def _describe_image_type_mismatch(source: Json) -> str:
    declared, detected = source["media_type"], _detect_image_type(_decode_data(source))
    if not detected or detected == declared or not declared.startswith("image/"):
        return ""
    return f"The image was specified using the {declared} media type, but the image appears to be a {detected} image"


def _describe_invalid_pdf(source: Json) -> str:
    is_pdf = source["media_type"] != "application/pdf" or _decode_data(source).startswith(b"%PDF")
    return "" if is_pdf else "The PDF specified was not valid."


@define_rule("message-empty", "claude-code#6774, langchain#35676")
def _check_message_empty(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """Every message has content, except for an optional final assistant message."""
    messages = request.list("messages")
    for number, message in enumerate(messages):
        is_last = number == len(messages) - 1 and message["role"] == "assistant"
        if not message.get("content") and not is_last and message.get("output_config") is None:
            text = "all messages must have non-empty content except for the optional final assistant message"
            yield Violation(f"messages.{number}: {text}", f"/messages/{number}/content")


@define_rule("first-turn", f"{_SECTION}; recorded 200s show that models up to 4.6 accept an assistant turn first")
def _check_first_turn(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """The first turn is a user turn."""
    role = request.turns[0].role if request.turns else "user"
    if role == "system" or (role == "assistant" and not request.model.takes_assistant_first):
        yield Violation('messages: first message must use the "user" role', "/messages/0/role")


@define_rule("system-turn-place", f"{_SECTION}; platform.claude.com mid-conversation-system-messages")
def _check_system_turn_place(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A system message follows a user turn, and precedes an assistant turn or ends the conversation."""
    for number, turn in enumerate(request.turns):
        if turn.role != "system":
            continue
        before, after = request.turns[number - 1], request.turns[number + 1 : number + 2]
        follows = before.role == "user" or _ends_with_server_result(before)
        if not follows or (after and after[0].role != "assistant"):
            message = (
                "`system` messages must immediately follow a `user` message or an `assistant` message ending in a "
                "server tool result, and must precede an `assistant` message or end the conversation"
            )
            yield Violation(f"messages.{turn.number}: {message}", turn.where)


def _ends_with_server_result(turn: MessagesTurn) -> bool:
    return turn.role == "assistant" and bool(turn.blocks) and turn.blocks[-1].kind in SERVER_RESULT_TYPES


def _check_text_empty(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    for block in request.blocks("text"):
        if not block.members["text"]:
            yield Violation("messages: text content blocks must be non-empty", block.where)


@define_rule("text-blank", f"{_SECTION}; claude-code#23440, home-assistant/core#175637")
def _check_text_blank(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A text block has more than white space, unless its turn has a call (anthropic/llm-anthropic-0017)."""
    for block in request.blocks("text"):
        turn = request.turns[block.turn]
        if not block.members["text"].strip() and not (turn.role == "assistant" and turn.blocks_of("tool_use")):
            yield Violation("messages: text content blocks must contain non-whitespace text", block.where)


@define_rule("block-role", f"no source: {_SECTION} documents the roles of blocks, not the error text")
def _check_block_role(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """Calls, thinking and server tool results are in assistant turns; results of calls and images in user turns."""
    for block in request.all_blocks:
        turn = request.turns[block.turn]
        if block.kind in _FORBIDDEN_BLOCKS[turn.role]:
            other = "assistant" if turn.role == "user" else "user"
            message = f"messages.{turn.number}: `{block.kind}` blocks can only be in `{other}` messages"
            yield Violation(message, block.where)


RULES: tuple[Rule[MessagesRequest], ...] = (
    _check_breakpoint_count,
    _check_breakpoint_order,
    _build_media_rule(
        "media-base64",
        "Inline data is base64, without a prefix.",
        "base64",
        "data",
        lambda source: "" if _decode_data(source) else "invalid base64 data",
    ),
    _build_media_rule(
        "image-type", "An image is of the declared media type.", "base64", "media_type", _describe_image_type_mismatch
    ),
    _build_media_rule("document-pdf", "A PDF begins with %PDF.", "base64", "data", _describe_invalid_pdf),
    _build_media_rule(
        "media-url",
        "URLs of media use HTTPS.",
        "url",
        "url",
        lambda source: "" if source["url"].startswith("https://") else "Only HTTPS URLs are supported.",
    ),
    Rule(
        "messages.messages-present",
        "There is at least one message.",
        "no source: not documented",
        PathCheck("/messages", "messages: at least one message is required", lambda messages: not messages),
    ),
    _check_message_empty,
    _check_first_turn,
    Rule(
        "messages.system-turn-model",
        "System messages in the middle of the conversation need a model that supports them.",
        f"{_SECTION}; claude-code#61412",
        PathCheck(
            "/messages/*/role",
            "role 'system' is not supported on this model",
            lambda role: role == "system",
            lambda request: not request.model.takes_system_turns,
        ),
    ),
    _check_system_turn_place,
    Rule(
        "messages.text-empty",
        "A text block has text.",
        f"{_SECTION}; claude-code#59812",
        _check_text_empty,
        PathCheck("/system/*/text", "system: text content blocks must be non-empty", lambda text: not text, steps=2),
    ),
    _check_text_blank,
    _check_block_role,
)
