"""Render a reply, whole or streamed: the model's answer as blocks, with its usage and its stop reason.

The vendor caches only what the client marks: everything up to the last breakpoint is written to the cache, or read
from it if it was cached before. Short prefixes are not cached.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.api import AcceptedRequest, Chunking, ReplyMeta
from dragoman.simulator.apis.conversation import Answer, AnswerSource, Call
from dragoman.simulator.apis.messages.errors import format_pointer
from dragoman.simulator.apis.messages.read import encode_arguments, find_visible_tools
from dragoman.simulator.apis.messages.request import (
    Block,
    MessagesRequest,
    find_cache_breakpoints,
    read_tool_type,
    read_ttl,
)
from dragoman.simulator.apis.messages.signatures import (
    REDACTED,
    digest_prefixes,
    iterate_other_conversation_thoughts,
    iterate_other_model_thoughts,
    sign,
)
from dragoman.simulator.apis.rule import Json
from dragoman.simulator.apis.usage import count_text_tokens
from dragoman.wire.json import decode, encode

_ENDS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "calls": "tool_use",
    "filtered": "refusal",
    "malformed_call": "end_turn",
}
_FILTERED = "This request was declined by a filter."
_GENERATED_ID = re.compile(r"[0-9a-f]{24}|")
_VALID_ID = re.compile(r"[a-zA-Z0-9_-]+")
_MIN_CACHED_TOKENS = 1024
_USAGE_DETAILS = {"service_tier": "standard", "inference_geo": "global"}
_PING = b'event: ping\ndata: {"type": "ping"}\n\n'
REDACTED_THINKING_TRIGGER = "ANTHROPIC_MAGIC_STRING_TRIGGER_REDACTED_THINKING"
"""The vendor's trigger text for testing redacted thinking."""


def render_reply(answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> bytes:
    """Return a reply that is not streamed."""
    request: MessagesRequest = accepted.body
    content = list(_iterate_blocks(answer, request, meta))
    usage = {
        **_render_input_usage(answer, request),
        **_render_output_tokens(answer, request),
        **_USAGE_DETAILS,
        **_render_output_details(answer),
    }
    return encode(
        {**_render_opening(request, meta), "content": content, **_render_ending(answer, request), "usage": usage}
    )


def render_stream(answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> Iterator[bytes]:
    """Yield the frames of a reply: its blocks one after the other, each with start, deltas and stop."""
    request: MessagesRequest = accepted.body
    counted = _render_input_usage(answer, request)
    started: Json = {
        **_render_opening(request, meta),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {**counted, "output_tokens": 0 if _is_prewarm(request) else 1, **_USAGE_DETAILS},
    }
    yield _render_event("message_start", message=started)
    for index, block in enumerate(_iterate_blocks(answer, request, meta)):
        yield _render_event("content_block_start", index=index, content_block=_render_block_start(block))
        if index == 0:
            yield _PING
        for delta in _iterate_deltas(block, meta.chunking):
            yield _render_event("content_block_delta", index=index, delta=delta)
        yield _render_event("content_block_stop", index=index)
    del counted["cache_creation"]
    used = {**counted, **_render_output_tokens(answer, request), **_render_output_details(answer)}
    yield _render_event("message_delta", delta=_render_ending(answer, request), usage=used)
    yield _render_event("message_stop")


def drop_content(data: bytes) -> bytes:
    """Remove the blocks from a reply; of a stream, drop the frames about blocks."""
    reply: Json = decode(data)
    if str(reply["type"]).startswith("content_block"):
        return b""
    return encode({**reply, "content": []}) if reply["type"] == "message" else data


def _render_opening(request: MessagesRequest, meta: ReplyMeta) -> Json:
    """Return the first fields of a reply, and the thinking blocks that were dropped from the request."""
    dropped = [_render_dropped_thinking(block, "prefix") for block in iterate_other_conversation_thoughts(request)]
    if request.has_beta("thinking-binding-controls-"):
        dropped += [_render_dropped_thinking(block, "model") for block in iterate_other_model_thoughts(request)]
    return {
        "model": request.model.name,
        "id": _new_id("msg", request, meta, ""),
        "type": "message",
        "role": "assistant",
        **({"input_transformations": dropped} if dropped else {}),
    }


def _render_dropped_thinking(block: Block, binding: str) -> Json:
    return {"type": "thinking_dropped", "path": format_pointer(block.where), "reason": f"{binding}_binding_mismatch"}


def _render_ending(answer: Answer, request: MessagesRequest) -> Json:
    """Return the stop reason of a reply."""
    reason = "stop_sequence" if answer.stopped_by and answer.end == "stop" else _ENDS[answer.end]
    if answer.refusal:
        reason = "refusal"
    if _is_prewarm(request):
        reason = "max_tokens"
    refused = {"type": "refusal", "category": None, "explanation": answer.refusal or _FILTERED}
    return {
        "stop_reason": reason,
        "stop_sequence": answer.stopped_by or None if reason == "stop_sequence" else None,
        "stop_details": refused if reason == "refusal" else None,
    }


def _new_id(prefix: str, request: MessagesRequest, meta: ReplyMeta, what: str) -> str:
    """Return an id in the vendor's style, different for each part of each reply."""
    digest = hashlib.sha256(f"{meta.id} {what}".encode()).hexdigest()[:22]
    return f"{prefix}_{'vrtx_' if request.vertex else ''}01{digest}"


def _iterate_blocks(answer: Answer, request: MessagesRequest, meta: ReplyMeta) -> Iterator[Json]:
    """Yield the blocks of a reply: thinking, a search, text, calls."""
    if _is_prewarm(request):
        return
    if answer.thought and request.thinks:
        yield _render_thinking(answer.thought, request, meta)
    if _has_searched(answer):
        yield from _render_search(answer, request, meta)
    if answer.text:
        yield from _split_citations(answer.text, answer.sources, meta)
    if answer.refusal:
        yield {"type": "text", "text": answer.refusal}
    visible = {tool.get("name") for tool in find_visible_tools(request)} if answer.calls else set[Any]()
    for number, call in enumerate(answer.calls):
        if call.name not in visible and call.name in request.tool_names:
            yield from _render_tool_search(call, request, meta)
        yield _render_call(call, number, request, meta)


def _render_thinking(text: str, request: MessagesRequest, meta: ReplyMeta) -> Json:
    bound = (digest_prefixes(request)[-1], request.model) if request.model.is_newest else None
    if any(REDACTED_THINKING_TRIGGER in block.members["text"] for block in request.blocks("text")):
        return {"type": "redacted_thinking", "data": sign(REDACTED, bound, meta.signer, meta.id)}
    display = request.at("/thinking/display")
    is_shown = request.model.shows_thinking if display is None else display != "omitted"
    shown = text if is_shown else ""
    return {"type": "thinking", "thinking": shown, "signature": sign(shown, bound, meta.signer, meta.id)}


def _render_search(answer: Answer, request: MessagesRequest, meta: ReplyMeta) -> Iterator[Json]:
    call = _new_id("srvtoolu", request, meta, "search")
    found = [
        {
            "type": "web_search_result",
            "title": source.title,
            "url": source.url,
            "encrypted_content": meta.signer.issue(source.url, f"{meta.id} {number}"),
            "page_age": None,
        }
        for number, source in enumerate(answer.sources)
    ]
    yield {"type": "server_tool_use", "id": call, "name": "web_search", "input": {"query": answer.query}}
    yield {"type": "web_search_tool_result", "tool_use_id": call, "content": found}


def _render_tool_search(call: Call, request: MessagesRequest, meta: ReplyMeta) -> Iterator[Json]:
    """Yield the search that finds a deferred tool, if the client has declared one."""
    names = (tool["name"] for tool in request.list("tools") if read_tool_type(tool).startswith("tool_search_tool_"))
    if (name := next(names, None)) is None:
        return
    search = _new_id("srvtoolu", request, meta, f"tool search {call.id}")
    given = {"pattern" if name.endswith("regex") else "query": call.name}
    found = [{"type": "tool_reference", "tool_name": call.name}]
    content = {"type": "tool_search_tool_search_result", "tool_references": found}
    yield {"type": "server_tool_use", "id": search, "name": name, "input": given, "caller": {"type": "direct"}}
    yield {"type": "tool_search_tool_result", "tool_use_id": search, "content": content}


def _split_citations(text: str, sources: tuple[AnswerSource, ...], meta: ReplyMeta) -> Iterator[Json]:
    """Split a text at its quotations: each quotation is a block of its own with its citation.

    White space alone is no block, because a client could not send it back: it is joined to the quotation after it.
    """
    rest = text
    for number, source in enumerate(sources):
        before, quoted, after = rest.partition(source.quote) if source.quote else (rest, "", "")
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
            "encrypted_index": meta.signer.issue(source.quote, f"{meta.id} index {number}"),
        }
        yield {"type": "text", "text": blank + source.quote, "citations": [location]}
        rest = after
    if rest.strip():
        yield {"type": "text", "text": rest}


def _render_call(call: Call, number: int, request: MessagesRequest, meta: ReplyMeta) -> Json:
    neutral = _GENERATED_ID.fullmatch(call.id) or not _VALID_ID.fullmatch(call.id)
    own = _new_id("toolu", request, meta, f"{number} {call.id}") if neutral else call.id
    arguments: Any = (
        call.arguments if isinstance(call.arguments, dict) else json.loads(encode_arguments(call.arguments))
    )
    block = {"type": "tool_use", "id": own, "name": call.name, "input": arguments}
    return block if request.vertex else {**block, "caller": {"type": "direct"}}


def _is_prewarm(request: MessagesRequest) -> bool:
    """Return whether the request only fills the cache."""
    return request.get("max_tokens") == 0


def _has_searched(answer: Answer) -> bool:
    return bool(answer.sources or answer.query)


def _render_output_tokens(answer: Answer, request: MessagesRequest) -> Json:
    return {"output_tokens": 0 if _is_prewarm(request) else answer.usage.output}


def _render_output_details(answer: Answer) -> Json:
    """Return how many tokens the thinking took, and how often the web was searched."""
    details: Json = {"output_tokens_details": {"thinking_tokens": answer.usage.thought}}
    if _has_searched(answer):
        details["server_tool_use"] = {"web_search_requests": 1, "web_fetch_requests": 0}
    return details


def _render_input_usage(answer: Answer, request: MessagesRequest) -> Json:
    """Return the input tokens, split into uncached ones, cache writes and cache reads."""
    ttl, behind = _find_last_breakpoint(request) or ("5m", answer.usage.input)
    marked = answer.usage.input - behind
    marked = marked if marked >= _MIN_CACHED_TOKENS else 0
    cached = min(answer.usage.cached, marked)
    written = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}
    written[f"ephemeral_{ttl}_input_tokens"] = marked - cached
    return {
        "input_tokens": answer.usage.input - marked,
        "cache_creation_input_tokens": marked - cached,
        "cache_read_input_tokens": cached,
        "cache_creation": written,
    }


def _find_last_breakpoint(request: MessagesRequest) -> tuple[str, int] | None:
    """Return the lifetime of the last breakpoint, and about how many tokens follow it; None without one."""
    automatic = request.get("cache_control")
    if automatic is not None:
        return read_ttl(automatic), 0
    marks = find_cache_breakpoints(request)
    if not marks:
        return None
    where, ttl = marks[-1]
    behind = 0
    for block in reversed(request.all_blocks):
        if where.startswith(block.where):
            break
        behind += count_text_tokens(encode(block.members).decode())
    return ttl, behind


def _render_event(event: str, **members: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event.encode(), encode({"type": event, **members}))


def _render_block_start(block: Json) -> Json:
    """Return a block as it starts, without the content that deltas add."""
    match block["type"]:
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "text":
            return {**({"citations": []} if "citations" in block else {}), "type": "text", "text": ""}
        case "tool_use" | "server_tool_use":
            return {**block, "input": {}}
        case _:
            return block


def _iterate_deltas(block: Json, chunking: Chunking) -> Iterator[Json]:
    match block["type"]:
        case "thinking":
            for piece in chunking.split_text(block["thinking"]):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            for citation in block.get("citations", ()):
                yield {"type": "citations_delta", "citation": citation}
            for piece in chunking.split_text(block["text"]):
                yield {"type": "text_delta", "text": piece}
        case "tool_use" | "server_tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in chunking.split_text(encode_arguments(block["input"])) if block["input"] else ():
                yield {"type": "input_json_delta", "partial_json": piece}
        case _:
            return
