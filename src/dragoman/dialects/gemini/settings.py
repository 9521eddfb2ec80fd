"""generationConfig to and from the core: sampling, thinking, the shape of the answer.

Rules: what the core has no word for (`text/x.enum`, a schema without its media type, an unknown level) is noted as
unread and so comes home unchanged. Empty objects and a level in lower case are remembered as spelling words. A number
may be a text, and a whole one may have a fraction of zero: proto JSON takes both.
"""

import re
from math import isfinite
from operator import attrgetter
from typing import Any

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.core.request import EFFORTS, Effort, OutputFormat, Request, Sampling, Thinking
from dragoman.dialects.gemini.wire import AnyNumber, GenerationConfig, Leftovers, ThinkingConfig, given
from dragoman.wire import json

PRESENT = "generationConfig"
THINKING_PRESENT = "thinkingConfig"
NO_STOPS = "stopSequences"
LEVEL = "thinkingLevel:"
UNSPECIFIED = "THINKING_LEVEL_UNSPECIFIED"
JSON = "application/json"
PLAIN = "text/plain"
NOTHING = Sampling()
_SAMPLING = (
    ("temperature", "temperature"),
    ("top_p", "topP"),
    ("top_k", "topK"),
    ("max_tokens", "maxOutputTokens"),
    ("seed", "seed"),
    ("presence_penalty", "presencePenalty"),
    ("frequency_penalty", "frequencyPenalty"),
)
_SAMPLING_NAMES = tuple(wire_name for _, wire_name in _SAMPLING)
_get_sampling = attrgetter(*[name for name, _ in _SAMPLING])
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
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
    """Return the sampler's knobs."""
    if config.stop_sequences == []:
        words.add(NO_STOPS)
    return Sampling(
        temperature=number(config.temperature, f"{where}/temperature"),
        top_p=number(config.top_p, f"{where}/topP"),
        top_k=number(config.top_k, f"{where}/topK"),
        max_tokens=whole(config.max_output_tokens, f"{where}/maxOutputTokens"),
        stop=tuple(config.stop_sequences or ()),
        seed=whole(config.seed, f"{where}/seed"),
        presence_penalty=number(config.presence_penalty, f"{where}/presencePenalty"),
        frequency_penalty=number(config.frequency_penalty, f"{where}/frequencyPenalty"),
    )


def number(value: AnyNumber | None, where: str) -> int | float | None:
    """Return a number that may be written as a text."""
    if not isinstance(value, str):
        return value
    found = _NUMBER.fullmatch(value)
    if found is None or not isfinite(float(value)):
        raise Problem("invalid_request", f"not a number: {value[:40]!r}", where=where)
    return float(value) if found[1] or found[2] else int(value)


def whole(value: AnyNumber | None, where: str) -> int | None:
    """Return a whole number that may be written as a text, or with a fraction of zero."""
    read = number(value, where)
    if not isinstance(read, float):
        return read
    if not read.is_integer():
        raise Problem("invalid_request", f"not a whole number: {read}", where=where)
    return int(read)


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
    budget = whole(config.thinking_budget, f"{where}/thinkingBudget")
    if effort is None and budget is None and config.include_thoughts is None:
        return None
    return Thinking(effort=effort, budget=budget, visible=config.include_thoughts)


def read_output(config: GenerationConfig, where: str, leftovers: Leftovers) -> OutputFormat | None:
    """Return the shape the answer must have."""
    mime_type = config.response_mime_type
    openapi = given(config.response_schema)
    schema = given(config.response_json_schema)
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
    sampling = request.sampling
    config: dict[str, Any] = {}
    if sampling is not NOTHING:
        values = _get_sampling(sampling)
        config = {name: value for name, value in zip(_SAMPLING_NAMES, values, strict=True) if value is not None}
    if sampling.stop or NO_STOPS in request.spelling:
        config["stopSequences"] = sampling.stop
    if request.candidates is not None:
        config["candidateCount"] = request.candidates
    if request.output is not None:
        config.update(_write_output(request.output))
    thinking = _write_thinking(request.thinking, request.spelling)
    if thinking is not None:
        config["thinkingConfig"] = thinking
    return config if config or PRESENT in request.spelling else None


def _write_output(output: OutputFormat) -> dict[str, Any]:
    if output.kind == "text":
        return {"responseMimeType": PLAIN}
    written: dict[str, Any] = {"responseMimeType": JSON}
    if output.kind == "json_schema" and output.schema is not None:
        written["responseSchema" if output.openapi else "responseJsonSchema"] = Raw(output.schema)
    return written


def _write_thinking(thinking: Thinking | None, words: frozenset[str]) -> dict[str, Any] | None:
    written: dict[str, Any] = {}
    spelled = next((word[len(LEVEL) :] for word in words if word.startswith(LEVEL)), "") if words else ""
    if thinking is None:
        if spelled == UNSPECIFIED:
            written["thinkingLevel"] = spelled
        return written if written or THINKING_PRESENT in words else None
    if thinking.visible is not None:
        written["includeThoughts"] = thinking.visible
    if thinking.effort is not None:
        written["thinkingLevel"] = spelled if spelled.lower() == thinking.effort else _LEVELS[thinking.effort]
    elif spelled == UNSPECIFIED:
        written["thinkingLevel"] = spelled
    if thinking.budget is not None:
        written["thinkingBudget"] = thinking.budget
    return written if written or THINKING_PRESENT in words else None
