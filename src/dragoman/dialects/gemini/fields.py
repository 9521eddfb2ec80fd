"""generationConfig, read and written; and where fields of the core stand in a request.

Rules: what the core has no word for (`text/x.enum`, a schema without its media type, an unknown level) is noted as
unread and so comes home unchanged. Empty objects and a level in lower case are remembered as spelling words.
"""

from typing import Any

from msgspec import Raw

from dragoman.core.request import EFFORTS, Effort, OutputFormat, Request, Sampling, Thinking
from dragoman.dialects.gemini.code_assist import INNER
from dragoman.dialects.gemini.wire import GenerateContentRequest, GenerationConfig, Leftovers, ThinkingConfig
from dragoman.wire import json
from dragoman.wire.shape import CoreFields, core_pointers, present

_PLAIN_POINTERS = core_pointers(GenerateContentRequest)
POINTERS = {
    # In Code Assist's envelope everything stands one level deeper, but the model.
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
_SAMPLING = CoreFields(GenerationConfig, "sampling")
_THINKING = CoreFields(ThinkingConfig, "thinking")
_NO_THINKING = Thinking()
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


def read_sampling(config: GenerationConfig, where: str, words: set[str]) -> Sampling:
    """Read the settings of the sampler."""
    if config.stop_sequences == []:
        words.add(NO_STOPS)
    return Sampling(**_SAMPLING.read(config, where), stop=tuple(config.stop_sequences or ()))


def read_thinking(config: ThinkingConfig, where: str, words: set[str], leftovers: Leftovers) -> Thinking | None:
    """Return how much to think, None when the object says nothing."""
    level = config.thinking_level
    effort: Effort | None = None
    if level is not None:
        effort = next((known for known in EFFORTS if known == level.lower()), None)
        if effort is None and level != UNSPECIFIED:
            leftovers.add(f"{where}/thinkingLevel", json.encode(level))
        elif level != str(effort).upper():
            words.add(LEVEL + level)
    words.add(THINKING_PRESENT)
    thinking = Thinking(**_THINKING.read(config, where), effort=effort)
    return thinking if thinking != _NO_THINKING else None


def read_output(config: GenerationConfig, where: str, leftovers: Leftovers) -> OutputFormat | None:
    """Return the shape the answer must have."""
    mime_type = config.response_mime_type
    openapi = present(config.response_schema)
    schema = present(config.response_json_schema)
    if mime_type == JSON:
        if schema is not None:
            if openapi is not None:
                leftovers.add(f"{where}/responseSchema", openapi)
            return OutputFormat(kind="json_schema", schema=schema)
        if openapi is not None:
            return OutputFormat(kind="json_schema", schema=openapi, openapi=True)
        return OutputFormat(kind="json")
    if openapi is not None:
        leftovers.add(f"{where}/responseSchema", openapi)
    if schema is not None:
        leftovers.add(f"{where}/responseJsonSchema", schema)
    if mime_type == PLAIN:
        return OutputFormat(kind="text")
    if mime_type is not None:
        leftovers.add(f"{where}/responseMimeType", json.encode(mime_type))
    return None


def write_config(request: Request) -> dict[str, Any] | None:
    """Return generationConfig, None when there is nothing to say."""
    sampling, words = request.sampling, request.spelling
    config = _SAMPLING.write(sampling)
    if sampling.stop or NO_STOPS in words:
        config["stopSequences"] = sampling.stop
    if request.candidates is not None:
        config |= CONFIG_FIELDS.write(request)
    if request.output is not None:
        config |= _write_output(request.output)
    if request.thinking is not None or THINKING_PRESENT in words:
        thinking = _write_thinking(request.thinking or _NO_THINKING, words)
        if thinking or THINKING_PRESENT in words:
            config["thinkingConfig"] = thinking
    return config if config or PRESENT in words else None


def _write_output(output: OutputFormat) -> dict[str, Any]:
    if output.kind != "json_schema" or output.schema is None:
        return {"responseMimeType": PLAIN if output.kind == "text" else JSON}
    schema = "responseSchema" if output.openapi else "responseJsonSchema"
    return {"responseMimeType": JSON, schema: Raw(output.schema)}


def _write_thinking(thinking: Thinking, words: frozenset[str]) -> dict[str, Any]:
    written = _THINKING.write(thinking)
    spelled = next((word[len(LEVEL) :] for word in words if word.startswith(LEVEL)), "")
    if thinking.effort is not None:
        written["thinkingLevel"] = spelled if spelled.lower() == thinking.effort else _LEVELS[thinking.effort]
    elif spelled == UNSPECIFIED:
        written["thinkingLevel"] = spelled
    return written
