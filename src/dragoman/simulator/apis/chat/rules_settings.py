"""Rules about parameters that depend on one another, and about limits; none of them looks at the model."""

import re
from collections.abc import Iterator

from dragoman.simulator.apis.chat import words
from dragoman.simulator.apis.chat.rules_messages import PROBED
from dragoman.simulator.apis.chat.shape import ChatRequest, JsonObjectAnswer, JsonSchemaAnswer
from dragoman.simulator.apis.chat.shape_parts import TextPart
from dragoman.simulator.rule import Rule, Situation, Violation

_MOST_STOPS = 4
_MOST_PAIRS = 16
_LONGEST_KEY = 64
_LONGEST_VALUE = 512
_LONGEST_FORMAT_NAME = 64
_FORMAT_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_IDENTIFIERS = {"prompt_cache_key": 64, "safety_identifier": 128}


def _check_stop(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if isinstance(body.stop, list) and len(body.stop) > _MOST_STOPS:
        yield Violation(words.long_array("/stop", _MOST_STOPS, len(body.stop)), "/stop")


def _check_metadata(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    pairs = body.metadata or {}
    if len(pairs) > _MOST_PAIRS:
        yield Violation(
            f"Invalid 'metadata': too many properties. Expected an object with at most {_MOST_PAIRS} properties, "
            f"but got an object with {len(pairs)} properties instead.",
            "/metadata",
        )
    for key, value in pairs.items():
        if len(key) > _LONGEST_KEY:
            yield Violation(
                f"Invalid property name in 'metadata': '{key[:3]}...{key[-3:]}' is too long. Expected a string with "
                f"maximum length {_LONGEST_KEY}, but got a string with length {len(key)} instead.",
                "/metadata",
            )
        if len(value) > _LONGEST_VALUE:
            where = f"/metadata/{key}"
            yield Violation(words.long_string(where, _LONGEST_VALUE, len(value)), where)


def _check_identifiers(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for name, longest in _IDENTIFIERS.items():
        value = body.prompt_cache_key if name == "prompt_cache_key" else body.safety_identifier
        if value is not None and len(value) > longest:
            yield Violation(words.long_string(f"/{name}", longest, len(value)), f"/{name}")


def _check_stream_options(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if body.stream_options is not None and not body.stream:
        yield Violation("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "/stream_options")


def _check_top_logprobs(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if body.top_logprobs is not None and not body.logprobs:
        yield Violation("The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.", "/top_logprobs")


def _check_both_limits(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if body.max_tokens is not None and body.max_completion_tokens is not None:
        yield Violation(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", "/max_tokens"
        )


def _check_format_name(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if not isinstance(body.response_format, JsonSchemaAnswer):
        return
    where = "/response_format/json_schema/name"
    name = body.response_format.json_schema.name
    if not name:
        yield Violation(words.empty_string(where), where)
    elif not _FORMAT_NAME.fullmatch(name):
        yield Violation(words.unlike_pattern(where, f"^{_FORMAT_NAME.pattern}$"), where)
    elif len(name) > _LONGEST_FORMAT_NAME:
        yield Violation(words.long_string(where, _LONGEST_FORMAT_NAME, len(name)), where)


def _check_audio(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if "audio" in (body.modalities or ()) and body.audio is None:
        yield Violation(words.missing("/audio"), "/modalities")


def _says_json(body: ChatRequest) -> bool:
    for message in body.messages:
        content = message.content
        texts = (
            [content]
            if isinstance(content, str)
            else [part.text for part in content or () if isinstance(part, TextPart)]
        )
        if any("json" in text.lower() for text in texts):
            return True
    return False


def _check_json_word(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if isinstance(body.response_format, JsonObjectAnswer) and not _says_json(body):
        yield Violation(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
            "/messages",
        )


RULES: tuple[Rule[ChatRequest], ...] = (
    Rule(
        "chat.stop-count",
        "There are at most 4 stop sequences.",
        "wire/openai_chat.md section 1",
        _check_stop,
    ),
    Rule(
        "chat.metadata",
        "Metadata has at most 16 pairs, of keys up to 64 and values up to 512 characters.",
        f"wire/openai_chat.md section 1; {PROBED}",
        _check_metadata,
    ),
    Rule(
        "chat.identifier-length",
        "A cache key has at most 64 characters, a safety identifier 128.",
        "wire/openai_chat.md section 1",
        _check_identifiers,
    ),
    Rule(
        "chat.stream-options-without-stream",
        "`stream_options` is sent with `stream: true` only.",
        "wire/openai_chat.md section 1",
        _check_stream_options,
    ),
    Rule(
        "chat.top-logprobs-without-logprobs",
        "`top_logprobs` is sent with `logprobs: true` only.",
        PROBED,
        _check_top_logprobs,
    ),
    Rule(
        "chat.token-limits",
        "There is one limit of tokens, not two.",
        "reported in public issues",
        _check_both_limits,
    ),
    Rule(
        "chat.response-format-name",
        "The name of a schema has 1 to 64 letters, digits, underscores and dashes.",
        "openai-python 3.49 types: JSONSchema.name",
        _check_format_name,
    ),
    Rule(
        "chat.audio-parameters",
        "A spoken answer needs `audio`, which tells its voice and format.",
        "openai-python 3.49 types: CompletionCreateParams.audio",
        _check_audio,
    ),
)
JSON_RULE: Rule[ChatRequest] = Rule(
    "chat.json-word",
    "With `json_object` the messages say the word JSON.",
    "reported in public issues for years",
    _check_json_word,
)
"""It needs the messages to be in order."""
