"""Rules about a request as a whole and its parameters, and about support by model."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.openai.checks import describe_name_problem, reject_invalid_name, reject_without
from dragoman.simulator.apis.openai.models import is_thinking as thinks_so_hard
from dragoman.simulator.apis.openai.models import when_generation_before, when_generation_from
from dragoman.simulator.apis.openai.schemas import find_schema_violations
from dragoman.simulator.apis.responses.body import ResponsesRequest
from dragoman.simulator.apis.responses.rules_items import find_parts
from dragoman.simulator.apis.responses.rules_tools import find_client_tools
from dragoman.simulator.apis.responses.words import describe_unsupported_parameter, describe_unsupported_value
from dragoman.simulator.apis.rule import MODEL_EXISTS, CheckContext, Json, PathCheck, Rule, Violation, is_absent

_MEASUREMENT = "public measurement of 2026-08-30 (gpt-5.6-terra)"
_NO_LOGPROBS = "logprobs are not supported with reasoning models."
_SAMPLING = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
"""Sampling parameters, and the values that are accepted even while a model reasons."""


def is_thinking(request: ResponsesRequest) -> bool:
    """Return whether the model reasons before it answers; the last configured effort counts."""
    effort = request.object("reasoning").get("effort")
    for item in request.items:
        if item["type"] == "configuration_update" and item.get("reasoning"):
            effort = item["reasoning"].get("effort") or effort
    return thinks_so_hard(request, effort)


def _is_openai_thinking(request: ResponsesRequest) -> bool:
    return request.family.own and is_thinking(request)


def _does_not_reason(request: ResponsesRequest) -> bool:
    return not request.family.reasons


def _check_model_present(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    if "model" not in request.document and request.get("prompt") is None:
        yield Violation(words.describe_missing("/model"), "/model")


def _check_input_present(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    if not request.get("input") and not request.continues and not request.conversation:
        yield Violation(
            "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."
        )


def _check_state_ids(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    previous = request.get("previous_response_id")
    for member, value, prefix in (
        ("previous_response_id", previous, "resp"),
        ("conversation", request.conversation, "conv"),
    ):
        if value and not value.startswith(prefix):
            yield Violation(f"Invalid '{member}': '{value}'. Expected an ID that begins with '{prefix}'.", f"/{member}")


def _check_json_word(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    wants = _read_format(request).get("type") == "json_object" and not request.continues
    if wants and not any("json" in text.lower() for text in _iterate_texts(request)):
        yield Violation(
            "Response input messages must contain the word 'json' in some form to use 'text.format' of type "
            "'json_object'.",
            "/input",
        )


def _iterate_texts(request: ResponsesRequest) -> Iterator[str]:
    for path in ("/input", "/input/*/content", "/input/*/content/*/text"):
        yield from (text for _, text in request.find(path) if isinstance(text, str))


def _check_format_schema(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    answer_format = _read_format(request)
    for complaint in (
        find_schema_violations(answer_format["schema"], strict=bool(answer_format.get("strict")))
        if "schema" in answer_format
        else ()
    ):
        yield Violation(complaint.describe(f"response_format '{answer_format['name']}'"), "/text/format/schema")


def _read_format(request: ResponsesRequest) -> Json:
    return request.object("text").get("format") or {}


def _check_effort(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    effort, efforts = request.object("reasoning").get("effort"), request.family.efforts
    where = "/reasoning/effort"
    if effort is not None and not efforts:
        yield Violation(describe_unsupported_parameter(where), where)
    elif effort is not None and effort not in efforts:
        yield Violation(describe_unsupported_value(effort, request.model, efforts), where)


def _check_verbosity(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    verbosity = request.object("text").get("verbosity") or "medium"
    if verbosity != "medium" and request.family.generation < (5, 0):
        yield Violation(describe_unsupported_value(verbosity, request.model, ("medium",)), "/text/verbosity")


def _check_cache_breakpoints(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for pointer, part in find_parts(request) if request.family.generation < (5, 6) else ():
        where = f"{pointer}/prompt_cache_breakpoint"
        if part.get("prompt_cache_breakpoint") is not None:
            yield Violation(describe_unsupported_parameter(where), where)


def _check_custom_tools(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for where, tool, _namespace in find_client_tools(request) if request.family.generation < (5, 0) else ():
        if tool["type"] == "custom":
            message = "Invalid value: 'custom'. Custom tools are not supported with this model."
            yield Violation(message, f"{where}/type")


def _describe_not_default(where: str, value: Any) -> str:
    return "" if value == _SAMPLING[where[1:]] else describe_unsupported_parameter(where)


RULES: tuple[Rule[ResponsesRequest], ...] = (
    Rule(
        "responses.model",
        "`model` is present, unless a stored prompt names a model.",
        _MEASUREMENT,
        _check_model_present,
    ),
    Rule(
        "responses.model-found",
        MODEL_EXISTS,
        "recorded: openai_responses/mirascope-0003",
        PathCheck(
            "/model",
            lambda _, model: f"The requested model '{model}' does not exist.",
            lambda model: not model or is_absent(model),
        ),
    ),
    Rule(
        "responses.input",
        "The request has input, or continues an earlier response, a conversation or a prompt.",
        "public reports of the vendor's error text",
        _check_input_present,
    ),
    Rule(
        "responses.one-state",
        "`previous_response_id` and `conversation` are not both sent.",
        f"wire/openai_responses.md section 1; {_MEASUREMENT}",
        PathCheck(
            "/previous_response_id",
            "Mutually exclusive parameters: ''. Ensure you are only providing one of: 'pre..._id' or 'conversation'.",
            bool,
            lambda request: bool(request.get("conversation")),
            steps=0,
        ),
    ),
    Rule(
        "responses.state-id",
        "Ids of responses begin with `resp`, ids of conversations with `conv`.",
        "wire/openai_responses.md section 9",
        _check_state_ids,
    ),
    Rule(
        "responses.background-stored",
        "A background response is stored.",
        "wire/openai_responses.md section 1",
        PathCheck(
            "/background",
            "Background mode requires 'store' to be true.",
            bool,
            lambda request: not request.is_stored,
        ),
    ),
    Rule(
        "responses.stream-options",
        "`stream_options` requires `stream: true`.",
        "openai-python 3.49, ResponseCreateParams.stream_options",
        reject_without(
            "/stream_options", "/stream", "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        ),
    ),
    Rule(
        "responses.json-word",
        "With `json_object` the input contains the word json.",
        "public reports of the vendor's error text; recorded: all json_object requests contain it in a message",
        _check_json_word,
    ),
    Rule(
        "responses.format-name",
        "The name of a format is 1 to 64 letters, digits, underscores and dashes.",
        "wire/openai_responses.md section 1 (as for Chat)",
        reject_invalid_name("/text/format/name", partial(describe_name_problem, length_first=True)),
    ),
    Rule(
        "responses.format-schema",
        "The schema of an answer is of type object, and if strict, within the strict subset.",
        "wire/gemini_schema.md section 6",
        _check_format_schema,
    ),
    Rule(
        "responses.cache-retention",
        "GPT-5.5 and later do not support `in_memory` cache retention.",
        f"openai-python 3.49, ResponseCreateParams.prompt_cache_retention; {_MEASUREMENT}",
        PathCheck(
            "/prompt_cache_retention",
            "This model is compatible only with 24h extended prompt caching",
            lambda kept: kept == "in_memory",
            when_generation_from(5, 5),
        ),
    ),
    Rule(
        "responses.cache-options",
        "Prompt cache options and breakpoints need gpt-5.6 or later.",
        "wire/openai_responses.md section 1; wire/openai_chat.md section 2 (for the breakpoints)",
        PathCheck("/prompt_cache_options", describe_unsupported_parameter, when=when_generation_before(5, 6)),
        _check_cache_breakpoints,
    ),
)
MODEL_RULES: tuple[Rule[ResponsesRequest], ...] = (
    Rule(
        "responses.effort",
        "The effort is one that the model supports; models that do not reason support none.",
        f"{_MEASUREMENT}; wire/openai_chat.md section 0; recorded defaults of each model",
        _check_effort,
    ),
    Rule(
        "responses.summary",
        "Only reasoning models return reasoning summaries.",
        "no source: by analogy with the effort",
        PathCheck("/reasoning/summary", describe_unsupported_parameter, when=_does_not_reason),
        PathCheck("/reasoning/generate_summary", describe_unsupported_parameter, when=_does_not_reason),
    ),
    Rule(
        "responses.sampling",
        "A model that reasons accepts only the defaults of temperature, top_p and penalties.",
        f"wire/openai_responses.md section 1; {_MEASUREMENT}; models that are not OpenAI's accept any: recorded: "
        "openai_responses/ruby-llm-0003, openai_responses/rig-0081",
        *(PathCheck(f"/{member}", _describe_not_default, when=_is_openai_thinking) for member in _SAMPLING),
    ),
    Rule(
        "responses.logprobs",
        "A model that reasons returns no log probabilities.",
        f"wire/openai_responses.md section 1; {_MEASUREMENT}",
        PathCheck("/include", _NO_LOGPROBS, lambda names: "message.output_text.logprobs" in names, is_thinking),
        PathCheck("/top_logprobs", _NO_LOGPROBS, bool, is_thinking),
    ),
    Rule(
        "responses.include-encrypted",
        "Only reasoning models have encrypted content.",
        "public reports of the vendor's error text",
        PathCheck(
            "/include",
            "Encrypted content is not supported with this model.",
            lambda names: "reasoning.encrypted_content" in names,
            _does_not_reason,
        ),
    ),
    Rule(
        "responses.generate-summary",
        "The parameter is `summary`; models before gpt-5.6 also accept its alias `generate_summary`.",
        f"wire/openai_responses.md section 1 (an alias); {_MEASUREMENT} (unknown)",
        PathCheck("/reasoning/generate_summary", words.describe_unknown, when=when_generation_from(5, 6)),
    ),
    Rule(
        "responses.verbosity",
        "Models before gpt-5 support only the verbosity `medium`.",
        "no source: reported, without a recording",
        _check_verbosity,
    ),
    Rule(
        "responses.custom-tool",
        "Custom tools are supported since gpt-5.",
        "wire/openai_chat.md section 3 (the same tools); error text: no source",
        _check_custom_tools,
    ),
)
