"""generationConfig to and from the core: sampling, thinking, the shape of the answer.

Rules: what the core has no word for (`text/x.enum`, a schema without its media type, an unknown level) is noted as
unread and so comes home unchanged. Empty objects and a level in lower case are remembered as spelling words. A number
may be a text, and a whole one may have a fraction of zero: proto JSON takes both.
"""

import re
from math import isfinite

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.core.request import EFFORTS, Effort, OutputFormat, Request, Sampling, Thinking
from dragoman.dialects.gemini.wire import AnyNumber, GenerationConfig, Leftovers, ThinkingConfig
from dragoman.wire import json
from dragoman.wire.shape import present

PRESENT = "generationConfig"
THINKING_PRESENT = "thinkingConfig"
NO_STOPS = "stopSequences"
LEVEL = "thinkingLevel:"
UNSPECIFIED = "THINKING_LEVEL_UNSPECIFIED"
JSON = "application/json"
PLAIN = "text/plain"
NOTHING = Sampling()
_NO_CONFIG = GenerationConfig()
_NO_THINKING = ThinkingConfig()
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


def write_config(request: Request) -> GenerationConfig | None:
    """Return generationConfig, None when there is nothing to say."""
    sampling, words = request.sampling, request.spelling
    config = GenerationConfig(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        max_output_tokens=sampling.max_tokens,
        seed=sampling.seed,
        presence_penalty=sampling.presence_penalty,
        frequency_penalty=sampling.frequency_penalty,
        candidate_count=request.candidates,
    )
    if sampling.stop or NO_STOPS in words:
        config.stop_sequences = [*sampling.stop]
    if request.output is not None:
        _write_output(request.output, config)
    if request.thinking is not None or words:
        config.thinking_config = _write_thinking(request.thinking or Thinking(), words)
    return config if config != _NO_CONFIG or PRESENT in words else None


def _write_output(output: OutputFormat, config: GenerationConfig) -> None:
    config.response_mime_type = PLAIN if output.kind == "text" else JSON
    if output.kind == "json_schema" and output.schema is not None:
        if output.openapi:
            config.response_schema = Raw(output.schema)
        else:
            config.response_json_schema = Raw(output.schema)


def _write_thinking(thinking: Thinking, words: frozenset[str]) -> ThinkingConfig | None:
    written = ThinkingConfig(include_thoughts=thinking.visible, thinking_budget=thinking.budget)
    spelled = next((word[len(LEVEL) :] for word in words if word.startswith(LEVEL)), "")
    if thinking.effort is not None:
        written.thinking_level = spelled if spelled.lower() == thinking.effort else _LEVELS[thinking.effort]
    elif spelled == UNSPECIFIED:
        written.thinking_level = spelled
    return written if written != _NO_THINKING or THINKING_PRESENT in words else None
