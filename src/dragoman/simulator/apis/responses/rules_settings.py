"""Rules about a request as a whole and its parameters, and about what only some models take."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.openai.checks import name, name_fault, requires
from dragoman.simulator.apis.openai.models import before, since
from dragoman.simulator.apis.openai.models import thinks as thinks_so_hard
from dragoman.simulator.apis.openai.schemas import complaints
from dragoman.simulator.apis.responses.body import ResponsesRequest
from dragoman.simulator.apis.responses.rules_items import shown_parts
from dragoman.simulator.apis.responses.rules_tools import clients_tools
from dragoman.simulator.apis.responses.words import not_supported, unsupported
from dragoman.simulator.rule import MODEL_EXISTS, Json, Refuse, Rule, Situation, Violation, is_absent

_MEASURED = "public measurement of 2026-08-30 (gpt-5.6-terra)"
_NO_LOGPROBS = "logprobs are not supported with reasoning models."
_SAMPLING = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
"""Parameters of sampling, and the values that are let pass even while a model thinks."""


def thinks(request: ResponsesRequest) -> bool:
    """Tell whether the model thinks before it answers; the last word on its effort holds."""
    effort = request.object("reasoning").get("effort")
    for item in request.items:
        if item["type"] == "configuration_update" and item.get("reasoning"):
            effort = item["reasoning"].get("effort") or effort
    return thinks_so_hard(request, effort)


def _own_thinks(request: ResponsesRequest) -> bool:
    return request.family.own and thinks(request)


def _does_not_reason(request: ResponsesRequest) -> bool:
    return not request.family.reasons


def _no_model(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    if "model" not in request.document and request.get("prompt") is None:
        yield Violation(words.missing("/model"), "/model")


def _no_input(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    if not request.get("input") and not request.continues and not request.conversation:
        yield Violation(
            "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."
        )


def _state_ids(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    previous = request.get("previous_response_id")
    for member, value, prefix in (
        ("previous_response_id", previous, "resp"),
        ("conversation", request.conversation, "conv"),
    ):
        if value and not value.startswith(prefix):
            yield Violation(f"Invalid '{member}': '{value}'. Expected an ID that begins with '{prefix}'.", f"/{member}")


def _json_word(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    wants = _format(request).get("type") == "json_object" and not request.continues
    if wants and not any("json" in text.lower() for text in _texts(request)):
        yield Violation(
            "Response input messages must contain the word 'json' in some form to use 'text.format' of type "
            "'json_object'.",
            "/input",
        )


def _texts(request: ResponsesRequest) -> Iterator[str]:
    for path in ("/input", "/input/*/content", "/input/*/content/*/text"):
        yield from (text for _, text in request.find(path) if isinstance(text, str))


def _format_schema(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    asked = _format(request)
    for complaint in complaints(asked["schema"], strict=bool(asked.get("strict"))) if "schema" in asked else ():
        yield Violation(complaint.about(f"response_format '{asked['name']}'"), "/text/format/schema")


def _format(request: ResponsesRequest) -> Json:
    return request.object("text").get("format") or {}


def _efforts(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    effort, efforts = request.object("reasoning").get("effort"), request.family.efforts
    where = "/reasoning/effort"
    if effort is not None and not efforts:
        yield Violation(unsupported(where), where)
    elif effort is not None and effort not in efforts:
        yield Violation(not_supported(effort, request.model, efforts), where)


def _verbosity(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    verbosity = request.object("text").get("verbosity") or "medium"
    if verbosity != "medium" and request.family.generation < (5, 0):
        yield Violation(not_supported(verbosity, request.model, ("medium",)), "/text/verbosity")


def _breakpoints(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    for pointer, part in shown_parts(request) if request.family.generation < (5, 6) else ():
        where = f"{pointer}/prompt_cache_breakpoint"
        if part.get("prompt_cache_breakpoint") is not None:
            yield Violation(unsupported(where), where)


def _custom_tools(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    for where, tool, _namespace in clients_tools(request) if request.family.generation < (5, 0) else ():
        if tool["type"] == "custom":
            message = "Invalid value: 'custom'. Custom tools are not supported with this model."
            yield Violation(message, f"{where}/type")


def _not_default(where: str, value: Any) -> str:
    return "" if value == _SAMPLING[where[1:]] else unsupported(where)


RULES: tuple[Rule[ResponsesRequest], ...] = (
    Rule("responses.model", "A model is named, unless a stored prompt names one.", _MEASURED, _no_model),
    Rule(
        "responses.model-found",
        MODEL_EXISTS,
        "recorded: openai_responses/mirascope-0003",
        Refuse(
            "/model",
            lambda _, model: f"The requested model '{model}' does not exist.",
            lambda model: not model or is_absent(model),
        ),
    ),
    Rule(
        "responses.input",
        "There is something to answer: input, an earlier response, a conversation or a prompt.",
        "public reports of the vendor's words",
        _no_input,
    ),
    Rule(
        "responses.one-state",
        "An earlier response and a conversation are not both continued.",
        f"wire/openai_responses.md section 1; {_MEASURED}",
        Refuse(
            "/previous_response_id",
            "Mutually exclusive parameters: ''. Ensure you are only providing one of: 'pre..._id' or 'conversation'.",
            bool,
            lambda request: bool(request.get("conversation")),
            steps=0,
        ),
    ),
    Rule(
        "responses.state-id",
        "Ids of responses begin with resp, of conversations with conv.",
        "wire/openai_responses.md section 9",
        _state_ids,
    ),
    Rule(
        "responses.background-stored",
        "What runs in the background is stored.",
        "wire/openai_responses.md section 1",
        Refuse(
            "/background",
            "Background mode requires 'store' to be true.",
            bool,
            lambda request: not request.is_stored,
        ),
    ),
    Rule(
        "responses.stream-options",
        "Options of a stream come with a stream.",
        "openai-python 3.49, ResponseCreateParams.stream_options",
        requires(
            "/stream_options", "/stream", "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        ),
    ),
    Rule(
        "responses.json-word",
        "Who wants a JSON object says the word json in the input.",
        "public reports of the vendor's words; recorded: all json_object requests say it in a message",
        _json_word,
    ),
    Rule(
        "responses.format-name",
        "The name of a format is 1 to 64 letters, digits, underscores and dashes.",
        "wire/openai_responses.md section 1 (as for Chat)",
        name("/text/format/name", partial(name_fault, length_first=True)),
    ),
    Rule(
        "responses.format-schema",
        "The schema of an answer is an object's, and if strict within the strict subset.",
        "wire/gemini_schema.md section 6",
        _format_schema,
    ),
    Rule(
        "responses.cache-retention",
        "From gpt-5.5 on prompts are cached for 24 hours or not at all.",
        f"openai-python 3.49, ResponseCreateParams.prompt_cache_retention; {_MEASURED}",
        Refuse(
            "/prompt_cache_retention",
            "This model is compatible only with 24h extended prompt caching",
            lambda kept: kept == "in_memory",
            since(5, 5),
        ),
    ),
    Rule(
        "responses.cache-options",
        "Options of the prompt cache, and marks for it, need gpt-5.6 or later.",
        "wire/openai_responses.md section 1; wire/openai_chat.md section 2 (for the marks)",
        Refuse("/prompt_cache_options", unsupported, when=before(5, 6)),
        _breakpoints,
    ),
)
MODEL_RULES: tuple[Rule[ResponsesRequest], ...] = (
    Rule(
        "responses.effort",
        "The effort is one the model knows; models that do not think know none.",
        f"{_MEASURED}; wire/openai_chat.md section 0; recorded defaults of each model",
        _efforts,
    ),
    Rule(
        "responses.summary",
        "Only models that think tell of their thoughts.",
        "no source: by analogy with the effort",
        Refuse("/reasoning/summary", unsupported, when=_does_not_reason),
        Refuse("/reasoning/generate_summary", unsupported, when=_does_not_reason),
    ),
    Rule(
        "responses.sampling",
        "A model that thinks takes no other temperature, top_p or penalties than the defaults.",
        f"wire/openai_responses.md section 1; {_MEASURED}; models that are not OpenAI's take any: recorded: "
        "openai_responses/ruby-llm-0003, openai_responses/rig-0081",
        *(Refuse(f"/{member}", _not_default, when=_own_thinks) for member in _SAMPLING),
    ),
    Rule(
        "responses.logprobs",
        "A model that thinks tells no probabilities.",
        f"wire/openai_responses.md section 1; {_MEASURED}",
        Refuse("/include", _NO_LOGPROBS, lambda names: "message.output_text.logprobs" in names, thinks),
        Refuse("/top_logprobs", _NO_LOGPROBS, bool, thinks),
    ),
    Rule(
        "responses.include-encrypted",
        "Only models that think have encrypted content.",
        "public reports of the vendor's words",
        Refuse(
            "/include",
            "Encrypted content is not supported with this model.",
            lambda names: "reasoning.encrypted_content" in names,
            _does_not_reason,
        ),
    ),
    Rule(
        "responses.generate-summary",
        "What tells of thoughts is called summary; models before gpt-5.6 also know it as generate_summary.",
        f"wire/openai_responses.md section 1 (an alias); {_MEASURED} (unknown)",
        Refuse("/reasoning/generate_summary", words.unknown, when=since(5, 6)),
    ),
    Rule(
        "responses.verbosity",
        "Models before gpt-5 know one verbosity.",
        "no source: reported, without a recording",
        _verbosity,
    ),
    Rule(
        "responses.custom-tool",
        "Custom tools exist since gpt-5.",
        "wire/openai_chat.md section 3 (the same tools); the words: no source",
        _custom_tools,
    ),
)
