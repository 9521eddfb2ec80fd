"""A whole generateContent reply to and from the core.

Rules: a whole reply that is not plain is read as a stream of one chunk, so both are read alike; adjacent text parts
therefore come home as one. A call cut off inside its arguments cannot be written (`args` is an object) and is left out.
"""

from collections.abc import Iterable
from typing import Any

from dragoman.core.parts import AnyPart, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.stream import collect
from dragoman.core.value import own_extras
from dragoman.dialects.gemini import code_assist
from dragoman.dialects.gemini.chunks import ChunkReader
from dragoman.dialects.gemini.finish import read_block_reason, write_finish, write_usage
from dragoman.dialects.gemini.grounding import is_cited, joined, write_grounding
from dragoman.dialects.gemini.parts import Written, write_part
from dragoman.dialects.gemini.plain_reply import read_plain
from dragoman.dialects.gemini.wire import NAME
from dragoman.wire import json

PROMPT_FEEDBACK_FIELD = "/promptFeedback"


def parse_response(body: bytes) -> Response:
    """Read a reply, in Code Assist's envelope or without it; raise the `Problem` it tells."""
    reader = ChunkReader()
    try:
        plain = read_plain(body)
        if plain is not None:
            return plain
        reader.feed(body.strip())
        reader.conclude()
    except json.Malformed as error:
        raise Problem("malformed_reply", error.message, where=error.where) from None
    return collect(reader.events)


def build_response(response: Response, request: Request | None) -> bytes:
    """Write a reply for the client that sent `request`."""
    parts, sources = _write_parts(response.parts)
    fields = {**sources, **(own_extras(response, NAME) or {})}
    body = write_reply(
        parts=parts,
        finish=response.finish,
        usage=response.usage,
        fields=fields,
        identity=identity(response.id, response.model, request),
    )
    return wrap(body, fields) if code_assist.enveloped(request) else body


def _write_parts(parts: tuple[AnyPart, ...]) -> tuple[list[Written], dict[str, bytes]]:
    """Return the parts of a reply, and the field that names their sources."""
    if not any(map(is_cited, parts)):
        return [written for part in parts if (written := write_reply_part(part)) is not None], {}
    pairs = [(part, written) for part in joined(parts) if (written := write_reply_part(part)) is not None]
    return [written for _, written in pairs], write_grounding(part for part, _ in pairs)


def write_reply_part(part: AnyPart) -> Written | None:
    """Return what stands for `part` in a reply; None for a call whose arguments are not an object."""
    if isinstance(part, ToolCall):
        if not part.complete or not json.is_object(part.arguments or "{}"):
            return None
        if not part.arguments:
            return write_part(ToolCall(id=part.id, name=part.name, arguments="{}", signature=part.signature))
    return write_part(part)


def identity(response_id: str, model: str, request: Request | None) -> dict[str, str]:
    """Return the members every chunk repeats."""
    model = model or (request.model if request is not None else "")
    members = {"modelVersion": model, "responseId": response_id}
    return {name: value for name, value in members.items() if value}


def write_reply(
    *,
    parts: Iterable[Written],
    finish: Finish,
    usage: Usage | None,
    fields: dict[str, bytes],
    identity: dict[str, str],
) -> bytes:
    """Return the JSON of a reply, or of the last chunk of one."""
    written = list(parts)
    body: dict[str, Any] = {}
    if not written and _blocked_by(fields) == finish.raw != "":
        if any(field.startswith("/candidates/0/") for field in fields):
            body["candidates"] = [{}]
    else:
        candidate: dict[str, Any] = {"content": {"parts": written, "role": "model"}} if written else {}
        body["candidates"] = [{**candidate, "finishReason": write_finish(finish), "index": 0}]
    if usage is not None:
        body["usageMetadata"] = write_usage(usage)
    body.update(identity)
    encoded = json.encode(body)
    own = {field: raw for field, raw in fields.items() if field not in code_assist.MEMBERS}
    return json.graft(encoded, own) if own else encoded


def _blocked_by(fields: dict[str, bytes]) -> str:
    """Return why the prompt was refused: such a reply has no candidates."""
    raw = fields.get(PROMPT_FEEDBACK_FIELD)
    return "" if raw is None else read_block_reason(raw)


def wrap(body: bytes, fields: dict[str, bytes]) -> bytes:
    """Put a reply into Code Assist's envelope."""
    return code_assist.wrap_response(body, {name: fields[name] for name in code_assist.MEMBERS & fields.keys()})
