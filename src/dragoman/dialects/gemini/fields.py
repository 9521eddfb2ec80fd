"""Reads and writes the settings in generationConfig, and lists the JSON pointers of core fields in a request.

Rules: what the core cannot represent (`text/x.enum`, a schema without its media type, an unknown level) is noted as
unread, so Gemini gets it back unchanged. Empty objects and a lower-case level are noted in `Request.spelling`.
"""

from typing import Any

from msgspec import Raw

from dragoman.core.request import EFFORTS, Effort, OutputFormat, Sampling, Thinking
from dragoman.dialects.gemini.code_assist import INNER
from dragoman.dialects.gemini.wire import GenerateContentRequest, GenerationConfig, ThinkingConfig, UnreadMembers
from dragoman.wire import json
from dragoman.wire.shape import CoreFields, core_pointers, non_null_bytes

_PLAIN_POINTERS = core_pointers(GenerateContentRequest)
POINTERS = {
    # In Code Assist's envelope everything except the model is one level deeper.
    **{name: (*places, *(INNER + place for place in places)) for name, places in _PLAIN_POINTERS.items()},
    "model": ("/model",),
    "tool.parameters": ("/parametersJsonSchema", "/parameters"),
    "part.signature": ("/thoughtSignature",),
    "call.id": ("/functionCall/id",),
    "call.arguments": ("/functionCall/args",),
    "result.call_id": ("/functionResponse/id",),
    "result.name": ("/functionResponse/name",),
    "media.media_type": ("/inlineData/mimeType", "/fileData/mimeType"),
    "media.name": ("/inlineData/displayName", "/fileData/displayName"),
}
REQUEST_FIELDS = CoreFields(GenerateContentRequest)
CONFIG_FIELDS = CoreFields(GenerationConfig)
SAMPLING_FIELDS = CoreFields(GenerationConfig, "sampling")
THINKING_FIELDS = CoreFields(ThinkingConfig, "thinking")
NO_THINKING = Thinking()
PRESENT = "generationConfig"
THINKING_PRESENT = "thinkingConfig"
NO_STOPS = "stopSequences"
LEVEL = "thinkingLevel:"
UNSPECIFIED = "THINKING_LEVEL_UNSPECIFIED"
JSON = "application/json"
PLAIN = "text/plain"
_LEVELS: dict[str, str] = {
    "none": "MINIMAL",
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}


def read_sampling(config: GenerationConfig, where: str, spelling: set[str]) -> Sampling:
    """Read the sampling parameters."""
    if config.stop_sequences == []:
        spelling.add(NO_STOPS)
    return Sampling(**SAMPLING_FIELDS.read(config, where), stop=tuple(config.stop_sequences or ()))


def read_thinking(config: ThinkingConfig, where: str, spelling: set[str], unread: UnreadMembers) -> Thinking | None:
    """Read the thinking settings; None if the object sets none."""
    level = config.thinking_level
    effort: Effort | None = None
    if level is not None:
        effort = next((known for known in EFFORTS if known == level.lower()), None)
        if effort is None and level != UNSPECIFIED:
            unread.add(f"{where}/thinkingLevel", json.encode(level))
        elif level != str(effort).upper():
            spelling.add(LEVEL + level)
    spelling.add(THINKING_PRESENT)
    thinking = Thinking(**THINKING_FIELDS.read(config, where), effort=effort)
    return thinking if thinking != NO_THINKING else None


def write_thinking(thinking: Thinking, spelling: frozenset[str]) -> dict[str, Any]:
    """Render thinkingConfig, with the level as it was sent if `spelling` has it."""
    written = THINKING_FIELDS.write(thinking)
    level = next((flag[len(LEVEL) :] for flag in spelling if flag.startswith(LEVEL)), "")
    if thinking.effort is not None:
        written["thinkingLevel"] = level if level.lower() == thinking.effort else _LEVELS[thinking.effort]
    elif level == UNSPECIFIED:
        written["thinkingLevel"] = level
    return written


def read_output(config: GenerationConfig, where: str, unread: UnreadMembers) -> OutputFormat | None:
    """Read the output format; None if it is not set or unknown."""
    mime_type = config.response_mime_type
    openapi = non_null_bytes(config.response_schema)
    schema = non_null_bytes(config.response_json_schema)
    if mime_type == JSON:
        if schema is not None:
            if openapi is not None:
                unread.add(f"{where}/responseSchema", openapi)
            return OutputFormat(kind="json_schema", schema=schema)
        if openapi is not None:
            return OutputFormat(kind="json_schema", schema=openapi, openapi=True)
        return OutputFormat(kind="json")
    if openapi is not None:
        unread.add(f"{where}/responseSchema", openapi)
    if schema is not None:
        unread.add(f"{where}/responseJsonSchema", schema)
    if mime_type == PLAIN:
        return OutputFormat(kind="text")
    if mime_type is not None:
        unread.add(f"{where}/responseMimeType", json.encode(mime_type))
    return None


def write_output(output: OutputFormat) -> dict[str, Any]:
    """Render the output format as members of generationConfig."""
    if output.kind != "json_schema" or output.schema is None:
        return {"responseMimeType": PLAIN if output.kind == "text" else JSON}
    schema = "responseSchema" if output.openapi else "responseJsonSchema"
    return {"responseMimeType": JSON, schema: Raw(output.schema)}
