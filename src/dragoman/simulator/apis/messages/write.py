"""A reply, whole or streamed: what the model answers, as blocks, with its usage and its end.

The vendor caches only what the caller marks: everything up to the last breakpoint is written to the cache, or comes
out of it when it was there before. What is too short is not cached.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from dragoman.simulator.api import Accepted, Occasion, Pace
from dragoman.simulator.apis.messages.errors import dotted
from dragoman.simulator.apis.messages.read import arguments_text
from dragoman.simulator.apis.messages.request import Block, MessagesRequest, breakpoints, lifetime
from dragoman.simulator.apis.messages.signing import REDACTED, bound_elsewhere, prefixes, sign, thought_elsewhere
from dragoman.simulator.model.usage import text_tokens
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Answer, Call, Source
from dragoman.wire.json import decode, encode

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
_LEAST_CACHED = 1024
_ABOUT = {"service_tier": "standard", "inference_geo": "global"}
_PING = b'event: ping\ndata: {"type": "ping"}\n\n'
TRIGGER = "ANTHROPIC_MAGIC_STRING_TRIGGER_REDACTED_THINKING"
"""The words with which the vendor lets people try sealed thoughts."""


def whole(answer: Answer, accepted: Accepted, occasion: Occasion) -> bytes:
    """Write a reply that is not streamed."""
    request: MessagesRequest = accepted.body
    content = list(_blocks(answer, request, occasion))
    usage = {**_input_usage(answer, request), **_output_tokens(answer, request), **_ABOUT, **_output_details(answer)}
    return encode({**_opening(request, occasion), "content": content, **_ending(answer, request), "usage": usage})


def stream(answer: Answer, accepted: Accepted, occasion: Occasion) -> Iterator[bytes]:
    """Write the frames of a reply: the same blocks one after the other, each started, grown and stopped."""
    request: MessagesRequest = accepted.body
    counted = _input_usage(answer, request)
    started: Json = {
        **_opening(request, occasion),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {**counted, "output_tokens": 0 if _is_silent(request) else 1, **_ABOUT},
    }
    yield _frame("message_start", message=started)
    for index, block in enumerate(_blocks(answer, request, occasion)):
        yield _frame("content_block_start", index=index, content_block=_beginning(block))
        if index == 0:
            yield _PING
        for delta in _deltas(block, occasion.pace):
            yield _frame("content_block_delta", index=index, delta=delta)
        yield _frame("content_block_stop", index=index)
    del counted["cache_creation"]
    used = {**counted, **_output_tokens(answer, request), **_output_details(answer)}
    yield _frame("message_delta", delta=_ending(answer, request), usage=used)
    yield _frame("message_stop")


def silenced(data: bytes) -> bytes:
    """Take the blocks out of a reply, or a frame out of a stream when it is about one."""
    reply: Json = decode(data)
    if str(reply["type"]).startswith("content_block"):
        return b""
    return encode({**reply, "content": []}) if reply["type"] == "message" else data


def _opening(request: MessagesRequest, occasion: Occasion) -> Json:
    """Return what a reply says of itself, and of thoughts that were left out of the request."""
    dropped = [_dropped(block, "prefix") for block in bound_elsewhere(request)]
    if request.has_beta("thinking-binding-controls-"):
        dropped += [_dropped(block, "model") for block in thought_elsewhere(request)]
    return {
        "model": request.model.name,
        "id": _new_id("msg", request, occasion, ""),
        "type": "message",
        "role": "assistant",
        **({"input_transformations": dropped} if dropped else {}),
    }


def _dropped(block: Block, binding: str) -> Json:
    return {"type": "thinking_dropped", "path": dotted(block.where), "reason": f"{binding}_binding_mismatch"}


def _ending(answer: Answer, request: MessagesRequest) -> Json:
    """Return why a reply ends."""
    reason = "stop_sequence" if answer.stopped_by and answer.end == "stop" else _ENDS[answer.end]
    if answer.refusal:
        reason = "refusal"
    if _is_silent(request):
        reason = "max_tokens"
    refused = {"type": "refusal", "category": None, "explanation": answer.refusal or _FILTERED}
    return {
        "stop_reason": reason,
        "stop_sequence": answer.stopped_by or None if reason == "stop_sequence" else None,
        "stop_details": refused if reason == "refusal" else None,
    }


def _new_id(prefix: str, request: MessagesRequest, occasion: Occasion, what: str) -> str:
    """Make an id in the vendor's style, another one for each thing of each reply."""
    digest = hashlib.sha256(f"{occasion.id} {what}".encode()).hexdigest()[:22]
    return f"{prefix}_{'vrtx_' if request.vertex else ''}01{digest}"


def _blocks(answer: Answer, request: MessagesRequest, occasion: Occasion) -> Iterator[Json]:
    """Return the blocks of a reply: thoughts, a search, words, calls."""
    if _is_silent(request):
        return
    if answer.thought and request.thinks:
        yield _thought(answer.thought, request, occasion)
    if _has_searched(answer):
        yield from _search(answer, request, occasion)
    if answer.text:
        yield from _cited(answer.text, answer.sources, occasion)
    if answer.refusal:
        yield {"type": "text", "text": answer.refusal}
    for number, call in enumerate(answer.calls):
        yield _call(call, number, request, occasion)


def _thought(words: str, request: MessagesRequest, occasion: Occasion) -> Json:
    bound = (prefixes(request)[-1], request.model) if request.model.newest else None
    if any(TRIGGER in block.members["text"] for block in request.blocks("text")):
        return {"type": "redacted_thinking", "data": sign(REDACTED, bound, occasion.signer, occasion.id)}
    display = request.at("/thinking/display")
    is_shown = request.model.shows_thinking if display is None else display != "omitted"
    shown = words if is_shown else ""
    return {"type": "thinking", "thinking": shown, "signature": sign(shown, bound, occasion.signer, occasion.id)}


def _search(answer: Answer, request: MessagesRequest, occasion: Occasion) -> Iterator[Json]:
    call = _new_id("srvtoolu", request, occasion, "search")
    found = [
        {
            "type": "web_search_result",
            "title": source.title,
            "url": source.url,
            "encrypted_content": occasion.signer.issue(source.url, f"{occasion.id} {number}"),
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
            "encrypted_index": occasion.signer.issue(source.quote, f"{occasion.id} index {number}"),
        }
        yield {"type": "text", "text": blank + source.quote, "citations": [location]}
        rest = after
    if rest.strip():
        yield {"type": "text", "text": rest}


def _call(call: Call, number: int, request: MessagesRequest, occasion: Occasion) -> Json:
    neutral = _NEUTRAL.fullmatch(call.id) or not _LEGAL.fullmatch(call.id)
    own = _new_id("toolu", request, occasion, f"{number} {call.id}") if neutral else call.id
    arguments: Any = call.arguments if isinstance(call.arguments, dict) else json.loads(arguments_text(call.arguments))
    block = {"type": "tool_use", "id": own, "name": call.name, "input": arguments}
    return block if request.vertex else {**block, "caller": {"type": "direct"}}


def _is_silent(request: MessagesRequest) -> bool:
    """Tell whether the request only fills the cache."""
    return request.get("max_tokens") == 0


def _has_searched(answer: Answer) -> bool:
    return bool(answer.sources or answer.query)


def _output_tokens(answer: Answer, request: MessagesRequest) -> Json:
    return {"output_tokens": 0 if _is_silent(request) else answer.usage.output}


def _output_details(answer: Answer) -> Json:
    """Return how many tokens went into thoughts, and how often the web was searched."""
    details: Json = {"output_tokens_details": {"thinking_tokens": answer.usage.thought}}
    if _has_searched(answer):
        details["server_tool_use"] = {"web_search_requests": 1, "web_fetch_requests": 0}
    return details


def _input_usage(answer: Answer, request: MessagesRequest) -> Json:
    """Return what was read, and what of it the cache has to do with."""
    ttl, behind = _last_breakpoint(request) or ("5m", answer.usage.input)
    marked = answer.usage.input - behind
    marked = marked if marked >= _LEAST_CACHED else 0
    cached = min(answer.usage.cached, marked)
    written = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}
    written[f"ephemeral_{ttl}_input_tokens"] = marked - cached
    return {
        "input_tokens": answer.usage.input - marked,
        "cache_creation_input_tokens": marked - cached,
        "cache_read_input_tokens": cached,
        "cache_creation": written,
    }


def _last_breakpoint(request: MessagesRequest) -> tuple[str, int] | None:
    """Return how long the last breakpoint lives, and about how many tokens stand behind it; None without one."""
    automatic = request.get("cache_control")
    if automatic is not None:
        return lifetime(automatic), 0
    marks = breakpoints(request)
    if not marks:
        return None
    where, ttl = marks[-1]
    behind = 0
    for block in reversed(request.all_blocks):
        if where.startswith(block.where):
            break
        behind += text_tokens(encode(block.members).decode())
    return ttl, behind


def _frame(event: str, **members: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event.encode(), encode({"type": event, **members}))


def _beginning(block: Json) -> Json:
    """Return a block as it starts; what does not grow is there at once."""
    match block["type"]:
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "text":
            return {**({"citations": []} if "citations" in block else {}), "type": "text", "text": ""}
        case "tool_use" | "server_tool_use":
            return {**block, "input": {}}
        case _:
            return block


def _deltas(block: Json, pace: Pace) -> Iterator[Json]:
    match block["type"]:
        case "thinking":
            for piece in pace.pieces(block["thinking"]):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            for citation in block.get("citations", ()):
                yield {"type": "citations_delta", "citation": citation}
            for piece in pace.pieces(block["text"]):
                yield {"type": "text_delta", "text": piece}
        case "tool_use" | "server_tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in pace.pieces(arguments_text(block["input"])) if block["input"] else ():
                yield {"type": "input_json_delta", "partial_json": piece}
        case _:
            return
