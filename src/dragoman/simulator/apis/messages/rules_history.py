"""Rules about earlier assistant turns.

Every call has exactly one result, at the beginning of the very next turn. Thinking blocks keep their positions,
unchanged, and are signed by the simulator for this conversation.
"""

import re
from collections.abc import Iterator

from dragoman.simulator.apis.messages.request import (
    SERVER_RESULT_TYPES,
    Block,
    MessagesRequest,
    MessagesTurn,
    define_rule,
)
from dragoman.simulator.apis.messages.signatures import (
    THOUGHTS,
    find_thoughts,
    iterate_other_conversation_thoughts,
    verify_thinking,
)
from dragoman.simulator.apis.rule import CheckContext, Rule, Violation, cache_per_request

_ID = r"^[a-zA-Z0-9_-]+$"
_LEGAL = re.compile(_ID)
_WELL_FORMED = re.compile(r"[A-Za-z0-9+/=_-]{8,}")
_CALLS = "wire/anthropic_messages.md section 3"
_THINKING = "wire/anthropic_messages.md section 6.2"
_MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must "
    "remain as they were in the original response."
)
_NOT_FIRST = (
    "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceding the lastmost "
    "set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To "
    "avoid this requirement, disable `thinking`."
)
_BOUND = "Invalid `signature` in `thinking` block. The block is bound to a different conversation"


@cache_per_request
def _find_call_turns(request: MessagesRequest) -> Iterator[tuple[MessagesTurn, MessagesTurn]]:
    """Return every turn with calls, and the turn after it, which is empty at the end."""
    no_turn = MessagesTurn("user", 0, "", ())
    for turn, after in zip(request.turns, (*request.turns[1:], no_turn), strict=True):
        if turn.role == "assistant" and turn.blocks_of("tool_use"):
            yield turn, after


def _build_unanswered_violation(turn: MessagesTurn, ids: list[str]) -> Violation:
    message = (
        f"messages.{turn.number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )
    return Violation(message, turn.where)


@define_rule("tool-use-id", _CALLS)
def _check_call_id(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """The id of a call consists of letters, digits, _ and -."""
    for block in request.blocks("tool_use", "server_tool_use"):
        if not _LEGAL.fullmatch(block.members["id"]):
            message = f"{block.path}.{block.kind}.id: String should match pattern '{_ID}'"
            yield Violation(message, f"{block.where}/id")


def _iterate_duplicate_ids(request: MessagesRequest, kind: str, member: str) -> Iterator[Block]:
    """Yield the blocks whose id another block of their turn has."""
    seen: set[tuple[int, str]] = set()
    for block in request.blocks(kind):
        place = (block.turn, block.members[member])
        if place in seen:
            yield block
        seen.add(place)


@define_rule("tool-use-ids-unique", f"{_CALLS}; recorded 200s show an id in two turns (anthropic/pydantic-ai-0043)")
def _check_call_ids_unique(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """No two calls of one turn have the same id."""
    for block in _iterate_duplicate_ids(request, "tool_use", "id"):
        yield Violation(f"{block.path}: `tool_use` ids must be unique", f"{block.where}/id")


@define_rule("tool-use-last", "recorded: anthropic/opencode-0006")
def _check_calls_last(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """The assistant has no text between its calls and their results."""
    for turn, _after in _find_call_turns(request):
        waiting: list[str] = []
        for block in turn.blocks_of("tool_use", "text", "server_tool_use"):
            if block.kind == "tool_use":
                waiting.append(block.members["id"])
            elif block.kind == "server_tool_use":
                waiting.clear()
            elif waiting:
                yield _build_unanswered_violation(turn, waiting)


@define_rule("tool-result-missing", f"recorded: anthropic/opencode-0006; {_CALLS}")
def _check_result_missing(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """Every call has a result in the very next turn."""
    for turn, after in _find_call_turns(request):
        answered = {result.members["tool_use_id"] for result in after.blocks_of("tool_result")}
        missing = [use.members["id"] for use in turn.blocks_of("tool_use") if use.members["id"] not in answered]
        if missing:
            yield _build_unanswered_violation(turn, missing)


@define_rule("tool-result-once", "wire/mapping.md section 2; no source for the error text")
def _check_duplicate_result(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A call has one result."""
    for block in _iterate_duplicate_ids(request, "tool_result", "tool_use_id"):
        message = "each tool_use must have a single result. Found multiple `tool_result` blocks with id"
        yield Violation(f"{block.path}: {message}: {block.members['tool_use_id']}", block.where)


@define_rule("tool-result-unknown", "recorded: anthropic/anthropic-sdk-python-0027")
def _check_result_unknown(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A result belongs to a call of the turn before."""
    calls: set[str] = set()
    for turn in request.turns:
        for result in turn.blocks_of("tool_result"):
            call = result.members["tool_use_id"]
            if call not in calls:
                message = (
                    f"{result.path}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. "
                    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
                yield Violation(message, f"{result.where}/tool_use_id")
        calls = {use.members["id"] for use in turn.blocks_of("tool_use")}


@define_rule("tool-result-first", f"{_CALLS}; platform.claude.com handle-tool-calls")
def _check_results_first(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """Results come before all other blocks of a user turn."""
    for turn, after in _find_call_turns(request):
        kinds = [block.kind == "tool_result" for block in after.blocks]
        behind = kinds.index(False) if False in kinds else len(kinds)
        late = [block.members["tool_use_id"] for block in after.blocks[behind:] if block.kind == "tool_result"]
        if late:
            yield _build_unanswered_violation(turn, late)


@define_rule("tool-result-error-text", f"{_CALLS} (seen in 2025, not verified since)")
def _check_error_text(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A failed result contains text only."""
    for result in request.blocks("tool_result"):
        if result.get("is_error") and any(part["type"] != "text" for part in result.list("content")):
            message = "all content must be type `text` if `is_error` is true"
            yield Violation(f"{result.path}.tool_result: {message}", result.where)


@define_rule("tool-result-toolset", "wire/anthropic_messages.md section 4; platform.claude.com handle-tool-calls")
def _check_result_toolset(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A result names the toolset of its call."""
    for turn, after in _find_call_turns(request):
        sets = {use.members["id"]: use.get("toolset_name") for use in turn.blocks_of("tool_use")}
        for result in after.blocks_of("tool_result"):
            if result.get("toolset_name") != sets.get(result.members["tool_use_id"]):
                message = "`toolset_name` must match the `toolset_name` of the corresponding `tool_use` block"
                yield Violation(f"{result.path}.tool_result.toolset_name: {message}", result.where)


def _is_programmatic(turn: MessagesTurn) -> bool:
    """Return whether a turn has calls made by a program of the model."""
    return any((use.get("caller") or {"type": "direct"})["type"] != "direct" for use in turn.blocks_of("tool_use"))


@define_rule("programmatic-results", "platform.claude.com programmatic-tool-calling, Message formatting")
def _check_programmatic_results(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A program that waits for results gets results only, as text."""
    for turn, after in _find_call_turns(request):
        for block in after.blocks if _is_programmatic(turn) else ():
            if block.kind != "tool_result":
                message = "only `tool_result` blocks are allowed while programmatic tool calls are pending"
                yield Violation(f"{block.path}: {message}", block.where)
            elif any(part["type"] == "image" for part in block.list("content")):
                message = "the result of a programmatic tool call must be text"
                yield Violation(f"{block.path}.tool_result: {message}", block.where)


@define_rule("programmatic-container", "platform.claude.com programmatic-tool-calling; no source for the error text")
def _check_programmatic_container(request: MessagesRequest, context: CheckContext) -> Iterator[Violation]:
    """With pending programmatic calls the request names their container."""
    waits = any(_is_programmatic(turn) for turn in request.turns[-2:-1])
    if waits and not context.counting and request.get("container") is None:
        message = "container_id is required when there are pending tool uses generated by code execution with tools."
        yield Violation(message, "/container")


@define_rule("server-result-unknown", "claude-code#64383")
def _check_server_result_unknown(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A result of a server tool follows its call."""
    seen: set[str] = set()
    for block in request.blocks("server_tool_use", "mcp_tool_use", *SERVER_RESULT_TYPES):
        call = block.get("tool_use_id")
        if call is None:
            seen.add(block.members["id"])
        elif call not in seen:
            before = "mcp_tool_use" if block.kind == "mcp_tool_result" else "server_tool_use"
            message = (
                f"{block.path}: unexpected `tool_use_id` found in `{block.kind}` blocks: {call}. "
                f"Each `{block.kind}` block must have a corresponding `{before}` block before it."
            )
            yield Violation(message, block.where)


@define_rule("server-result-missing", "platform.claude.com troubleshooting-tool-use")
def _check_server_result_missing(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A call of a server tool has its result before the next user turn."""
    for use in request.blocks("server_tool_use"):
        call, name = use.members["id"], use.members["name"]
        turn, *after = request.turns[use.turn : use.turn + 2]
        is_done = any(block.get("tool_use_id") == call for block in turn.blocks)
        if not is_done and any(block.kind != "tool_result" for turn in after for block in turn.blocks):
            message = f"was found without a corresponding `{name}_tool_result` block"
            yield Violation(f"`{name}` tool use with id `{call}` {message}", use.where)


@define_rule("prefill", "wire/anthropic_messages.md section 0; platform.claude.com api/errors")
def _check_prefill(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """From 4.6 on the answer cannot be prefilled; a turn that the vendor paused may be sent back."""
    last = request.last
    if last is None or last.role != "assistant" or request.model.takes_prefill:
        return
    if not last.blocks or last.blocks[-1].kind not in {"server_tool_use", "mcp_tool_use", *SERVER_RESULT_TYPES}:
        message = (
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
        yield Violation(message, last.where)


@define_rule("prefill-whitespace", "forgecode#1872, langchain#35071")
def _check_prefill_whitespace(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A prefilled answer does not end with white space."""
    last = request.last
    end = last.blocks[-1] if last is not None and last.role == "assistant" and last.blocks else None
    if last is not None and end is not None and end.kind == "text" and end.members["text"][-1:].isspace():
        yield Violation("messages: final assistant content cannot end with trailing whitespace", last.where)


@define_rule("thinking-first", _THINKING)
def _check_thinking_first(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """With a thinking budget, the assistant turn whose calls are being answered starts with a thinking block."""
    if request.thinking != "enabled" or len(request.turns) < 2:
        return
    last, now = request.turns[-2:]
    first = last.blocks[0] if last.role == "assistant" and last.blocks and now.blocks_of("tool_result") else None
    if first is not None and first.kind not in THOUGHTS:
        message = f"Expected `thinking` or `redacted_thinking`, but found `{first.kind}`. {_NOT_FIRST}"
        yield Violation(f"{first.path}.type: {message}", first.where)


@define_rule("thinking-last", f"{_THINKING}: first, or between calls; no source for the error text")
def _check_thinking_last(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """An assistant turn does not end with a thinking block."""
    for block in request.blocks("thinking"):
        blocks = request.turns[block.turn].blocks
        if block is blocks[-1] and len(blocks) > 1:
            yield Violation(f"{block.path}: The final block in an assistant message cannot be `thinking`.", block.where)


def _iterate_encrypted_results(request: MessagesRequest) -> Iterator[tuple[str, str, str, str]]:
    """Yield everything encrypted in the history: its pointer, the error text, the token, and the content it signs."""
    for block in request.blocks("web_search_tool_result", "text"):
        for number, page in enumerate(block.list("content")):
            message = f"{block.path}.content.{number}: Invalid `encrypted_content` in `search_result` block"
            yield f"{block.where}/content/{number}", message, page["encrypted_content"], page["url"]
        for number, citation in enumerate(block.list("citations")):
            if citation["type"] == "web_search_result_location":
                message = f"{block.path}.citations.{number}: Invalid `encrypted_index` in citation"
                where = f"{block.where}/citations/{number}"
                yield where, message, citation["encrypted_index"], citation["cited_text"]


@define_rule("search-sealed", "platform.claude.com web-search-tool; no source for the error text")
def _check_encrypted_results(request: MessagesRequest, context: CheckContext) -> Iterator[Violation]:
    """Encrypted web search results come back unchanged."""
    for where, message, token, content in _iterate_encrypted_results(request):
        verdict = request.signer.judge(token, content)
        if verdict != "genuine" and not (verdict == "foreign" and context.recorded and token):
            yield Violation(message, where)


def _build_invalid_signature(block: Block) -> Violation:
    member = "signature" if block.kind == "thinking" else "data"
    return Violation(f"{block.path}: Invalid `{member}` in `{block.kind}` block", f"{block.where}/{member}")


@define_rule("thinking-signature", _THINKING)
def _check_thinking_signature(request: MessagesRequest, context: CheckContext) -> Iterator[Violation]:
    """A thinking block has its original signature; in recordings, well-formed ones of the vendor are accepted."""
    for block, token, thinking in find_thoughts(request):
        verdict = verify_thinking(token, thinking, request.signer)
        recorded = verdict == "foreign" and context.recorded and _WELL_FORMED.fullmatch(token)
        if verdict in {"altered", "foreign"} and not recorded:
            yield _build_invalid_signature(block)


@define_rule("thinking-modified", f"{_THINKING}; platform.claude.com api/errors")
def _check_thinking_modified(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A thinking block has the text it came with."""
    for block, token, thinking in find_thoughts(request):
        if verify_thinking(token, thinking, request.signer) == "moved":
            latest = max(number for number, turn in enumerate(request.turns) if turn.role == "assistant")
            yield (
                Violation(f"{block.path}: {_MODIFIED}", block.where)
                if block.turn == latest
                else _build_invalid_signature(block)
            )


@define_rule("thinking-reused", "no source: follows from section 6.3")
def _check_signature_reused(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A signature occurs once in a conversation."""
    seen: set[str] = set()
    for block, token, thinking in find_thoughts(request):
        if token in seen and verify_thinking(token, thinking, request.signer) == "genuine":
            yield _build_invalid_signature(block)
        seen.add(token)


@define_rule("thinking-prefix", "wire/anthropic_messages.md section 6.3")
def _check_thinking_prefix(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """On the newest models a thinking block is valid only in the conversation it came from."""
    for block in iterate_other_conversation_thoughts(request):
        if request.at("/thinking/block_binding/prefix_mismatch_behavior") != "drop_block":
            yield Violation(f"{block.path}: {_BOUND}", block.where)


RULES: tuple[Rule[MessagesRequest], ...] = (
    _check_call_id,
    _check_call_ids_unique,
    _check_calls_last,
    _check_result_missing,
    _check_duplicate_result,
    _check_result_unknown,
    _check_results_first,
    _check_error_text,
    _check_result_toolset,
    _check_programmatic_results,
    _check_programmatic_container,
    _check_server_result_unknown,
    _check_server_result_missing,
    # After the pairing rules: a call without a result is reported as that, not as a prefill.
    _check_prefill,
    _check_prefill_whitespace,
    _check_thinking_first,
    _check_thinking_last,
    _check_encrypted_results,
    _check_thinking_signature,
    _check_thinking_modified,
    _check_signature_reused,
    _check_thinking_prefix,
)
