"""Rules about what the model said before.

Every call is answered in the very next turn, first thing, exactly once. Thoughts stand in their places, unchanged, and
signed by us for this conversation.
"""

import re
from collections.abc import Iterator

from dragoman.simulator.apis.messages.request import FROM_SERVER, Block, MessagesRequest, Turn, rule
from dragoman.simulator.apis.messages.signing import THOUGHTS, bound_elsewhere, judge_words, thoughts
from dragoman.simulator.rule import Rule, Situation, Violation, computed_once

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


@computed_once
def _pairs(request: MessagesRequest) -> Iterator[tuple[Turn, Turn]]:
    """Return every turn that calls, with the turn after it, which is empty at the end."""
    nobody = Turn("user", 0, "", ())
    for turn, after in zip(request.turns, (*request.turns[1:], nobody), strict=True):
        if turn.role == "assistant" and turn.of("tool_use"):
            yield turn, after


def _unanswered(turn: Turn, ids: list[str]) -> Violation:
    words = (
        f"messages.{turn.number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )
    return Violation(words, turn.where)


@rule("tool-use-id", _CALLS)
def _use_id(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """The id of a call has letters, digits, _ and -."""
    for block in request.blocks("tool_use", "server_tool_use"):
        if not _LEGAL.fullmatch(block.members["id"]):
            words = f"{block.path}.{block.kind}.id: String should match pattern '{_ID}'"
            yield Violation(words, f"{block.where}/id")


def _repeated(request: MessagesRequest, kind: str, member: str) -> Iterator[Block]:
    """Return the blocks that have an id which another one of their turn has."""
    seen: set[tuple[int, str]] = set()
    for block in request.blocks(kind):
        place = (block.turn, block.members[member])
        if place in seen:
            yield block
        seen.add(place)


@rule("tool-use-ids-unique", f"{_CALLS}; recorded 200s show an id in two turns (anthropic/pydantic-ai-0043)")
def _unique_use_ids(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """No two calls of one turn have one id."""
    for block in _repeated(request, "tool_use", "id"):
        yield Violation(f"{block.path}: `tool_use` ids must be unique", f"{block.where}/id")


@rule("tool-use-last", "recorded: anthropic/opencode-0006")
def _use_last(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """The model says nothing between its calls and their results."""
    for turn, _after in _pairs(request):
        waiting: list[str] = []
        for block in turn.of("tool_use", "text", "server_tool_use"):
            if block.kind == "tool_use":
                waiting.append(block.members["id"])
            elif block.kind == "server_tool_use":
                waiting.clear()
            elif waiting:
                yield _unanswered(turn, waiting)


@rule("tool-result-missing", f"recorded: anthropic/opencode-0006; {_CALLS}")
def _result_missing(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """Every call is answered in the very next turn."""
    for turn, after in _pairs(request):
        answered = {result.members["tool_use_id"] for result in after.of("tool_result")}
        missing = [use.members["id"] for use in turn.of("tool_use") if use.members["id"] not in answered]
        if missing:
            yield _unanswered(turn, missing)


@rule("tool-result-once", "wire/mapping.md section 2; no source for the words")
def _result_once(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """A call is answered once."""
    for block in _repeated(request, "tool_result", "tool_use_id"):
        words = "each tool_use must have a single result. Found multiple `tool_result` blocks with id"
        yield Violation(f"{block.path}: {words}: {block.members['tool_use_id']}", block.where)


@rule("tool-result-unknown", "recorded: anthropic/anthropic-sdk-python-0027")
def _result_unknown(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """A result answers a call of the turn before."""
    calls: set[str] = set()
    for turn in request.turns:
        for result in turn.of("tool_result"):
            call = result.members["tool_use_id"]
            if call not in calls:
                words = (
                    f"{result.path}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. "
                    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
                yield Violation(words, f"{result.where}/tool_use_id")
        calls = {use.members["id"] for use in turn.of("tool_use")}


@rule("tool-result-first", f"{_CALLS}; platform.claude.com handle-tool-calls")
def _result_first(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """Results come before everything else the user says."""
    for turn, after in _pairs(request):
        kinds = [block.kind == "tool_result" for block in after.blocks]
        behind = kinds.index(False) if False in kinds else len(kinds)
        late = [block.members["tool_use_id"] for block in after.blocks[behind:] if block.kind == "tool_result"]
        if late:
            yield _unanswered(turn, late)


@rule("tool-result-error-text", f"{_CALLS} (seen in 2025, not verified since)")
def _error_text(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """What failed says so in words only."""
    for result in request.blocks("tool_result"):
        if result.get("is_error") and any(part["type"] != "text" for part in result.list("content")):
            words = "all content must be type `text` if `is_error` is true"
            yield Violation(f"{result.path}.tool_result: {words}", result.where)


@rule("tool-result-toolset", "wire/anthropic_messages.md section 4; platform.claude.com handle-tool-calls")
def _result_toolset(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """A result names the toolset of its call."""
    for turn, after in _pairs(request):
        sets = {use.members["id"]: use.get("toolset_name") for use in turn.of("tool_use")}
        for result in after.of("tool_result"):
            if result.get("toolset_name") != sets.get(result.members["tool_use_id"]):
                words = "`toolset_name` must match the `toolset_name` of the corresponding `tool_use` block"
                yield Violation(f"{result.path}.tool_result.toolset_name: {words}", result.where)


def _is_programmatic(turn: Turn) -> bool:
    """Tell whether a program of the model called."""
    return any((use.get("caller") or {"type": "direct"})["type"] != "direct" for use in turn.of("tool_use"))


@rule("programmatic-results", "platform.claude.com programmatic-tool-calling, Message formatting")
def _programmatic_results(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """A program that waits for a result gets results only, as words."""
    for turn, after in _pairs(request):
        for block in after.blocks if _is_programmatic(turn) else ():
            if block.kind != "tool_result":
                words = "only `tool_result` blocks are allowed while programmatic tool calls are pending"
                yield Violation(f"{block.path}: {words}", block.where)
            elif any(part["type"] == "image" for part in block.list("content")):
                words = "the result of a programmatic tool call must be text"
                yield Violation(f"{block.path}.tool_result: {words}", block.where)


@rule("programmatic-container", "platform.claude.com programmatic-tool-calling; no source for the words")
def _programmatic_container(request: MessagesRequest, situation: Situation) -> Iterator[Violation]:
    """A program that waits for a result is found by its container."""
    waits = any(_is_programmatic(turn) for turn in request.turns[-2:-1])
    if waits and not situation.counting and request.get("container") is None:
        words = "container_id is required when there are pending tool uses generated by code execution with tools."
        yield Violation(words, "/container")


@rule("server-result-unknown", "claude-code#64383")
def _server_result_unknown(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """A result of one of the vendor's tools follows its call."""
    seen: set[str] = set()
    for block in request.blocks("server_tool_use", "mcp_tool_use", *FROM_SERVER):
        call = block.get("tool_use_id")
        if call is None:
            seen.add(block.members["id"])
        elif call not in seen:
            before = "mcp_tool_use" if block.kind == "mcp_tool_result" else "server_tool_use"
            words = (
                f"{block.path}: unexpected `tool_use_id` found in `{block.kind}` blocks: {call}. "
                f"Each `{block.kind}` block must have a corresponding `{before}` block before it."
            )
            yield Violation(words, block.where)


@rule("server-result-missing", "platform.claude.com troubleshooting-tool-use")
def _server_result_missing(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """A call of one of the vendor's tools has its result before the user speaks again."""
    for use in request.blocks("server_tool_use"):
        call, name = use.members["id"], use.members["name"]
        turn, *after = request.turns[use.turn : use.turn + 2]
        is_done = any(block.get("tool_use_id") == call for block in turn.blocks)
        if not is_done and any(block.kind != "tool_result" for turn in after for block in turn.blocks):
            words = f"was found without a corresponding `{name}_tool_result` block"
            yield Violation(f"`{name}` tool use with id `{call}` {words}", use.where)


@rule("prefill", "wire/anthropic_messages.md section 0; platform.claude.com api/errors")
def _prefill(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """From 4.6 on the answer cannot be begun for the model; a turn that the vendor paused may be sent back."""
    last = request.last
    if last is None or last.role != "assistant" or request.model.takes_prefill:
        return
    if not last.blocks or last.blocks[-1].kind not in {"server_tool_use", "mcp_tool_use", *FROM_SERVER}:
        words = "This model does not support assistant message prefill. The conversation must end with a user message."
        yield Violation(words, last.where)


@rule("prefill-whitespace", "forgecode#1872, langchain#35071")
def _prefill_whitespace(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """The beginning of an answer does not end with white space."""
    last = request.last
    end = last.blocks[-1] if last is not None and last.role == "assistant" and last.blocks else None
    if last is not None and end is not None and end.kind == "text" and end.members["text"][-1:].isspace():
        yield Violation("messages: final assistant content cannot end with trailing whitespace", last.where)


@rule("thinking-first", _THINKING)
def _thinking_first(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """With a budget of thoughts, the turn whose calls are being answered starts with a thought."""
    if request.thinking != "enabled" or len(request.turns) < 2:
        return
    last, now = request.turns[-2:]
    first = last.blocks[0] if last.role == "assistant" and last.blocks and now.of("tool_result") else None
    if first is not None and first.kind not in THOUGHTS:
        words = f"Expected `thinking` or `redacted_thinking`, but found `{first.kind}`. {_NOT_FIRST}"
        yield Violation(f"{first.path}.type: {words}", first.where)


@rule("thinking-last", f"{_THINKING}: first, or between calls; no source for the words")
def _thinking_last(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """A turn of the model does not end with a thought."""
    for block in request.blocks("thinking"):
        blocks = request.turns[block.turn].blocks
        if block is blocks[-1] and len(blocks) > 1:
            yield Violation(f"{block.path}: The final block in an assistant message cannot be `thinking`.", block.where)


def _sealed(request: MessagesRequest) -> Iterator[tuple[str, str, str, str]]:
    """Return everything sealed in the history: its pointer, what to say of it, itself, what it seals."""
    for block in request.blocks("web_search_tool_result", "text"):
        for number, page in enumerate(block.list("content")):
            words = f"{block.path}.content.{number}: Invalid `encrypted_content` in `search_result` block"
            yield f"{block.where}/content/{number}", words, page["encrypted_content"], page["url"]
        for number, citation in enumerate(block.list("citations")):
            if citation["type"] == "web_search_result_location":
                words = f"{block.path}.citations.{number}: Invalid `encrypted_index` in citation"
                where = f"{block.where}/citations/{number}"
                yield where, words, citation["encrypted_index"], citation["cited_text"]


@rule("search-sealed", "platform.claude.com web-search-tool; no source for the words")
def _search_sealed(request: MessagesRequest, situation: Situation) -> Iterator[Violation]:
    """What a web search found comes back as it was sealed."""
    for where, words, token, content in _sealed(request):
        verdict = request.signer.judge(token, content)
        if verdict != "genuine" and not (verdict == "foreign" and situation.recorded and token):
            yield Violation(words, where)


def _invalid(block: Block) -> Violation:
    member = "signature" if block.kind == "thinking" else "data"
    return Violation(f"{block.path}: Invalid `{member}` in `{block.kind}` block", f"{block.where}/{member}")


@rule("thinking-signature", _THINKING)
def _signature(request: MessagesRequest, situation: Situation) -> Iterator[Violation]:
    """A thought carries the signature it came with; well-formed ones of the real vendor pass in recordings."""
    for block, token, words in thoughts(request):
        verdict = judge_words(token, words, request.signer)
        recorded = verdict == "foreign" and situation.recorded and _WELL_FORMED.fullmatch(token)
        if verdict in {"altered", "foreign"} and not recorded:
            yield _invalid(block)


@rule("thinking-modified", f"{_THINKING}; platform.claude.com api/errors")
def _modified(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """A thought has the words it came with."""
    for block, token, words in thoughts(request):
        if judge_words(token, words, request.signer) == "moved":
            latest = max(number for number, turn in enumerate(request.turns) if turn.role == "assistant")
            yield Violation(f"{block.path}: {_MODIFIED}", block.where) if block.turn == latest else _invalid(block)


@rule("thinking-reused", "no source: follows from section 6.3")
def _reused(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """A signature stands once in a conversation."""
    seen: set[str] = set()
    for block, token, words in thoughts(request):
        if token in seen and judge_words(token, words, request.signer) == "genuine":
            yield _invalid(block)
        seen.add(token)


@rule("thinking-prefix", "wire/anthropic_messages.md section 6.3")
def _prefix(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """On the newest models a thought belongs to exactly the conversation it was thought in."""
    for block in bound_elsewhere(request):
        if request.at("/thinking/block_binding/prefix_mismatch_behavior") != "drop_block":
            yield Violation(f"{block.path}: {_BOUND}", block.where)


RULES: tuple[Rule[MessagesRequest], ...] = (
    _use_id,
    _unique_use_ids,
    _use_last,
    _result_missing,
    _result_once,
    _result_unknown,
    _result_first,
    _error_text,
    _result_toolset,
    _programmatic_results,
    _programmatic_container,
    _server_result_unknown,
    _server_result_missing,
    # After the pairs: a call that was not answered is that, not the beginning of an answer.
    _prefill,
    _prefill_whitespace,
    _thinking_first,
    _thinking_last,
    _search_sealed,
    _signature,
    _modified,
    _reused,
    _prefix,
)
