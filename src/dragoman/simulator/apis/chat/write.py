"""Write an answer as one chat completion, or as a stream of chunks in the order in which OpenAI sends them."""

import hashlib
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, cast

from msgspec import Struct, structs

from dragoman.simulator.api import Accepted, Occasion, Refusal
from dragoman.simulator.apis.chat.body import ChatRequest
from dragoman.simulator.apis.openai.errors import error_of
from dragoman.simulator.apis.openai.replies import moderation_result, probabilities
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Answer, Call
from dragoman.wire.json import decode, encode

_TIERS = {"auto": "default", "fast": "priority"}
_UNREADABLE = '{"'
_DONE = b"data: [DONE]\n\n"
_BLOCK = 16
"""_Chunks are padded to a multiple of this, so that their sizes tell nothing of the tokens in them."""


def whole(answer: Answer, accepted: Accepted, occasion: Occasion) -> bytes:
    """Return the reply to a request that did not ask for a stream."""
    body = cast("ChatRequest", accepted.body)
    answer = _said(answer, body)
    choices = [_choice(answer, body, occasion, index) for index in range(body.get("n") or 1)]
    return encode(
        {
            "id": f"chatcmpl-{occasion.id}",
            "object": "chat.completion",
            "created": occasion.created,
            "model": body.model,
            "choices": choices,
            "usage": _usage(answer, body),
            "service_tier": _tier(body),
            "system_fingerprint": _fingerprint(body),
            **_moderation(body),
        }
    )


def fail(refusal: Refusal) -> bytes:
    """Return the frame with which a stream breaks off; nothing follows it."""
    return b"data: " + encode({"error": error_of(refusal)}) + b"\n\n"


def silenced(data: bytes) -> bytes:
    """Take the choices out of a reply or a chunk."""
    return encode({**decode(data), "choices": []})


def _choice(answer: Answer, body: ChatRequest, occasion: Occasion, index: int) -> Json:
    message: Json = {"role": "assistant", "content": _content(answer)}
    if answer.calls and body.get("functions"):
        message["function_call"] = _function_call(answer.calls[0])
    elif answer.calls:
        message["tool_calls"] = [
            _tool_call(call, body, _call_id(call, occasion, index, place)) for place, call in enumerate(answer.calls)
        ]
    message |= {"refusal": answer.refusal or None, "annotations": _annotations(answer)}
    told = _logprobs(answer.text, body) if body.get("logprobs") and answer.text else None
    return {"index": index, "message": message, "logprobs": told, "finish_reason": _finish_reason(answer, body)}


def _said(answer: Answer, body: ChatRequest) -> Answer:
    """Return what the model really said: OpenAI has no word for a call that cannot be read, but hands it on."""
    functions = [tool["function"]["name"] for tool in body.list("tools") if tool["type"] == "function"]
    if answer.end != "malformed_call" or answer.calls or not functions:
        return answer
    return structs.replace(answer, calls=(Call(id="", name=functions[0], arguments=_UNREADABLE),))


def _content(answer: Answer) -> str | None:
    """Return the text of a message: null beside calls or a refusal, never null without them."""
    return answer.text or (None if answer.calls or answer.refusal else "")


def _finish_reason(answer: Answer, body: ChatRequest) -> str:
    """Say why the answer ends. Models before GPT-5 say `stop` where the call was ordered by name."""
    if answer.end in {"length", "filtered"}:
        return "length" if answer.end == "length" else "content_filter"
    if not answer.calls:
        return "stop"
    choice = body.get("tool_choice") or body.get("function_call")
    named = isinstance(choice, dict) and "allowed_tools" not in choice
    if named and body.family.generation < (5, 0):
        return "stop"
    return "function_call" if body.get("functions") else "tool_calls"


def _is_custom(call: Call, body: ChatRequest) -> bool:
    return any(tool["type"] == "custom" and tool["custom"]["name"] == call.name for tool in body.list("tools"))


def _call_id(call: Call, occasion: Occasion, choice: int, place: int) -> str:
    """Return a call's own id if it is in OpenAI's style, or one that is."""
    if call.id.startswith("call_") and not choice:
        return call.id
    return "call_" + hashlib.sha256(f"{occasion.id} {choice} {place} {call.id}".encode()).hexdigest()[:24]


def _arguments(call: Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else encode(call.arguments).decode()


def _tool_call(call: Call, body: ChatRequest, identity: str) -> Json:
    if _is_custom(call, body):
        return {"id": identity, "type": "custom", "custom": {"name": call.name, "input": _arguments(call)}}
    return {"id": identity, "type": "function", "function": _function_call(call)}


def _function_call(call: Call) -> Json:
    return {"name": call.name, "arguments": _arguments(call)}


def _annotations(answer: Answer) -> list[Json]:
    """Write what was found on the web, each at the place where the text quotes it."""
    written: list[Json] = []
    for source in answer.sources:
        start = answer.text.find(source.quote)
        end = start + len(source.quote) if start >= 0 else len(answer.text)
        place = {"start_index": max(start, 0), "end_index": end}
        citation = {**place, "title": source.title, "url": source.url}
        written.append({"type": "url_citation", "url_citation": citation})
    return written


def _usage(answer: Answer, body: ChatRequest) -> Json:
    """Count tokens: those of all choices, with what was thought among the completion's."""
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


def _moderation(body: ChatRequest) -> Json:
    """Return the member that tells what the moderator said, if one was asked for."""
    if body.get("moderation") is None:
        return {}
    model = body.get("moderation")["model"]
    results: Json = {"type": "moderation_results", "model": model, "results": [moderation_result(model)]}
    return {"moderation": {"input": results, "output": results}}


def _tier(body: ChatRequest) -> str:
    asked = body.get("service_tier") or "auto"
    return _TIERS.get(asked, asked)


def _fingerprint(body: ChatRequest) -> str | None:
    """Return the mark of the backend, which models since GPT-5 do not tell."""
    if body.family.generation >= (4, 2):
        return None
    return "fp_" + hashlib.sha256(body.model.encode()).hexdigest()[:10]


def _logprobs(text: str, body: ChatRequest) -> Json:
    return {"content": probabilities(text, body.get("top_logprobs") or 0), "refusal": None}


class _Chunks(Struct, frozen=True):
    """What all chunks of a stream have in common."""

    body: ChatRequest
    occasion: Occasion
    members: Json
    counts: bool
    """The client wants usage, which every chunk then has: null but in the last."""
    pads: bool

    def frame(self, choices: list[Json], usage: Json | None = None, more: Json | None = None) -> bytes:
        """Write one chunk, with more members if it is the last."""
        chunk: Json = {**self.members, "choices": choices, **(more or {})}
        if self.counts:
            chunk["usage"] = usage
        if self.pads:
            chunk["obfuscation"] = _padding(encode(chunk))
        return b"data: " + encode(chunk) + b"\n\n"

    def delta(self, index: int, delta: Json, logprobs: Json | None = None) -> bytes:
        """Write a chunk of one choice."""
        return self.frame([{"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": None}])

    def finish(self, index: int, reason: str, more: Json) -> bytes:
        """Write the last chunk of one choice."""
        return self.frame([{"index": index, "delta": {}, "logprobs": None, "finish_reason": reason}], more=more)


def _padding(chunk: bytes) -> str:
    return hashlib.sha256(chunk).hexdigest()[: -len(chunk) % _BLOCK]


def stream(answer: Answer, accepted: Accepted, occasion: Occasion) -> Iterator[bytes]:
    """Iterate the frames of a reply: all choices, then their ends, then the usage if asked for, then the end mark."""
    body = cast("ChatRequest", accepted.body)
    answer = _said(answer, body)
    members: Json = {
        "id": f"chatcmpl-{occasion.id}",
        "object": "chat.completion.chunk",
        "created": occasion.created,
        "model": body.model,
        "service_tier": _tier(body),
        "system_fingerprint": _fingerprint(body),
    }
    counts = bool(body.at("/stream_options/include_usage"))
    chunks = _Chunks(body, occasion, members, counts, body.at("/stream_options/include_obfuscation") is not False)
    count = body.get("n") or 1
    for index in range(count):
        yield from _streamed_choice(answer, chunks, index)
    more = _moderation(body)
    for index in range(count):
        is_last = not counts and index + 1 == count
        yield chunks.finish(index, _finish_reason(answer, body), more if is_last else {})
    if counts:
        yield chunks.frame([], _usage(answer, body), more)
    yield _DONE


def _streamed_choice(answer: Answer, chunks: _Chunks, index: int) -> Iterator[bytes]:
    opening: Json = {"role": "assistant", "content": None if _content(answer) is None else ""}
    if chunks.body.get("functions") and answer.calls:
        yield from _streamed_function_call(answer, chunks, index, opening)
        return
    headers = [_header(call, chunks, index, place) for place, call in enumerate(answer.calls)]
    if len(headers) == 1 and not answer.text:
        # A call that is all there is comes with the first chunk.
        opening["tool_calls"] = headers
        headers = []
    yield chunks.delta(index, {**opening, "refusal": None})
    yield from _text(answer, chunks, index)
    for piece in chunks.occasion.pace.pieces(answer.refusal):
        yield chunks.delta(index, {"refusal": piece})
    if cited := _annotations(answer):
        # The SDK's types do not know the member in a stream, but OpenAI sends it (openai/openai-java#297).
        yield chunks.delta(index, {"annotations": cited})
    yield from _calls(answer.calls, chunks, index, headers)


def _text(answer: Answer, chunks: _Chunks, index: int) -> Iterator[bytes]:
    for piece in chunks.occasion.pace.pieces(answer.text):
        told = _logprobs(piece, chunks.body) if chunks.body.get("logprobs") else None
        yield chunks.delta(index, {"content": piece}, told)


def _header(call: Call, chunks: _Chunks, choice: int, place: int) -> Json:
    """Write what opens a call: everything but its arguments."""
    opening = {"index": place, "id": _call_id(call, chunks.occasion, choice, place)}
    if _is_custom(call, chunks.body):
        return {**opening, "type": "custom", "custom": {"name": call.name, "input": ""}}
    return {**opening, "type": "function", "function": {"name": call.name, "arguments": ""}}


def _growth(call: Call, chunks: _Chunks, place: int) -> list[Json]:
    """Write the pieces of a call's arguments."""
    pieces = chunks.occasion.pace.pieces(_arguments(call))
    if _is_custom(call, chunks.body):
        return [{"index": place, "custom": {"input": piece}} for piece in pieces]
    return [{"index": place, "function": {"arguments": piece}} for piece in pieces]


def _calls(calls: tuple[Call, ...], chunks: _Chunks, index: int, headers: list[Json]) -> Iterator[bytes]:
    """Write calls one after the other, or in turns; those whose headers are already out only grow."""
    growing = [_growth(call, chunks, place) for place, call in enumerate(calls)]
    if chunks.occasion.pace.interleaved:
        turns = [piece for round_of in zip_longest(*growing) for piece in round_of if piece is not None]
        deltas = [*headers, *turns]
    else:
        opened = [[header] for header in headers] or [list[Json]() for _ in calls]
        deltas = [delta for header, pieces in zip(opened, growing, strict=True) for delta in (*header, *pieces)]
    for delta in deltas:
        yield chunks.delta(index, {"tool_calls": [delta]})


def _streamed_function_call(answer: Answer, chunks: _Chunks, index: int, opening: Json) -> Iterator[bytes]:
    """Write a call as it was before there were tools."""
    call = answer.calls[0]
    started = {"name": call.name, "arguments": ""}
    if answer.text:
        yield chunks.delta(index, {**opening, "refusal": None})
        yield from _text(answer, chunks, index)
        yield chunks.delta(index, {"function_call": started})
    else:
        yield chunks.delta(index, {**opening, "function_call": started, "refusal": None})
    for piece in chunks.occasion.pace.pieces(_arguments(call)):
        yield chunks.delta(index, {"function_call": {"arguments": piece}})
