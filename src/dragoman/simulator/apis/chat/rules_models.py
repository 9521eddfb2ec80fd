"""Rules about what a model takes: parameters that reasoning models refuse, and what only some models can do."""

from collections.abc import Callable, Iterator
from typing import Any

from dragoman.simulator.absent import SAYS, is_absent
from dragoman.simulator.apis.chat import models, words
from dragoman.simulator.apis.chat.models import effort_of, family_of
from dragoman.simulator.apis.chat.rules_messages import PROBED
from dragoman.simulator.apis.chat.shape import ChatRequest, JsonSchemaAnswer
from dragoman.simulator.rule import Rule, Situation, Violation

_SEARCH_REFUSED = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
_DEFAULTS: dict[str, Any] = {
    "temperature": 1,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "logprobs": False,
    "top_logprobs": 0,
}
"""Sampling parameters, and the values that are let pass even while a model reasons."""


def _check_exists(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if is_absent(body.model):
        message = f"The model `{body.model}` does not exist or you do not have access to it."
        yield Violation(message, "", 404)


def _check_for_chat(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if models.is_for_completions(body.model):
        yield Violation(
            "This is not a chat model and thus not supported in the v1/chat/completions endpoint. "
            "Did you mean to use v1/completions?",
            "/model",
            404,
        )
    if models.is_for_responses(body.model):
        yield Violation("This model is only supported in v1/responses and not in v1/chat/completions.", "/model", 404)


def _check_max_tokens(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if body.max_tokens is not None and family_of(body.model).reasons:
        yield Violation(f"{words.unsupported('max_tokens')} Use 'max_completion_tokens' instead.", "/max_tokens")


def _check_stop(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if body.stop and family_of(body.model).reasons:
        yield Violation(words.unsupported("stop"), "/stop")


def _check_fixed(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if not family_of(body.model).reasons:
        return
    for name, value in (("logit_bias", body.logit_bias), ("prediction", body.prediction)):
        if value:
            yield Violation(words.unsupported(name), f"/{name}")


def _sampling(body: ChatRequest) -> Iterator[tuple[str, Any]]:
    for name in _DEFAULTS:
        value = getattr(body, name)
        if value is not None:
            yield name, value


def _check_sampling(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if effort_of(body.model, body.reasoning_effort) == "none":
        return
    for name, value in _sampling(body):
        if value == _DEFAULTS[name]:
            continue
        if name == "temperature":
            message = (
                f"Unsupported value: 'temperature' does not support {value:g} with this model. "
                "Only the default (1) value is supported."
            )
        else:
            message = words.unsupported(name)
        yield Violation(message, f"/{name}")


def _check_effort(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    family = family_of(body.model)
    effort = body.reasoning_effort
    if effort is None:
        return
    if not family.reasons:
        yield Violation("Unrecognized request argument supplied: reasoning_effort", "/reasoning_effort")
    elif effort not in family.efforts:
        yield Violation(
            f"Unsupported value: 'reasoning_effort' does not support '{effort}' with this model. "
            f"Supported values are: {words.listed(family.efforts)}.",
            "/reasoning_effort",
        )


def _check_search(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if body.web_search_options is None or models.is_search_model(body.model):
        return
    old = family_of(body.model).generation < (5, 0)
    message = "Web search options not supported with this model." if old else words.unknown("/web_search_options")
    yield Violation(message, "/web_search_options")


def _check_search_arguments(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if not models.is_search_model(body.model):
        return
    for name, _value in _sampling(body):
        if name in _SEARCH_REFUSED:
            yield Violation(f"Model incompatible request argument supplied: {name}", f"/{name}")


def _check_audio(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if models.is_audio_model(body.model):
        return
    if "audio" in (body.modalities or ()):
        yield Violation(words.unknown("/modalities"), "/modalities")
    if body.audio is not None and family_of(body.model).generation >= (5, 6):
        yield Violation(words.unknown("/audio"), "/audio")


def _check_structured(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if isinstance(body.response_format, JsonSchemaAnswer) and not family_of(body.model).structured:
        yield Violation(
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. Learn more "
            "about supported models at the Structured Outputs guide: "
            "https://platform.openai.com/docs/guides/structured-outputs",
            "/response_format",
        )


def _check_choices(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    most = 8
    if body.n is not None and body.n > most and family_of(body.model).generation >= (5, 6):
        yield Violation(
            f"Invalid 'n': integer above maximum value. Expected a value <= {most}, but got {body.n} instead.", "/n"
        )


def _check_top_logprobs(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    most = 5
    if (body.top_logprobs or 0) > most and family_of(body.model).generation >= (5, 6):
        yield Violation(f"Invalid value for 'top_logprobs': must be less than or equal to {most}.", "/top_logprobs")


def _check_retention(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if body.prompt_cache_retention == "in_memory" and family_of(body.model).generation >= (5, 5):
        yield Violation("This model is compatible only with 24h extended prompt caching", "/prompt_cache_retention")


Check = Callable[[ChatRequest, Situation], Iterator[Violation]]
EXISTENCE_RULES: tuple[Rule[ChatRequest], ...] = (
    Rule(
        "chat.model-unknown",
        SAYS,
        "recorded: openai_chat/newrelic-python-agent-0010",
        _check_exists,
    ),
    Rule(
        "chat.model-endpoint",
        "Completion models are not served here, nor are the pro, codex and research models.",
        "recorded: openai_chat/dd-trace-js-0017; models of the Responses API: reported in public issues",
        _check_for_chat,
    ),
)
"""OpenAI looks for the model before anything else."""
RULES: tuple[Rule[ChatRequest], ...] = (
    Rule(
        "chat.max-tokens-model",
        "Reasoning models take `max_completion_tokens`, not `max_tokens`.",
        "recorded: openai_chat/ai-gateway-0003",
        _check_max_tokens,
    ),
    Rule(
        "chat.stop-model",
        "Reasoning models take no stop sequences.",
        "recorded: openai_chat/crewai-0048",
        _check_stop,
    ),
    Rule(
        "chat.bias-model",
        "Reasoning models take neither `logit_bias` nor `prediction`.",
        PROBED,
        _check_fixed,
    ),
    Rule(
        "chat.reasoning-effort",
        "`reasoning_effort` is one of the words the model knows; models that do not reason know none.",
        f"wire/openai_chat.md sections 0 and 1; {PROBED}",
        _check_effort,
    ),
    Rule(
        "chat.sampling-model",
        "While a model reasons, it takes no temperature, top_p, penalties and log probabilities but the default.",
        f"wire/openai_chat.md section 1; {PROBED}",
        _check_sampling,
    ),
    Rule(
        "chat.web-search-model",
        "Only search models take `web_search_options`.",
        "recorded: openai_chat/pydantic-ai-0099",
        _check_search,
    ),
    Rule(
        "chat.search-model-arguments",
        "Search models take no sampling parameters.",
        "reported in public issues for temperature and presence_penalty; the others by analogy",
        _check_search_arguments,
    ),
    Rule(
        "chat.audio-model",
        "Only audio models speak.",
        f"wire/openai_chat.md section 1; {PROBED}",
        _check_audio,
    ),
    Rule(
        "chat.response-format-model",
        "A schema for the answer is taken since GPT-4o of August 2024.",
        "reported in public issues",
        _check_structured,
    ),
    Rule(
        "chat.choices-model",
        "GPT-5.6 and later give at most 8 choices.",
        PROBED,
        _check_choices,
    ),
    Rule(
        "chat.top-logprobs-model",
        "GPT-5.6 and later tell at most 5 alternatives of a token.",
        PROBED,
        _check_top_logprobs,
    ),
    Rule(
        "chat.cache-retention-model",
        "GPT-5.5 and later do not keep prefixes in memory only.",
        f"openai-python 3.49 types: CompletionCreateParams.prompt_cache_retention; {PROBED}",
        _check_retention,
    ),
)
