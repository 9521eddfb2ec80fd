"""Fields of a request beside its messages and tools, read; and where fields of the core stand.

Rules: a member that nobody understands is kept whole in extras; null is absent. `Request.spelling` holds the words this
dialect has several of ("user", "summary:concise").
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
from dragoman.wire.shape import CoreFields, Shape, carried, core_pointers, non_null_bytes
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
    """Read the settings of the sampler."""
    return Sampling(**SAMPLING_FIELDS.read(body))


def read_thinking(member: Raw, words: set[str], extras: dict[str, bytes]) -> Thinking | None:
    """Read `reasoning`: how much to think, and whether to show it."""
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
        words.add(_SUMMARIES[settings.summary])
    fields = {**(carried(settings) or {}), **unread}
    extras.update({"/reasoning" + field: value for field, value in fields.items()})
    return Thinking(effort=effort, visible=visible)


def read_text(member: Raw, extras: dict[str, bytes]) -> tuple[OutputFormat | None, str | None]:
    """Read `text`: the format of the answer, and its verbosity."""
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


def read_user(body: ResponsesRequest, words: set[str], extras: dict[str, bytes]) -> str | None:
    """Read who asks: `safety_identifier` replaced `user`, and a caller who sends both means the new one."""
    raw = non_null_bytes(body.user)
    if raw is None:
        return body.safety_identifier
    if body.safety_identifier is not None:
        extras["/user"] = raw
        return body.safety_identifier
    words.add("user")
    try:
        return json.decode_with(_STRING, raw)
    except json.Malformed as error:
        raise json.Malformed(error.message, "/user") from None


def read_metadata(member: Raw, extras: dict[str, bytes]) -> dict[str, str] | None:
    """Read labels; those that are not pairs of texts stay in extras."""
    raw = non_null_bytes(member)
    pairs = None if raw is None else decode_known(_PAIRS, raw)
    if raw is not None and pairs is None:
        extras["/metadata"] = raw
    return pairs
