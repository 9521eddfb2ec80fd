"""Parses the fields of a request other than its messages and tools, and maps core fields to pointers.

Rules: a member that cannot be parsed is kept as raw JSON in extras; null counts as absent. `Request.spelling` holds
flags that record which of several equivalent forms was used ("user", "summary:concise").
"""

from typing import Any

from msgspec import Raw
from msgspec.json import Decoder

from dragoman.core.request import EFFORTS, OutputFormat, Sampling, Thinking
from dragoman.dialects.responses.wire import (
    AllowedTools,
    JsonFormat,
    ReasoningSettings,
    ResponsesRequest,
    SchemaFormat,
    TextFormat,
    TextSettings,
    decode_known,
)
from dragoman.wire import json
from dragoman.wire.shape import CoreFields, Shape, core_pointers, get_raw_members, non_null_bytes
from dragoman.wire.unread import Unknown

POINTERS = {
    **core_pointers(ResponsesRequest),
    **core_pointers(AllowedTools, "/tool_choice"),
    **core_pointers(ReasoningSettings, "/reasoning"),
    **core_pointers(TextSettings, "/text"),
    "tool.strict": ("/strict",),
    "tool.parameters": ("/parameters",),
    "part.cache": ("/prompt_cache_breakpoint",),
    "part.signature": ("/encrypted_content",),
    "part.citations": ("/annotations",),
    "call.id": ("/call_id",),
    "call.arguments": ("/arguments",),
    "result.call_id": ("/call_id",),
    "result.name": ("/name",),
    "media.name": ("/filename",),
}
REQUEST_FIELDS = CoreFields(ResponsesRequest)
SAMPLING_FIELDS = CoreFields(ResponsesRequest, "sampling")
TEXT_FIELDS = CoreFields(TextSettings)
_REASONING: Shape[ReasoningSettings] = Shape(ReasoningSettings)
_TEXT: Shape[TextSettings] = Shape(TextSettings)
_STRING: Decoder[str] = Decoder(str)
_PAIRS: Decoder[dict[str, str]] = Decoder(dict[str, str])
_SUMMARIES = {"auto": "", "concise": "summary:concise", "detailed": "summary:detailed"}


def read_sampling(body: ResponsesRequest) -> Sampling:
    """Parse the sampling parameters."""
    return Sampling(**SAMPLING_FIELDS.read(body))


def read_thinking(member: Raw, spelling: set[str], extras: dict[str, bytes]) -> Thinking | None:
    """Parse `reasoning`: the effort, and whether summaries are returned."""
    raw = non_null_bytes(member)
    if raw is None:
        return None
    settings, unread = _REASONING.read_at(raw, "/reasoning")
    effort: Any = settings.effort if settings.effort in EFFORTS else None
    visible = settings.summary in _SUMMARIES or None
    if effort is None and visible is None:
        extras["/reasoning"] = raw
        return None
    if effort is None and settings.effort is not None:
        extras["/reasoning/effort"] = json.encode(settings.effort)
    if visible is None and settings.summary is not None:
        extras["/reasoning/summary"] = json.encode(settings.summary)
    elif settings.summary and _SUMMARIES[settings.summary]:
        spelling.add(_SUMMARIES[settings.summary])
    fields = {**(get_raw_members(settings) or {}), **unread}
    extras.update({"/reasoning" + field: value for field, value in fields.items()})
    return Thinking(effort=effort, visible=visible)


def read_text(member: Raw, extras: dict[str, bytes]) -> tuple[OutputFormat | None, str | None]:
    """Parse `text`: the output format and the verbosity."""
    raw = non_null_bytes(member)
    if raw is None:
        return None, None
    settings, unread = _TEXT.read_at(raw, "/text")
    output = _read_format(settings)
    if output is None and settings.verbosity is None:
        extras["/text"] = raw
        return None, None
    if isinstance(settings.format, Unknown):
        extras["/text/format"] = bytes(settings.format.raw)
    extras.update({"/text" + field: value for field, value in unread.items()})
    return output, settings.verbosity


def _read_format(settings: TextSettings) -> OutputFormat | None:
    match settings.format:
        case TextFormat():
            return OutputFormat(kind="text")
        case JsonFormat():
            return OutputFormat(kind="json")
        case SchemaFormat(name=name, schema=schema, strict=strict, description=description):
            return OutputFormat(
                kind="json_schema",
                schema=non_null_bytes(schema),
                name=name or "",
                description=description or "",
                strict=strict,
            )
        case _:
            return None


def read_user(body: ResponsesRequest, spelling: set[str], extras: dict[str, bytes]) -> str | None:
    """Parse the end user's id: `safety_identifier` replaced `user`, so it wins if both are present."""
    raw = non_null_bytes(body.user)
    if raw is None:
        return body.safety_identifier
    if body.safety_identifier is not None:
        extras["/user"] = raw
        return body.safety_identifier
    spelling.add("user")
    try:
        return json.decode_with(_STRING, raw)
    except json.Malformed as error:
        raise json.Malformed(error.message, "/user") from None


def read_metadata(member: Raw, extras: dict[str, bytes]) -> dict[str, str] | None:
    """Parse `metadata`; a value that is not a map of strings to strings stays in extras."""
    raw = non_null_bytes(member)
    pairs = None if raw is None else decode_known(_PAIRS, raw)
    if raw is not None and pairs is None:
        extras["/metadata"] = raw
    return pairs
