"""Rules about parameters: dependencies between them, limits, and support by model."""

from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.chat.body import ChatCompletionsRequest
from dragoman.simulator.apis.chat.rules_messages import PROBED
from dragoman.simulator.apis.declarations import Number
from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.openai.checks import (
    reject_invalid_name,
    reject_over_limit,
    reject_unsupported,
    reject_with,
    reject_without,
)
from dragoman.simulator.apis.openai.models import (
    is_audio_model,
    is_for_completions,
    is_for_responses,
    is_reasoning,
    is_search_model,
    is_thinking,
    when_generation_before,
    when_generation_from,
)
from dragoman.simulator.apis.rule import MODEL_EXISTS, CheckContext, PathCheck, Rule, Violation, is_absent

_LONGEST_KEY = 64
_DEFAULTS: dict[str, Any] = {
    "temperature": 1,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "logprobs": False,
    "top_logprobs": 0,
}
"""Sampling parameters, and the values that are accepted even while a model reasons."""
_SEARCH_REFUSED = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
_CHOICES = Number(int, most=8)


def _check_metadata_names(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    for key in request.get("metadata") or ():
        if len(key) > _LONGEST_KEY:
            yield Violation(
                f"Invalid property name in 'metadata': '{key[:3]}...{key[-3:]}' is too long. Expected a string with "
                f"maximum length {_LONGEST_KEY}, but got a string with length {len(key)} instead.",
                "/metadata",
            )


def _uses_search_model(request: ChatCompletionsRequest) -> bool:
    return is_search_model(request.model)


def _is_thinking(request: ChatCompletionsRequest) -> bool:
    return request.family.own and is_thinking(request, request.get("reasoning_effort"))


def _describe_not_default(where: str, value: Any) -> str:
    member = where[1:]
    if value == _DEFAULTS[member]:
        return ""
    if member != "temperature":
        return words.describe_unsupported(where)
    given = f"'temperature' does not support {value:g} with this model."
    return f"Unsupported value: {given} Only the default (1) value is supported."


def _check_efforts(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    effort, efforts = request.get("reasoning_effort"), request.family.efforts
    if effort is None or not request.family.own:
        return
    if not efforts:
        yield Violation("Unrecognized request argument supplied: reasoning_effort", "/reasoning_effort")
    elif effort not in efforts:
        yield Violation(
            f"Unsupported value: 'reasoning_effort' does not support '{effort}' with this model. "
            f"Supported values are: {words.join_quoted(efforts)}.",
            "/reasoning_effort",
        )


FIRST_RULES: tuple[Rule[ChatCompletionsRequest], ...] = (
    Rule(
        "chat.model-unknown",
        MODEL_EXISTS,
        "recorded: openai_chat/newrelic-python-agent-0010",
        PathCheck(
            "/model",
            lambda _, model: f"The model `{model}` does not exist or you do not have access to it.",
            is_absent,
            steps=0,
            status=404,
        ),
    ),
    Rule(
        "chat.model-endpoint",
        "Completion models are not served here, nor are the pro, codex and research models of the Responses API.",
        "recorded: openai_chat/dd-trace-js-0017; the latter: reported in public issues",
        PathCheck(
            "/model",
            "This is not a chat model and thus not supported in the v1/chat/completions endpoint. "
            "Did you mean to use v1/completions?",
            is_for_completions,
            status=404,
        ),
        PathCheck(
            "/model",
            "This model is only supported in v1/responses and not in v1/chat/completions.",
            is_for_responses,
            status=404,
        ),
    ),
)
"""OpenAI checks the model before anything else."""
RULES: tuple[Rule[ChatCompletionsRequest], ...] = (
    Rule(
        "chat.stop-count",
        "There are at most 4 stop sequences.",
        "wire/openai_chat.md section 1",
        reject_over_limit("/stop", items=4),
    ),
    Rule(
        "chat.metadata",
        "Metadata has at most 16 pairs, of keys up to 64 and values up to 512 characters.",
        f"wire/openai_chat.md section 1; {PROBED}",
        reject_over_limit("/metadata", members=16),
        _check_metadata_names,
        reject_over_limit("/metadata/*", characters=512),
    ),
    Rule(
        "chat.identifier-length",
        "A cache key has at most 64 characters, a safety identifier 128.",
        "wire/openai_chat.md section 1",
        reject_over_limit("/prompt_cache_key", characters=64),
        reject_over_limit("/safety_identifier", characters=128),
    ),
    Rule(
        "chat.stream-options-without-stream",
        "`stream_options` requires `stream: true`.",
        "wire/openai_chat.md section 1",
        reject_without(
            "/stream_options", "/stream", "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        ),
    ),
    Rule(
        "chat.top-logprobs-without-logprobs",
        "`top_logprobs` requires `logprobs: true`.",
        PROBED,
        reject_without(
            "/top_logprobs", "/logprobs", "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled."
        ),
    ),
    Rule(
        "chat.token-limits",
        "`max_tokens` and `max_completion_tokens` are not both sent.",
        "reported in public issues",
        reject_with(
            "/max_tokens",
            "/max_completion_tokens",
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
        ),
    ),
    Rule(
        "chat.response-format-name",
        "The name of a schema has 1 to 64 letters, digits, underscores and dashes.",
        "openai-python 3.49 types: JSONSchema.name",
        reject_invalid_name("/response_format/json_schema/name"),
    ),
    Rule(
        "chat.audio-parameters",
        "Audio output requires `audio` with its voice and format.",
        "openai-python 3.49 types: CompletionCreateParams.audio",
        PathCheck(
            "/modalities",
            words.describe_missing("/audio"),
            lambda modalities: "audio" in modalities,
            lambda request: request.get("audio") is None,
        ),
    ),
    Rule(
        "chat.max-tokens-model",
        "Reasoning models accept `max_completion_tokens`, not `max_tokens`.",
        "recorded: openai_chat/ai-gateway-0003",
        reject_unsupported("/max_tokens", is_reasoning, " Use 'max_completion_tokens' instead."),
    ),
    Rule(
        "chat.stop-model",
        "Reasoning models accept no stop sequences.",
        "recorded: openai_chat/crewai-0048",
        reject_unsupported("/stop", is_reasoning),
    ),
    Rule(
        "chat.bias-model",
        "Reasoning models accept neither `logit_bias` nor `prediction`.",
        PROBED,
        reject_unsupported("/logit_bias", is_reasoning),
        reject_unsupported("/prediction", is_reasoning),
    ),
    Rule(
        "chat.reasoning-effort",
        "`reasoning_effort` is one of the values the model supports; models that do not reason support none.",
        f"wire/openai_chat.md sections 0 and 1; {PROBED}; models that are not OpenAI's accept any: recorded: "
        "openai_chat/rig-0039",
        _check_efforts,
    ),
    Rule(
        "chat.sampling-model",
        "While a model reasons, it accepts only the defaults of temperature, top_p, penalties and log probabilities.",
        f"wire/openai_chat.md section 1; {PROBED}; models that are not OpenAI's accept any: recorded: "
        "openai_chat/ruby-llm-0002",
        *(PathCheck(f"/{member}", _describe_not_default, when=_is_thinking) for member in _DEFAULTS),
    ),
    Rule(
        "chat.web-search-model",
        "Only search models accept `web_search_options`.",
        "recorded: openai_chat/pydantic-ai-0099",
        PathCheck(
            "/web_search_options",
            "Web search options not supported with this model.",
            when=lambda request: not _uses_search_model(request) and when_generation_before(5, 0)(request),
        ),
        PathCheck("/web_search_options", words.describe_unknown, when=lambda request: not _uses_search_model(request)),
    ),
    Rule(
        "chat.search-model-arguments",
        "Search models accept no sampling parameters.",
        "reported in public issues for temperature and presence_penalty; the others by analogy",
        *(
            PathCheck(f"/{member}", f"Model incompatible request argument supplied: {member}", when=_uses_search_model)
            for member in _SEARCH_REFUSED
        ),
    ),
    Rule(
        "chat.audio-model",
        "Only audio models produce audio.",
        f"wire/openai_chat.md section 1; {PROBED}",
        PathCheck(
            "/modalities",
            words.describe_unknown,
            lambda modalities: "audio" in modalities,
            lambda request: not is_audio_model(request.model),
        ),
        PathCheck(
            "/audio",
            words.describe_unknown,
            when=lambda request: not is_audio_model(request.model) and when_generation_from(5, 6)(request),
        ),
    ),
    Rule(
        "chat.response-format-model",
        "A JSON schema for the answer is supported since GPT-4o of August 2024.",
        "reported in public issues",
        PathCheck(
            "/response_format/json_schema",
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. Learn more "
            "about supported models at the Structured Outputs guide: "
            "https://platform.openai.com/docs/guides/structured-outputs",
            when=lambda request: not request.family.structured,
            steps=1,
        ),
    ),
    Rule(
        "chat.choices-model",
        "GPT-5.6 and later return at most 8 choices.",
        PROBED,
        PathCheck(
            "/n",
            lambda where, value: words.describe_out_of_bounds(where, value, _CHOICES),
            lambda value: value > _CHOICES.most,
            when_generation_from(5, 6),
        ),
    ),
    Rule(
        "chat.top-logprobs-model",
        "GPT-5.6 and later return at most 5 alternatives of a token.",
        PROBED,
        PathCheck(
            "/top_logprobs",
            "Invalid value for 'top_logprobs': must be less than or equal to 5.",
            lambda value: value > 5,
            when_generation_from(5, 6),
        ),
    ),
    Rule(
        "chat.cache-retention-model",
        "GPT-5.5 and later do not support `in_memory` cache retention.",
        f"openai-python 3.49 types: CompletionCreateParams.prompt_cache_retention; {PROBED}",
        PathCheck(
            "/prompt_cache_retention",
            "This model is compatible only with 24h extended prompt caching",
            lambda kept: kept == "in_memory",
            when_generation_from(5, 5),
        ),
    ),
)
