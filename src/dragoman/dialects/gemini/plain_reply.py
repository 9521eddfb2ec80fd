"""Whole replies that are nothing but texts, thoughts and calls: what most are. They are read straight.

`ChunkReader` reads any reply, these included, and what it would say of them is said here. Whatever is not quite plain
(a text in pieces, an empty one, metadata, an unknown member) is left to it.
"""

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from dragoman.core.parts import AnyPart, Reasoning, Signature, Text, ToolCall
from dragoman.core.response import Response
from dragoman.core.value import Extras
from dragoman.dialects.gemini.finish import read_finish, usage_of
from dragoman.dialects.gemini.wire import ABSENT, ISSUER, NAME, Camel, UsageMetadata
from dragoman.wire.pointer import Numbered

_PLACES = Numbered("/candidates/0/content/parts/")


class _Call(Camel):
    name: str
    args: Raw = ABSENT
    id: str | None = None


class _Part(Camel):
    text: str | None = None
    function_call: _Call | None = None
    thought: bool = False
    thought_signature: str | None = None


class _Content(Camel):
    parts: list[_Part]
    role: str | None = None


class _Candidate(Camel):
    content: _Content
    finish_reason: str
    index: int = 0
    safety_ratings: Raw = ABSENT
    finish_message: Raw = ABSENT
    avg_logprobs: Raw = ABSENT


class _Reply(Camel):
    candidates: list[_Candidate]
    usage_metadata: UsageMetadata | None = None
    model_version: str | None = None
    response_id: str | None = None
    create_time: Raw = ABSENT


_REPLY: Decoder[_Reply] = Decoder(_Reply)


def read_plain(body: bytes) -> Response | None:
    """Return a reply that is plain; None for any other, what is no reply included."""
    try:
        reply = _REPLY.decode(body)
        candidate = reply.candidates[0] if len(reply.candidates) == 1 else None
        parts = _read_parts(candidate.content.parts) if candidate is not None else None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    if candidate is None or candidate.index or parts is None:
        return None
    fields: dict[str, bytes] = {}
    if reply.create_time:
        fields["/createTime"] = bytes(reply.create_time)
    if candidate.avg_logprobs:
        fields["/candidates/0/avgLogprobs"] = bytes(candidate.avg_logprobs)
    if candidate.safety_ratings:
        fields["/candidates/0/safetyRatings"] = bytes(candidate.safety_ratings)
    if candidate.finish_message:
        fields["/candidates/0/finishMessage"] = bytes(candidate.finish_message)
    usage = usage_of(reply.usage_metadata, {}) if reply.usage_metadata is not None else None
    extras = Extras(NAME, fields) if fields else None
    counts = usage.extras if usage is not None else None
    if (extras is not None and not extras.is_ascii) or (counts is not None and not counts.is_ascii):
        return None
    return Response(
        id=reply.response_id or "",
        model=reply.model_version or "",
        parts=tuple(parts),
        finish=read_finish(candidate.finish_reason, called=ToolCall in map(type, parts)),
        usage=usage,
        extras=extras,
    )


def _read_parts(parts: list[_Part]) -> list[AnyPart] | None:
    read: list[AnyPart] = []
    before: type[AnyPart] = ToolCall
    for part, where in zip(parts, _PLACES.some(0, len(parts)), strict=True):
        signed = part.thought_signature
        signature = Signature(ISSUER, signed) if signed else None
        call, text = part.function_call, part.text
        if call is not None:
            if text is not None or not call.name:
                return None
            # What is not UTF-8 is not read here.
            arguments = bytes(call.args).decode() or "{}"
            if arguments == "null":
                arguments = "{}"
            read.append(
                ToolCall(id=call.id or "", name=call.name, arguments=arguments, where=where, signature=signature)
            )
            before = ToolCall
            continue
        kind = Reasoning if part.thought else Text
        if not text or before is kind:
            return None
        if part.thought:
            read.append(Reasoning(texts=(text,), where=where, signature=signature))
        else:
            read.append(Text(text=text, where=where, signature=signature))
        before = kind
    return read
