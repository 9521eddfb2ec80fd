"""Rules about thoughts in the history: in place, unchanged, and signed by us for this conversation."""

import re
from collections.abc import Iterator

from dragoman.simulator.apis.messages.blocks import (
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    WebSearchLocation,
    WebSearchToolResult,
)
from dragoman.simulator.apis.messages.reading import Placed, Reading
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.apis.messages.shape import ThinkingEnabled
from dragoman.simulator.apis.messages.signing import (
    bound_elsewhere,
    drops_thoughts,
    judge_words,
    thoughts,
)
from dragoman.simulator.rule import Rule, Situation, Violation
from dragoman.simulator.signatures import Signer

_WELL_FORMED = re.compile(r"[A-Za-z0-9+/=_-]{8,}")
_SECTION = "wire/anthropic_messages.md section 6.2"
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


def _invalid(placed: Placed) -> Violation:
    kind = type(placed.block).__struct_config__.tag
    member = "signature" if isinstance(placed.block, Thinking) else "data"
    return Violation(f"{placed.path}: Invalid `{member}` in `{kind}` block", f"{placed.where}/{member}")


@rule("thinking-first", _SECTION)
def thinking_first(reading: Reading, _: Situation) -> Iterator[Violation]:
    """With a budget of thoughts, the turn whose calls are being answered starts with a thought."""
    turns = list(reading.turns)
    if len(turns) < 2 or not isinstance(reading.request.thinking, ThinkingEnabled):
        return
    last, now = turns[-2], turns[-1]
    if not any(isinstance(placed.block, ToolResult) for placed in now.blocks):
        return
    first = last.blocks[0] if last.role == "assistant" and last.blocks else None
    if first is not None and not isinstance(first.block, Thinking | RedactedThinking):
        kind = type(first.block).__struct_config__.tag
        words = f"Expected `thinking` or `redacted_thinking`, but found `{kind}`. {_NOT_FIRST}"
        yield Violation(f"{first.path}.type: {words}", first.where)


@rule("thinking-last", f"{_SECTION}: first, or between calls; no source for the words")
def thinking_last(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A turn of the model does not end with a thought."""
    for turn in reading.turns:
        last = turn.blocks[-1] if turn.blocks else None
        if last is not None and len(turn.blocks) > 1 and isinstance(last.block, Thinking):
            yield Violation(f"{last.path}: The final block in an assistant message cannot be `thinking`.", last.where)


STATIC = (thinking_first, thinking_last)


def _sealed(reading: Reading) -> Iterator[tuple[str, str, str, str]]:
    """Everything sealed in the history: its pointer, what to say of it, itself, what it seals."""
    for _turn, placed in reading.blocks():
        match placed.block:
            case WebSearchToolResult(content=list() as found):
                for number, page in enumerate(found):
                    words = f"{placed.path}.content.{number}: Invalid `encrypted_content` in `search_result` block"
                    yield f"{placed.where}/content/{number}", words, page.encrypted_content, page.url
            case Text(citations=list() as citations):
                for number, citation in enumerate(citations):
                    if isinstance(citation, WebSearchLocation):
                        words = f"{placed.path}.citations.{number}: Invalid `encrypted_index` in citation"
                        where = f"{placed.where}/citations/{number}"
                        yield where, words, citation.encrypted_index, citation.cited_text
            case _:
                pass


def signature_rules(signer: Signer) -> tuple[Rule[Reading], ...]:
    """Make the rules that need to know who signs."""

    def signature(reading: Reading, situation: Situation) -> Iterator[Violation]:
        """A thought carries the signature it came with; well-formed ones of the real vendor pass in recordings."""
        for _number, placed, token, words in thoughts(reading):
            verdict = judge_words(token, words, signer)
            recorded = verdict == "foreign" and situation.recorded and _WELL_FORMED.fullmatch(token)
            if verdict in {"altered", "foreign"} and not recorded:
                yield _invalid(placed)

    def modified(reading: Reading, _: Situation) -> Iterator[Violation]:
        """A thought has the words it came with."""
        latest = max((number for number, turn in enumerate(reading.turns) if turn.role == "assistant"), default=0)
        for number, placed, token, words in thoughts(reading):
            if judge_words(token, words, signer) == "moved":
                yield Violation(f"{placed.path}: {_MODIFIED}", placed.where) if number == latest else _invalid(placed)

    def reused(reading: Reading, _: Situation) -> Iterator[Violation]:
        """A signature stands once in a conversation."""
        seen: set[str] = set()
        for _number, placed, token, words in thoughts(reading):
            if token in seen and judge_words(token, words, signer) == "genuine":
                yield _invalid(placed)
            seen.add(token)

    def prefix(reading: Reading, _: Situation) -> Iterator[Violation]:
        """On the newest models a thought belongs to exactly the conversation it was thought in."""
        if not drops_thoughts(reading):
            for placed in bound_elsewhere(reading, signer):
                yield Violation(f"{placed.path}: {_BOUND}", placed.where)

    def sealed(reading: Reading, situation: Situation) -> Iterator[Violation]:
        """What a web search found comes back as it was sealed."""
        for where, path, token, content in _sealed(reading):
            verdict = signer.judge(token, content)
            if verdict != "genuine" and not (verdict == "foreign" and situation.recorded and token):
                yield Violation(path, where)

    return (
        rule("search-sealed", "platform.claude.com web-search-tool; no source for the words")(sealed),
        rule("thinking-signature", _SECTION)(signature),
        rule("thinking-modified", f"{_SECTION}; platform.claude.com api/errors")(modified),
        rule(
            "thinking-reused",
            "no source: follows from section 6.3",
        )(reused),
        rule("thinking-prefix", "wire/anthropic_messages.md section 6.3")(prefix),
    )
