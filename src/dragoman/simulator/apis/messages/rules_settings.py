"""Rules about a request as a whole: its model, its version, what it may write."""

from collections.abc import Iterator
from random import Random
from typing import Any

from dragoman.simulator.apis.messages.blocks import Document, SearchResult, Text, ToolResult
from dragoman.simulator.apis.messages.errors import no_publisher_model
from dragoman.simulator.apis.messages.mutations import blocks_of, changed
from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.apis.messages.shape import (
    ChoiceAny,
    ChoiceTool,
    ThinkingEnabled,
)
from dragoman.simulator.rule import Json, Situation, Violation

_SAMPLING = ("temperature", "top_p", "top_k")
_EXTRA = "Extra inputs are not permitted"
_OCTOBER = "2026-10-21"
_MODELS = "platform.claude.com about-claude/models/overview"


def _unknown_model(body: Json, _: Random) -> Iterator[Json]:
    if "model" in body:
        yield changed(body, model="no-such-model")


@rule("model-exists", "recorded: anthropic/braintrust-sdk-python-0001", _unknown_model)
def model_exists(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The model must exist."""
    if not reading.model.exists:
        name = reading.model.name
        yield Violation(no_publisher_model(name) if reading.vertex else f"model: {name}", "/model", 404)


def _threaded(body: Json, _: Random) -> Iterator[Json]:
    if "max_tokens" in body:
        yield changed(body, thread={"type": "create"})
        yield changed(body, thread={"type": "continue", "previous_message_id": "msg_01"})


@rule(
    "thread-unsupported",
    "clients/README.md, State held by the server",
    _threaded,
)
def thread(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Threads are not kept here, and are refused as the vendor refuses what it cannot thread."""
    if reading.generating is not None and reading.generating.thread is not None:
        yield Violation("thread: Message threads are not supported for this request.", "/thread")


def _in_october(body: Json) -> Iterator[Json]:
    """Vertex tells its version in the body; elsewhere a header does, which no body can break."""
    if "anthropic_version" in body and "max_tokens" in body:
        yield changed(body, anthropic_version=_OCTOBER, temperature=None, top_p=None, top_k=None)


def _sampled_in_october(body: Json, _: Random) -> Iterator[Json]:
    for moved in _in_october(body):
        yield changed(moved, temperature=1.0)
        yield changed(moved, top_k=5)


@rule("version-sampling", "wire/anthropic_messages.md section 0", _sampled_in_october)
def october_sampling(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Version 2026-10-21 has no sampling members."""
    if reading.version == _OCTOBER:
        for member in _SAMPLING:
            if getattr(reading.request, member, None) is not None:
                yield Violation(f"{member}: {_EXTRA}", f"/{member}")


def _blocks_in_october(body: Json, _: Random) -> Iterator[Json]:
    location = {"type": "char_location", "cited_text": "a", "document_index": 0, "document_title": None}
    cited = {"type": "text", "text": "a", "citations": [{**location, "start_char_index": 0, "end_char_index": 1}]}
    source = {"type": "text", "media_type": "text/plain", "data": "words"}
    for moved in _in_october(body):
        if any(blocks_of(message) for message in moved["messages"]):
            continue
        question = {"role": "user", "content": "Why?"}
        document = {"role": "assistant", "content": [{"type": "document", "source": source}]}
        yield changed(moved, messages=[question, document, question])
        yield changed(moved, messages=[{"role": "user", "content": [cited]}])
        found = {"type": "search_result", "source": "https://example.com", "title": "A", "content": [cited]}
        yield changed(moved, messages=[{"role": "user", "content": [found]}])


@rule("version-blocks", "wire/anthropic_messages.md section 0", _blocks_in_october)
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


def _too_many_tokens(body: Json, _: Random) -> Iterator[Json]:
    if "max_tokens" in body:
        yield changed(body, max_tokens=10_000_000)


@rule("max-tokens", _MODELS, _too_many_tokens)
def max_tokens(reading: Reading, _: Situation) -> Iterator[Violation]:
    """max_tokens is at most what the model can write."""
    asked = reading.generating
    most = reading.model.most_output
    if any(beta.startswith("output-128k") for beta in reading.betas or ()):
        most = 128_000
    if asked is not None and asked.max_tokens > most:
        words = f"which is the maximum allowed number of output tokens for {reading.model.name}"
        yield Violation(f"max_tokens: {asked.max_tokens} > {most}, {words}", "/max_tokens")


def _streamed_prewarm(body: Json, _: Random) -> Iterator[Json]:
    if "max_tokens" in body:
        yield changed(body, max_tokens=0, stream=True)


@rule("prewarm", "platform.claude.com prompt-caching, Limitations", _streamed_prewarm)
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


def _blank_stop(body: Json, _: Random) -> Iterator[Json]:
    if "max_tokens" in body:
        yield changed(body, stop_sequences=["END", "\n"])


@rule("stop-sequences", "no source: not documented", _blank_stop)
def stops(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A stop sequence is more than white space."""
    for number, stop in enumerate((reading.generating and reading.generating.stop_sequences) or ()):
        if not stop.strip():
            words = "stop_sequences: each stop sequence must contain non-whitespace"
            yield Violation(words, f"/stop_sequences/{number}")


RULES = (model_exists, thread, october_sampling, october_blocks, max_tokens, prewarm, stops)
