"""Reads the request fields other than messages and tools, and lists the JSON pointers of core fields.

Rules: an unknown value stays in extras. `Request.spelling` notes members that were sent empty or under another name, so
that they are rendered the same way. In a message thread (beta) the server stores the conversation, and a request has
only the new messages.
"""

from typing import Any

from msgspec import Raw

from dragoman.core.request import EFFORTS, OutputFormat, Reference, Sampling, Thinking
from dragoman.dialects.messages.wire import ChoiceShape, FormatShape, MetadataShape, RequestShape, ThinkingShape
from dragoman.wire import json
from dragoman.wire.json import encode
from dragoman.wire.shape import ABSENT, CoreFields, Shape, core_pointers, non_null_bytes

POINTERS = {
    **core_pointers(RequestShape),
    **core_pointers(ChoiceShape, "/tool_choice"),
    **core_pointers(ThinkingShape, "/thinking"),
    "output.schema": ("/output_config/format/schema", "/output_format/schema"),
    "tool.strict": ("/strict",),
    "tool.parameters": ("/input_schema",),
    "tool.cache": ("/cache_control",),
    "part.cache": ("/cache_control",),
    "part.signature": ("/signature", "/data"),
    "part.citations": ("/citations",),
    "call.id": ("/id",),
    "call.arguments": ("/input",),
    "result.call_id": ("/tool_use_id",),
    "result.failed": ("/is_error",),
    "media.name": ("/title",),
    "media.context": ("/context",),
    "media.media_type": ("/source/media_type",),
}
METADATA_FIELDS = CoreFields(MetadataShape)
SAMPLING_FIELDS = CoreFields(RequestShape, "sampling")
_UNSUPPORTED = "thread_unsupported_request"
"""The error code that makes the SDKs' tool runners send the whole conversation again, without a thread."""
_THINKING: Shape[ThinkingShape] = Shape(ThinkingShape)
_FORMAT: Shape[FormatShape] = Shape(FormatShape)

_THINKING_MODES: dict[str, Any] = {
    "adaptive": "adaptive",
    "enabled": "enabled",
    "disabled": "disabled",
    "between_tools": "disabled",
}
_VISIBLE = {"summarized": True, "omitted": False}


def read_sampling(shape: RequestShape) -> Sampling:
    """Read the sampling parameters."""
    return Sampling(**SAMPLING_FIELDS.read(shape), stop=tuple(shape.stop_sequences or ()))


def read_thinking(shape: RequestShape, fields: dict[str, bytes], spelling: set[str]) -> Thinking | None:
    """Read the thinking settings."""
    config = shape.output_config
    effort: Any = config.effort if config is not None else None
    if effort is not None and effort not in EFFORTS:
        fields["/output_config/effort"] = encode(effort)
        effort = None
    raw = non_null_bytes(shape.thinking)
    if raw is None:
        return Thinking(effort=effort) if effort else None
    thinking, below = _THINKING.read_at(raw, "/thinking")
    mode = _THINKING_MODES.get(thinking.type)
    if mode is None:
        fields["/thinking"] = raw
        return Thinking(effort=effort) if effort else None
    if thinking.type == "between_tools":
        spelling.add("between_tools")
    visible = None if mode == "disabled" else _VISIBLE.get(thinking.display or "")
    if thinking.display is not None and visible is None:
        below["/display"] = encode(thinking.display)
    budget = thinking.budget_tokens
    if mode == "disabled" and budget is not None:
        below["/budget_tokens"] = encode(budget)
        budget = None
    fields.update({"/thinking" + pointer: value for pointer, value in below.items()})
    return Thinking(mode=mode, effort=effort, budget=budget, visible=visible)


def read_output(shape: RequestShape, fields: dict[str, bytes], spelling: set[str]) -> OutputFormat | None:
    """Read the output format, from `output_config.format` or the older `output_format`."""
    config = shape.output_config
    found = None if config is None else _read_format(config.format, "/output_config/format", fields)
    if found is not None:
        if shape.output_format is not ABSENT:
            fields["/output_format"] = bytes(shape.output_format)
        return found
    found = _read_format(shape.output_format, "/output_format", fields)
    if found is not None:
        spelling.add("output_format")
    return found


def _read_format(member: Raw, where: str, fields: dict[str, bytes]) -> OutputFormat | None:
    raw = non_null_bytes(member)
    if raw is None:
        return None
    shape, below = _FORMAT.read_at(raw, where)
    if shape.type != "json_schema":
        fields[where] = raw
        return None
    fields.update({where + pointer: value for pointer, value in below.items()})
    return OutputFormat(kind="json_schema", schema=None if shape.schema is ABSENT else bytes(shape.schema))


def find_thread_references(thread: Raw) -> tuple[Reference, ...]:
    """Return the reference to a stored thread that a request continues; a new thread has none."""
    if thread is ABSENT or json.first_byte(thread) != b"{":
        return ()
    members = json.decode_object(thread)
    if json.first_byte(members.get("previous_message_id", b"null")) == b'"':
        return (Reference("/thread/previous_message_id", _UNSUPPORTED),)
    continues = bytes(members.get("type", b"")) == b'"continue"'
    return (Reference("/thread/type", _UNSUPPORTED),) if continues else ()
