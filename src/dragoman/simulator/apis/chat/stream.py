"""Write an answer as a stream of chunks, in the order in which OpenAI sends them."""

import hashlib
from collections.abc import Iterator
from itertools import zip_longest
from typing import cast

from msgspec import Struct

from dragoman.simulator.api import Accepted, Occasion
from dragoman.simulator.apis.chat import write
from dragoman.simulator.apis.chat.body import ChatRequest
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Answer, Call
from dragoman.wire.json import encode

DONE = b"data: [DONE]\n\n"
_BLOCK = 16
"""Chunks are padded to a multiple of this, so that their sizes tell nothing of the tokens in them."""


class Chunks(Struct, frozen=True):
    """What all chunks of a stream have in common."""

    body: ChatRequest
    occasion: Occasion

    def frame(self, choices: list[Json], usage: Json | None = None, more: Json | None = None) -> bytes:
        """Write one chunk, with more members if it is the last."""
        chunk: Json = {
            "id": f"chatcmpl-{self.occasion.id}",
            "object": "chat.completion.chunk",
            "created": self.occasion.created,
            "model": self.body.model,
            "service_tier": write.tier(self.body),
            "system_fingerprint": write.fingerprint(self.body),
            "choices": choices,
            **(more or {}),
        }
        if self.body.at("/stream_options/include_usage"):
            chunk["usage"] = usage
        if self.body.at("/stream_options/include_obfuscation") is not False:
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
    answer = write.said(answer, body)
    chunks = Chunks(body, occasion)
    count = body.get("n") or 1
    for index in range(count):
        yield from _choice(answer, chunks, index)
    counts = bool(body.at("/stream_options/include_usage"))
    more = write.moderation(body)
    for index in range(count):
        is_last = not counts and index + 1 == count
        yield chunks.finish(index, write.finish_reason(answer, body), more if is_last else {})
    if counts:
        yield chunks.frame([], write.usage(answer, body), more)
    yield DONE


def _choice(answer: Answer, chunks: Chunks, index: int) -> Iterator[bytes]:
    opening: Json = {"role": "assistant", "content": None if write.content(answer) is None else ""}
    if chunks.body.get("functions") and answer.calls:
        yield from _function_call(answer, chunks, index, opening)
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
    if cited := write.annotations(answer):
        # The SDK's types do not know the member in a stream, but OpenAI sends it (openai/openai-java#297).
        yield chunks.delta(index, {"annotations": cited})
    yield from _calls(answer.calls, chunks, index, headers)


def _text(answer: Answer, chunks: Chunks, index: int) -> Iterator[bytes]:
    for piece in chunks.occasion.pace.pieces(answer.text):
        told = write.logprobs(piece, chunks.body) if chunks.body.get("logprobs") else None
        yield chunks.delta(index, {"content": piece}, told)


def _header(call: Call, chunks: Chunks, choice: int, place: int) -> Json:
    """Write what opens a call: everything but its arguments."""
    opening = {"index": place, "id": write.call_id(call, chunks.occasion, choice, place)}
    if write.is_custom(call, chunks.body):
        return {**opening, "type": "custom", "custom": {"name": call.name, "input": ""}}
    return {**opening, "type": "function", "function": {"name": call.name, "arguments": ""}}


def _growth(call: Call, chunks: Chunks, place: int) -> list[Json]:
    """Write the pieces of a call's arguments."""
    pieces = chunks.occasion.pace.pieces(write.arguments(call))
    if write.is_custom(call, chunks.body):
        return [{"index": place, "custom": {"input": piece}} for piece in pieces]
    return [{"index": place, "function": {"arguments": piece}} for piece in pieces]


def _calls(calls: tuple[Call, ...], chunks: Chunks, index: int, headers: list[Json]) -> Iterator[bytes]:
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


def _function_call(answer: Answer, chunks: Chunks, index: int, opening: Json) -> Iterator[bytes]:
    """Write a call as it was before there were tools."""
    call = answer.calls[0]
    started = {"name": call.name, "arguments": ""}
    if answer.text:
        yield chunks.delta(index, {**opening, "refusal": None})
        yield from _text(answer, chunks, index)
        yield chunks.delta(index, {"function_call": started})
    else:
        yield chunks.delta(index, {**opening, "function_call": started, "refusal": None})
    for piece in chunks.occasion.pace.pieces(write.arguments(call)):
        yield chunks.delta(index, {"function_call": {"arguments": piece}})
