"""A whole reply: what the model answers, as blocks, with its usage and its end."""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec.json import encode

from dragoman.simulator.api import Accepted, Occasion
from dragoman.simulator.apis.messages.blocks import Text
from dragoman.simulator.apis.messages.read import arguments_text
from dragoman.simulator.apis.messages.reading import Placed, Reading
from dragoman.simulator.apis.messages.signing import (
    BINDING,
    REDACTED,
    bound_elsewhere,
    prefixes,
    seal,
    sign,
    thought_elsewhere,
)
from dragoman.simulator.apis.messages.usage import searched, silent, usage
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Answer, Call, Source

_ENDS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "calls": "tool_use",
    "filtered": "refusal",
    "malformed_call": "end_turn",
}
_FILTERED = "This request was declined by a filter."
_NEUTRAL = re.compile(r"[0-9a-f]{24}|")
_LEGAL = re.compile(r"[a-zA-Z0-9_-]+")
TRIGGER = "ANTHROPIC_MAGIC_STRING_TRIGGER_REDACTED_THINKING"
"""The words with which the vendor lets people try sealed thoughts."""


def whole(answer: Answer, accepted: Accepted, occasion: Occasion) -> bytes:
    """Write a reply that is not streamed."""
    reading = reading_of(accepted)
    ends = ending(answer, reading)
    message = {**opening(reading, occasion), "content": list(blocks(answer, reading, occasion)), **ends}
    return encode({**message, "usage": usage(answer, reading)})


def reading_of(accepted: Accepted) -> Reading:
    """Return the request as the rules looked at it."""
    return accepted.body


def opening(reading: Reading, occasion: Occasion) -> Json:
    """Return what a reply says of itself, and of thoughts that were left out of the request."""
    dropped = [_dropped(placed, "prefix") for placed in bound_elsewhere(reading, occasion.signer)]
    if any(beta.startswith(BINDING) for beta in reading.betas or ()):
        dropped += [_dropped(placed, "model") for placed in thought_elsewhere(reading, occasion.signer)]
    return {
        "model": reading.model.name,
        "id": mint("msg", reading, occasion, ""),
        "type": "message",
        "role": "assistant",
        **({"input_transformations": dropped} if dropped else {}),
    }


def _dropped(placed: Placed, binding: str) -> Json:
    path = placed.where.strip("/").replace("/", ".")
    return {"type": "thinking_dropped", "path": path, "reason": f"{binding}_binding_mismatch"}


def ending(answer: Answer, reading: Reading) -> Json:
    """Return why a reply ends."""
    reason = "stop_sequence" if answer.stopped_by and answer.end == "stop" else _ENDS[answer.end]
    if answer.refusal:
        reason = "refusal"
    if silent(reading):
        reason = "max_tokens"
    refused = {"type": "refusal", "category": None, "explanation": answer.refusal or _FILTERED}
    return {
        "stop_reason": reason,
        "stop_sequence": answer.stopped_by or None if reason == "stop_sequence" else None,
        "stop_details": refused if reason == "refusal" else None,
    }


def mint(prefix: str, reading: Reading, occasion: Occasion, what: str) -> str:
    """Make an id in the vendor's style, another one for each thing of each reply."""
    digest = hashlib.sha256(f"{occasion.id} {what}".encode()).hexdigest()[:22]
    return f"{prefix}_{'vrtx_' if reading.vertex else ''}01{digest}"


def blocks(answer: Answer, reading: Reading, occasion: Occasion) -> Iterator[Json]:
    """Return the blocks of a reply: thoughts, a search, words, calls."""
    if silent(reading):
        return
    if answer.thought and reading.thinks:
        yield _thought(answer.thought, reading, occasion)
    if searched(answer):
        yield from _search(answer, reading, occasion)
    if answer.text:
        yield from _cited(answer.text, answer.sources, occasion)
    if answer.refusal:
        yield {"type": "text", "text": answer.refusal}
    for number, call in enumerate(answer.calls):
        yield _call(call, number, reading, occasion)


def _thought(words: str, reading: Reading, occasion: Occasion) -> Json:
    bound = (prefixes(reading)[-1], reading.model) if reading.model.newest else None
    if _is_sealed(reading):
        return {"type": "redacted_thinking", "data": sign(REDACTED, bound, occasion.signer, occasion.id)}
    shown = words if reading.shows_thinking else ""
    return {"type": "thinking", "thinking": shown, "signature": sign(shown, bound, occasion.signer, occasion.id)}


def _is_sealed(reading: Reading) -> bool:
    return any(isinstance(placed.block, Text) and TRIGGER in placed.block.text for _, placed in reading.blocks())


def _search(answer: Answer, reading: Reading, occasion: Occasion) -> Iterator[Json]:
    call = mint("srvtoolu", reading, occasion, "search")
    found = [
        {
            "type": "web_search_result",
            "title": source.title,
            "url": source.url,
            "encrypted_content": seal(source.url, occasion.signer, f"{occasion.id} {number}"),
            "page_age": None,
        }
        for number, source in enumerate(answer.sources)
    ]
    yield {"type": "server_tool_use", "id": call, "name": "web_search", "input": {"query": answer.query}}
    yield {"type": "web_search_tool_result", "tool_use_id": call, "content": found}


def _cited(text: str, sources: tuple[Source, ...], occasion: Occasion) -> Iterator[Json]:
    """Cut a text where it quotes: each quotation is a block of its own with its citation.

    White space alone is no block, for nobody could send that back: it goes with the quotation behind it.
    """
    rest = text
    for number, source in enumerate(sources):
        before, quoted, after = rest.partition(source.quote)
        if not quoted:
            continue
        if before.strip():
            yield {"type": "text", "text": before}
        blank = "" if before.strip() else before
        location = {
            "type": "web_search_result_location",
            "cited_text": source.quote,
            "url": source.url,
            "title": source.title,
            "encrypted_index": seal(source.quote, occasion.signer, f"{occasion.id} index {number}"),
        }
        yield {"type": "text", "text": blank + source.quote, "citations": [location]}
        rest = after
    if rest.strip():
        yield {"type": "text", "text": rest}


def _call(call: Call, number: int, reading: Reading, occasion: Occasion) -> Json:
    neutral = _NEUTRAL.fullmatch(call.id) or not _LEGAL.fullmatch(call.id)
    own = mint("toolu", reading, occasion, f"{number} {call.id}") if neutral else call.id
    arguments: Any = call.arguments if isinstance(call.arguments, dict) else json.loads(arguments_text(call.arguments))
    block = {"type": "tool_use", "id": own, "name": call.name, "input": arguments}
    return block if reading.vertex else {**block, "caller": {"type": "direct"}}
