"""Rules about a request as a whole: its model, its version, what it may write."""

from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.messages.blocks import Document, SearchResult, Text, ToolResult
from dragoman.simulator.apis.messages.errors import no_publisher_model
from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.apis.messages.shape import (
    ChoiceAny,
    ChoiceTool,
    ThinkingEnabled,
)
from dragoman.simulator.rule import Situation, Violation

_SAMPLING = ("temperature", "top_p", "top_k")
_EXTRA = "Extra inputs are not permitted"
_OCTOBER = "2026-10-21"
_MODELS = "platform.claude.com about-claude/models/overview"


@rule("model-exists", "recorded: anthropic/braintrust-sdk-python-0001")
def model_exists(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The model must exist."""
    if not reading.model.exists:
        name = reading.model.name
        yield Violation(no_publisher_model(name) if reading.vertex else f"model: {name}", "/model", 404)


@rule(
    "thread-unsupported",
    "clients/README.md, State held by the server",
)
def thread(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Threads are not kept here, and are refused as the vendor refuses what it cannot thread."""
    if reading.generating is not None and reading.generating.thread is not None:
        yield Violation("thread: Message threads are not supported for this request.", "/thread")


@rule("version-sampling", "wire/anthropic_messages.md section 0")
def october_sampling(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Version 2026-10-21 has no sampling members."""
    if reading.version == _OCTOBER:
        for member in _SAMPLING:
            if getattr(reading.request, member, None) is not None:
                yield Violation(f"{member}: {_EXTRA}", f"/{member}")


@rule("version-blocks", "wire/anthropic_messages.md section 0")
def october_blocks(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Version 2026-10-21 has no documents of the model and no citations of the user."""
    if reading.version != _OCTOBER:
        return
    for turn, placed in reading.blocks():
        match placed.block:
            case Document() if turn.role == "assistant":
                yield Violation(
                    f"{placed.path}: `document` blocks are not permitted in assistant messages", placed.where
                )
            case block if turn.role == "user" and any(text.citations for text in _texts(block)):
                yield Violation(f"{placed.path}.text.citations: {_EXTRA}", placed.where)
            case _:
                pass


def _texts(block: Any) -> Iterator[Text]:
    """Return the texts of a block: itself, and those in results that are shown to the model."""
    match block:
        case Text():
            yield block
        case SearchResult(content=content) | ToolResult(content=list() as content):
            for part in content:
                yield from _texts(part)
        case _:
            pass


@rule("max-tokens", _MODELS)
def max_tokens(reading: Reading, _: Situation) -> Iterator[Violation]:
    """max_tokens is at most what the model can write."""
    asked = reading.generating
    most = reading.model.most_output
    if any(beta.startswith("output-128k") for beta in reading.betas or ()):
        most = 128_000
    if asked is not None and asked.max_tokens > most:
        words = f"which is the maximum allowed number of output tokens for {reading.model.name}"
        yield Violation(f"max_tokens: {asked.max_tokens} > {most}, {words}", "/max_tokens")


@rule("prewarm", "platform.claude.com prompt-caching, Limitations")
def prewarm(reading: Reading, _: Situation) -> Iterator[Violation]:
    """max_tokens 0 only fills the cache."""
    asked = reading.generating
    if asked is None or asked.max_tokens != 0:
        return
    formatted = asked.output_format or (asked.output_config and asked.output_config.format)
    refused = {
        "stream": bool(asked.stream),
        "thinking": isinstance(asked.thinking, ThinkingEnabled),
        "output_config.format": formatted is not None,
        "tool_choice": isinstance(asked.tool_choice, ChoiceAny | ChoiceTool),
    }
    for member, used in refused.items():
        if used:
            yield Violation(f"max_tokens: 0 is not supported together with `{member}`", "/max_tokens")


@rule("stop-sequences", "no source: not documented")
def stops(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A stop sequence is more than white space."""
    for number, stop in enumerate((reading.generating and reading.generating.stop_sequences) or ()):
        if not stop.strip():
            words = "stop_sequences: each stop sequence must contain non-whitespace"
            yield Violation(words, f"/stop_sequences/{number}")


RULES = (model_exists, thread, october_sampling, october_blocks, max_tokens, prewarm, stops)
