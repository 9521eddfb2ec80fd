"""Parses and renders a whole generateContent reply.

Rules: a simple reply is decoded directly. One with sources, texts or calls in pieces, several candidates, a blocked
prompt, an envelope or an unknown member is decoded as a stream of one chunk: its meaning depends on the neighbouring
parts, which `GeminiChunkReader` handles for streams anyway. A call whose arguments are cut off cannot be rendered
(`args` is an object) and is omitted.
"""

from collections.abc import Iterable
from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw, structs
from msgspec.json import Decoder

from dragoman.core.parts import AnyPart, Reasoning, Search, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.stream import collect
from dragoman.core.value import Extras, own_extras
from dragoman.dialects.gemini import code_assist
from dragoman.dialects.gemini.decoder import GeminiChunkReader
from dragoman.dialects.gemini.finish import build_usage, read_block_reason, read_finish, write_finish, write_usage
from dragoman.dialects.gemini.grounding_writer import is_own_part, join_texts, needs_grounding, write_grounding
from dragoman.dialects.gemini.parts import Written, write_part
from dragoman.dialects.gemini.wire import ISSUER, NAME, Camel, UsageMetadata
from dragoman.wire import json
from dragoman.wire.shape import ABSENT, get_raw_members
from dragoman.wire.splice import graft
from dragoman.wire.unread import RawMember

PROMPT_FEEDBACK_FIELD = "/promptFeedback"
AS_CHUNK = "chunk"
"""The `spelling` of a reply whose member names may differ from its pointers: in snake_case, or in an envelope."""
_NULL = Raw(b"null")


class WholeCall(Camel):
    """A call that is not in pieces."""

    name: Annotated[str, Meta(min_length=1)]
    args: Raw = Raw(b"{}")
    id: str | None = None


class WholePart(Camel):
    """A text, a thought or a call."""

    text: Annotated[str, Meta(min_length=1)] | None = None
    thought: bool | None = None
    function_call: WholeCall | None = None
    thought_signature: str | None = None


class WholeContent(Camel):
    """The content of a candidate with such parts."""

    parts: tuple[WholePart, ...] = ()
    role: str | None = None


class WholeCandidate(Camel):
    """A candidate without sources."""

    content: WholeContent
    finish_reason: str | int | None = None
    index: Literal[0] = 0
    avg_logprobs: RawMember = ABSENT
    safety_ratings: RawMember = ABSENT
    finish_message: RawMember = ABSENT
    url_context_metadata: RawMember = ABSENT


class WholeResponse(Camel):
    """A whole reply with one simple candidate, as most are. Decoding fails if there is anything else."""

    candidates: tuple[WholeCandidate]
    usage_metadata: UsageMetadata | None = None
    model_version: str = ""
    response_id: str = ""
    create_time: RawMember = ABSENT
    turn_token: RawMember = ABSENT


_WHOLE: Decoder[WholeResponse] = Decoder(WholeResponse)
_get_members = attrgetter("text", "thought", "function_call", "thought_signature")


def parse_response(body: bytes) -> Response:
    """Parse a reply, with or without Code Assist's envelope; raise a `Problem` if it is an error."""
    try:
        return _read_directly(body) or _read_as_chunk(body)
    except json.Malformed as error:
        raise Problem("malformed_reply", error.message, where=error.where) from None


def _read_as_chunk(body: bytes) -> Response:
    reader = GeminiChunkReader()
    reader.feed(body.strip())
    reader.finish()
    return structs.replace(collect(reader.events), spelling=AS_CHUNK)


def _read_directly(body: bytes) -> Response | None:
    """Decode a reply with one candidate and only known members; None for any other body, even an invalid one."""
    try:
        reply = _WHOLE.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    json.require_utf8(body)
    candidate, usage = reply.candidates[0], reply.usage_metadata
    parts = _read_parts(candidate.content.parts)
    if parts is None:
        return None
    fields = get_raw_members(candidate, "/candidates/0") or {}
    if reply.create_time or reply.turn_token:
        fields.update(get_raw_members(reply) or {})
    return Response(
        id=reply.response_id,
        model=reply.model_version,
        parts=tuple(parts),
        finish=read_finish(candidate.finish_reason, has_call=ToolCall in map(type, parts)),
        usage=None if usage is None else build_usage(usage, get_raw_members(usage) or {}),
        extras=Extras(NAME, fields) if fields else None,
    )


def _read_parts(wire_parts: tuple[WholePart, ...]) -> list[AnyPart] | None:
    """Convert the parts of a candidate; None if a text is in pieces."""
    parts: list[AnyPart] = []
    previous: AnyPart | None = None
    for index, part in enumerate(wire_parts):
        text, thought, call, raw_signature = _get_members(part)
        where = f"/candidates/0/content/parts/{index}"
        signature = Signature(ISSUER, raw_signature) if raw_signature else None
        if call is not None and text is None:
            arguments = "{}" if call.args == _NULL else str(call.args, "utf-8")
            call_id = call.id or ""
            previous = ToolCall(id=call_id, name=call.name, arguments=arguments, where=where, signature=signature)
        elif call is not None or text is None or previous.__class__ is (Reasoning if thought else Text):
            return None
        elif thought:
            previous = Reasoning(texts=(text,), where=where, signature=signature)
        else:
            previous = Text(text=text, where=where, signature=signature)
        parts.append(previous)
    return parts


def build_response(response: Response, request: Request | None) -> bytes:
    """Render a reply for the client that sent `request`."""
    parts, fields = _write_parts(response.parts)
    if response.extras is not None:
        fields.update(own_extras(response, NAME) or {})
    body = write_reply(
        parts=parts,
        finish=response.finish,
        usage=response.usage,
        fields=fields,
        identity=build_identity(response.id, response.model, request),
    )
    return wrap_reply(body, fields) if code_assist.uses_envelope(request) else body


def _write_parts(parts: tuple[AnyPart, ...]) -> tuple[list[Written], dict[str, bytes]]:
    """Render the parts of a reply; also return the field with their grounding metadata."""
    if not any(map(needs_grounding, parts)):
        return [written for part in parts if (written := write_reply_part(part)) is not None], {}
    searches = [part for part in parts if isinstance(part, Search) and not is_own_part(part)]
    others = [part for part in parts if not isinstance(part, Search) or is_own_part(part)]
    pairs = [(part, written) for part in join_texts(others) if (written := write_reply_part(part)) is not None]
    return [written for _, written in pairs], write_grounding((part for part, _ in pairs), searches)


def write_reply_part(part: AnyPart) -> Written | None:
    """Render a part of a reply; None for a call whose arguments are not an object."""
    if isinstance(part, ToolCall):
        if not part.complete or not json.is_object(part.arguments or "{}"):
            return None
        if not part.arguments:
            return write_part(ToolCall(id=part.id, name=part.name, arguments="{}", signature=part.signature))
    return write_part(part)


def build_identity(response_id: str, model: str, request: Request | None) -> dict[str, str]:
    """Return the members that every chunk repeats: the model and the reply id."""
    model = model or (request.model if request is not None else "")
    members = {"modelVersion": model} if model else {}
    if response_id:
        members["responseId"] = response_id
    return members


def write_reply(
    *,
    parts: Iterable[Written],
    finish: Finish,
    usage: Usage | None,
    fields: dict[str, bytes],
    identity: dict[str, str],
) -> bytes:
    """Return the JSON of a whole reply or of the last chunk of a stream."""
    written = list(parts)
    body: dict[str, Any] = {}
    if not written and _find_block_reason(fields) == finish.raw != "":
        if any(field.startswith("/candidates/0/") for field in fields):
            body["candidates"] = [{}]
    else:
        candidate: dict[str, Any] = {"content": {"parts": written, "role": "model"}} if written else {}
        body["candidates"] = [{**candidate, "finishReason": write_finish(finish), "index": 0}]
    if usage is not None:
        body["usageMetadata"] = write_usage(usage)
    body.update(identity)
    encoded = json.encode(body)
    if not fields:
        return encoded
    inner_fields = {field: raw for field, raw in fields.items() if field not in code_assist.MEMBERS}
    return graft(encoded, inner_fields) if inner_fields else encoded


def _find_block_reason(fields: dict[str, bytes]) -> str:
    """Return the reason why the prompt was blocked, "" if it was not. Such a reply has no candidates."""
    raw = fields.get(PROMPT_FEEDBACK_FIELD)
    return "" if raw is None else read_block_reason(raw)


def wrap_reply(body: bytes, fields: dict[str, bytes]) -> bytes:
    """Wrap a reply in Code Assist's envelope, with those of its fields that belong there."""
    return code_assist.wrap_response(body, {name: fields[name] for name in code_assist.MEMBERS & fields.keys()})
