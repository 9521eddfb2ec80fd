"""Render an answer as one chat completion, or as a stream of chunks in OpenAI's order."""

import hashlib
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, cast

from msgspec import Struct, structs

from dragoman.simulator.apis.api import AcceptedRequest, ApiRejection, ReplyMeta
from dragoman.simulator.apis.chat.body import ChatCompletionsRequest
from dragoman.simulator.apis.conversation import Answer, Call
from dragoman.simulator.apis.openai.errors import build_error
from dragoman.simulator.apis.openai.replies import build_logprobs, build_moderation_result
from dragoman.simulator.apis.rule import Json
from dragoman.wire.json import decode, encode

_TIERS = {"auto": "default", "fast": "priority"}
_MALFORMED_ARGUMENTS = '{"'
_DONE = b"data: [DONE]\n\n"
_PADDING_BLOCK = 16
"""Chunks are padded to a multiple of this size, so that it reveals nothing about the tokens in them."""


def render_reply(answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> bytes:
    """Return the reply to a request without `stream`."""
    body = cast("ChatCompletionsRequest", accepted.body)
    answer = _add_malformed_call(answer, body)
    choices = [_render_choice(answer, body, meta, index) for index in range(body.get("n") or 1)]
    return encode(
        {
            "id": f"chatcmpl-{meta.id}",
            "object": "chat.completion",
            "created": meta.created,
            "model": body.model,
            "choices": choices,
            "usage": _render_usage(answer, body),
            "service_tier": _find_service_tier(body),
            "system_fingerprint": _build_fingerprint(body),
            **_render_moderation(body),
        }
    )


def render_stream_error(rejection: ApiRejection) -> bytes:
    """Return the frame that ends a stream with an error; nothing follows it."""
    return b"data: " + encode({"error": build_error(rejection)}) + b"\n\n"


def drop_choices(data: bytes) -> bytes:
    """Remove the choices from a reply or a chunk."""
    return encode({**decode(data), "choices": []})


def _render_choice(answer: Answer, body: ChatCompletionsRequest, meta: ReplyMeta, index: int) -> Json:
    message: Json = {"role": "assistant", "content": _render_content(answer)}
    if answer.calls and body.get("functions"):
        message["function_call"] = _render_function_call(answer.calls[0])
    elif answer.calls:
        message["tool_calls"] = [
            _render_tool_call(call, body, _build_call_id(call, meta, index, place))
            for place, call in enumerate(answer.calls)
        ]
    message |= {"refusal": answer.refusal or None, "annotations": _render_annotations(answer)}
    logprobs = _render_logprobs(answer.text, body) if body.get("logprobs") and answer.text else None
    return {
        "index": index,
        "message": message,
        "logprobs": logprobs,
        "finish_reason": _find_finish_reason(answer, body),
    }


def _add_malformed_call(answer: Answer, body: ChatCompletionsRequest) -> Answer:
    """Add the malformed call: OpenAI has no finish reason for a call that cannot be parsed, but sends it as it is."""
    functions = [tool["function"]["name"] for tool in body.list("tools") if tool["type"] == "function"]
    if answer.end != "malformed_call" or answer.calls or not functions:
        return answer
    return structs.replace(answer, calls=(Call(id="", name=functions[0], arguments=_MALFORMED_ARGUMENTS),))


def _render_content(answer: Answer) -> str | None:
    """Return the text of a message: null if there are calls or a refusal instead, never null without them."""
    return answer.text or (None if answer.calls or answer.refusal else "")


def _find_finish_reason(answer: Answer, body: ChatCompletionsRequest) -> str:
    """Return the finish reason. Models before GPT-5 return `stop` if `tool_choice` names the function."""
    if answer.end in {"length", "filtered"}:
        return "length" if answer.end == "length" else "content_filter"
    if not answer.calls:
        return "stop"
    choice = body.get("tool_choice") or body.get("function_call")
    named = isinstance(choice, dict) and "allowed_tools" not in choice
    if named and body.family.generation < (5, 0):
        return "stop"
    return "function_call" if body.get("functions") else "tool_calls"


def _is_custom(call: Call, body: ChatCompletionsRequest) -> bool:
    return any(tool["type"] == "custom" and tool["custom"]["name"] == call.name for tool in body.list("tools"))


def _build_call_id(call: Call, meta: ReplyMeta, choice: int, position: int) -> str:
    """Return a call's own id if it is in OpenAI's style, else a generated one."""
    if call.id.startswith("call_") and not choice:
        return call.id
    return "call_" + hashlib.sha256(f"{meta.id} {choice} {position} {call.id}".encode()).hexdigest()[:24]


def _encode_arguments(call: Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else encode(call.arguments).decode()


def _render_tool_call(call: Call, body: ChatCompletionsRequest, identity: str) -> Json:
    if _is_custom(call, body):
        return {"id": identity, "type": "custom", "custom": {"name": call.name, "input": _encode_arguments(call)}}
    return {"id": identity, "type": "function", "function": _render_function_call(call)}


def _render_function_call(call: Call) -> Json:
    return {"name": call.name, "arguments": _encode_arguments(call)}


def _render_annotations(answer: Answer) -> list[Json]:
    """Return the citations of web pages, each with the position of its quote in the text."""
    written: list[Json] = []
    for source in filter(lambda source: source.quote, answer.sources):
        start = answer.text.find(source.quote)
        end = start + len(source.quote) if start >= 0 else len(answer.text)
        place = {"start_index": max(start, 0), "end_index": end}
        citation = {**place, "title": source.title, "url": source.url}
        written.append({"type": "url_citation", "url_citation": citation})
    return written


def _render_usage(answer: Answer, body: ChatCompletionsRequest) -> Json:
    """Return the token usage of all choices; reasoning tokens count as completion tokens."""
    count = body.get("n") or 1
    counted = answer.usage
    prompt: dict[str, Any] = {"cached_tokens": counted.cached, "audio_tokens": 0}
    if body.family.generation >= (5, 6):
        prompt["cache_write_tokens"] = 0
    return {
        "prompt_tokens": counted.input,
        "completion_tokens": counted.output * count,
        "total_tokens": counted.input + counted.output * count,
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {
            "reasoning_tokens": counted.thought * count,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _render_moderation(body: ChatCompletionsRequest) -> Json:
    """Return the `moderation` field, if the request has one."""
    if body.get("moderation") is None:
        return {}
    model = body.get("moderation")["model"]
    results: Json = {"type": "moderation_results", "model": model, "results": [build_moderation_result(model)]}
    return {"moderation": {"input": results, "output": results}}


def _find_service_tier(body: ChatCompletionsRequest) -> str:
    tier = body.get("service_tier") or "auto"
    return _TIERS.get(tier, tier)


def _build_fingerprint(body: ChatCompletionsRequest) -> str | None:
    """Return the backend's fingerprint, which models since GPT-5 do not have."""
    if body.family.generation >= (4, 2):
        return None
    return "fp_" + hashlib.sha256(body.model.encode()).hexdigest()[:10]


def _render_logprobs(text: str, body: ChatCompletionsRequest) -> Json:
    return {"content": build_logprobs(text, body.get("top_logprobs") or 0), "refusal": None}


class _ChunkRenderer(Struct, frozen=True):
    """Renders the chunks of a stream; holds the fields they share."""

    body: ChatCompletionsRequest
    meta: ReplyMeta
    members: Json
    includes_usage: bool
    """The client requests usage; every chunk then has the field, null in all but the last."""
    includes_padding: bool

    def render_frame(self, choices: list[Json], usage: Json | None = None, more: Json | None = None) -> bytes:
        """Return one chunk, with extra fields if it is the last."""
        chunk: Json = {**self.members, "choices": choices, **(more or {})}
        if self.includes_usage:
            chunk["usage"] = usage
        if self.includes_padding:
            chunk["obfuscation"] = _build_padding(encode(chunk))
        return b"data: " + encode(chunk) + b"\n\n"

    def render_delta(self, index: int, delta: Json, logprobs: Json | None = None) -> bytes:
        """Return a chunk of one choice."""
        return self.render_frame([{"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": None}])

    def render_finish(self, index: int, reason: str, more: Json) -> bytes:
        """Return the last chunk of one choice."""
        return self.render_frame([{"index": index, "delta": {}, "logprobs": None, "finish_reason": reason}], more=more)


def _build_padding(chunk: bytes) -> str:
    return hashlib.sha256(chunk).hexdigest()[: -len(chunk) % _PADDING_BLOCK]


def render_stream(answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> Iterator[bytes]:
    """Yield the frames of a reply: all choices, then their ends, then the usage if requested, then `[DONE]`."""
    body = cast("ChatCompletionsRequest", accepted.body)
    answer = _add_malformed_call(answer, body)
    members: Json = {
        "id": f"chatcmpl-{meta.id}",
        "object": "chat.completion.chunk",
        "created": meta.created,
        "model": body.model,
        "service_tier": _find_service_tier(body),
        "system_fingerprint": _build_fingerprint(body),
    }
    counts = bool(body.at("/stream_options/include_usage"))
    chunks = _ChunkRenderer(body, meta, members, counts, body.at("/stream_options/include_obfuscation") is not False)
    count = body.get("n") or 1
    for index in range(count):
        yield from _stream_choice(answer, chunks, index)
    more = _render_moderation(body)
    for index in range(count):
        is_last = not counts and index + 1 == count
        yield chunks.render_finish(index, _find_finish_reason(answer, body), more if is_last else {})
    if counts:
        yield chunks.render_frame([], _render_usage(answer, body), more)
    yield _DONE


def _stream_choice(answer: Answer, chunks: _ChunkRenderer, index: int) -> Iterator[bytes]:
    opening: Json = {"role": "assistant", "content": None if _render_content(answer) is None else ""}
    if chunks.body.get("functions") and answer.calls:
        yield from _stream_function_call(answer, chunks, index, opening)
        return
    headers = [_render_call_header(call, chunks, index, place) for place, call in enumerate(answer.calls)]
    if len(headers) == 1 and not answer.text:
        # If the answer is one call and nothing else, the call comes with the first chunk.
        opening["tool_calls"] = headers
        headers = []
    yield chunks.render_delta(index, {**opening, "refusal": None})
    yield from _stream_text(answer, chunks, index)
    for piece in chunks.meta.chunking.split_text(answer.refusal):
        yield chunks.render_delta(index, {"refusal": piece})
    if cited := _render_annotations(answer):
        # The SDK's types lack the field in a stream, but OpenAI sends it (openai/openai-java#297).
        yield chunks.render_delta(index, {"annotations": cited})
    yield from _stream_calls(answer.calls, chunks, index, headers)


def _stream_text(answer: Answer, chunks: _ChunkRenderer, index: int) -> Iterator[bytes]:
    for piece in chunks.meta.chunking.split_text(answer.text):
        logprobs = _render_logprobs(piece, chunks.body) if chunks.body.get("logprobs") else None
        yield chunks.render_delta(index, {"content": piece}, logprobs)


def _render_call_header(call: Call, chunks: _ChunkRenderer, choice: int, position: int) -> Json:
    """Return the first delta of a call: everything but its arguments."""
    opening = {"index": position, "id": _build_call_id(call, chunks.meta, choice, position)}
    if _is_custom(call, chunks.body):
        return {**opening, "type": "custom", "custom": {"name": call.name, "input": ""}}
    return {**opening, "type": "function", "function": {"name": call.name, "arguments": ""}}


def _render_argument_deltas(call: Call, chunks: _ChunkRenderer, position: int) -> list[Json]:
    """Return the deltas of a call's arguments."""
    pieces = chunks.meta.chunking.split_text(_encode_arguments(call))
    if _is_custom(call, chunks.body):
        return [{"index": position, "custom": {"input": piece}} for piece in pieces]
    return [{"index": position, "function": {"arguments": piece}} for piece in pieces]


def _stream_calls(calls: tuple[Call, ...], chunks: _ChunkRenderer, index: int, headers: list[Json]) -> Iterator[bytes]:
    """Yield calls one after the other, or interleaved; calls without a header here have sent it already."""
    growing = [_render_argument_deltas(call, chunks, place) for place, call in enumerate(calls)]
    if chunks.meta.chunking.interleaved:
        turns = [piece for round_of in zip_longest(*growing) for piece in round_of if piece is not None]
        deltas = [*headers, *turns]
    else:
        opened = [[header] for header in headers] or [list[Json]() for _ in calls]
        deltas = [delta for header, pieces in zip(opened, growing, strict=True) for delta in (*header, *pieces)]
    for delta in deltas:
        yield chunks.render_delta(index, {"tool_calls": [delta]})


def _stream_function_call(answer: Answer, chunks: _ChunkRenderer, index: int, opening: Json) -> Iterator[bytes]:
    """Yield a call in the legacy `function_call` form."""
    call = answer.calls[0]
    started = {"name": call.name, "arguments": ""}
    if answer.text:
        yield chunks.render_delta(index, {**opening, "refusal": None})
        yield from _stream_text(answer, chunks, index)
        yield chunks.render_delta(index, {"function_call": started})
    else:
        yield chunks.render_delta(index, {**opening, "function_call": started, "refusal": None})
    for piece in chunks.meta.chunking.split_text(_encode_arguments(call)):
        yield chunks.render_delta(index, {"function_call": {"arguments": piece}})
