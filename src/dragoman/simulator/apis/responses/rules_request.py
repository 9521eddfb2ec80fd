"""Rules about a request as a whole: what must be there, what excludes what, where the conversation is kept, formats."""

import re
from collections.abc import Iterator

from msgspec import UNSET

from dragoman.simulator.absent import SAYS, is_absent
from dragoman.simulator.apis.openai.schemas import complaints
from dragoman.simulator.apis.responses.rules_items import shown
from dragoman.simulator.apis.responses.shape import JsonFormat, Request, SchemaFormat
from dragoman.simulator.apis.responses.shape_items import (
    InputAudio,
    InputMessage,
    InputPart,
    InputText,
    OutputMessage,
    OutputText,
    ResultPart,
)
from dragoman.simulator.apis.responses.words import not_a_name, path_of, too_long
from dragoman.simulator.rule import Rule, Situation, Violation

_MEASURED = "public measurement of 2026-08-30 (gpt-5.6-terra)"
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_NAME_LIMIT = 64


def _no_model(request: Request, _: Situation) -> Iterator[Violation]:
    if request.body.model is UNSET and request.body.prompt is None:
        yield Violation("Missing required parameter: 'model'.", "/model")


def _unknown_model(request: Request, _: Situation) -> Iterator[Violation]:
    name = request.body.model
    if isinstance(name, str) and (not name or is_absent(name)):
        yield Violation(f"The requested model '{name}' does not exist.", "/model")


def _no_input(request: Request, _: Situation) -> Iterator[Violation]:
    if not request.body.input and not request.continues and not request.conversation:
        message = "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."
        yield Violation(message, "")


def _two_states(request: Request, _: Situation) -> Iterator[Violation]:
    if request.body.previous_response_id and request.body.conversation:
        message = (
            "Mutually exclusive parameters: ''. Ensure you are only providing one of: 'pre..._id' or 'conversation'."
        )
        yield Violation(message, "")


def _odd_state_id(request: Request, _: Situation) -> Iterator[Violation]:
    earlier = request.body.previous_response_id
    kept = (("previous_response_id", earlier, "resp"), ("conversation", request.conversation, "conv"))
    for name, value, prefix in kept:
        if value and not value.startswith(prefix):
            yield Violation(f"Invalid '{name}': '{value}'. Expected an ID that begins with '{prefix}'.", f"/{name}")


def _unstored_background(request: Request, _: Situation) -> Iterator[Violation]:
    if request.body.background and request.body.store is False:
        yield Violation("Background mode requires 'store' to be true.", "/background")


def _idle_stream_options(request: Request, _: Situation) -> Iterator[Violation]:
    if request.body.stream_options is not None and not request.body.stream:
        yield Violation("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "/stream_options")


def _silent_about_json(request: Request, _: Situation) -> Iterator[Violation]:
    text = request.body.text
    if text is None or not isinstance(text.format, JsonFormat) or request.continues:
        return
    if not any("json" in words.lower() for words in _said(request)):
        message = (
            "Response input messages must contain the word 'json' in some form to use 'text.format' of type "
            "'json_object'."
        )
        yield Violation(message, "/input")


def _said(request: Request) -> Iterator[str]:
    if isinstance(request.body.input, str):
        yield request.body.input
    for item in request.items:
        if not isinstance(item, InputMessage | OutputMessage):
            continue
        if isinstance(item.content, str):
            yield item.content
        else:
            yield from (part.text for part in item.content if isinstance(part, InputText | OutputText))


def _format(request: Request) -> SchemaFormat | None:
    text = request.body.text
    return text.format if text is not None and isinstance(text.format, SchemaFormat) else None


def _odd_format_name(request: Request, _: Situation) -> Iterator[Violation]:
    wanted = _format(request)
    if wanted is None:
        return
    where = "/text/format/name"
    if len(wanted.name) > _NAME_LIMIT:
        yield Violation(too_long("text.format.name", _NAME_LIMIT, len(wanted.name)), where)
    if _NAME.fullmatch(wanted.name) is None:
        yield Violation(not_a_name("text.format.name"), where)


def _odd_format_schema(request: Request, _: Situation) -> Iterator[Violation]:
    wanted = _format(request)
    if wanted is None:
        return
    for complaint in complaints(wanted.schema, strict=bool(wanted.strict)):
        yield Violation(complaint.about(f"response_format '{wanted.name}'"), "/text/format/schema")


def _short_cache(request: Request, _: Situation) -> Iterator[Violation]:
    if request.body.prompt_cache_retention == "in_memory" and request.model.generation >= (5, 5):
        message = "This model is compatible only with 24h extended prompt caching"
        yield Violation(message, "/prompt_cache_retention")


def _early_cache_options(request: Request, _: Situation) -> Iterator[Violation]:
    if request.model.generation >= (5, 6):
        return
    marked = [f"{where}/prompt_cache_breakpoint" for where, part in shown(request) if _is_marked(part)]
    for where in (*(["/prompt_cache_options"] if request.body.prompt_cache_options is not None else []), *marked):
        yield Violation(f"Unsupported parameter: '{path_of(where)}' is not supported with this model.", where)


def _is_marked(part: InputPart | ResultPart) -> bool:
    return not isinstance(part, InputAudio) and part.prompt_cache_breakpoint is not None


RULES: tuple[Rule[Request], ...] = (
    Rule("responses.model", "A model is named, unless a stored prompt names one.", _MEASURED, _no_model),
    Rule(
        "responses.model-found",
        SAYS,
        "recorded: openai_responses/mirascope-0003",
        _unknown_model,
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
        _two_states,
    ),
    Rule(
        "responses.state-id",
        "Ids of responses begin with resp, of conversations with conv.",
        "wire/openai_responses.md section 9",
        _odd_state_id,
    ),
    Rule(
        "responses.background-stored",
        "What runs in the background is stored.",
        "wire/openai_responses.md section 1",
        _unstored_background,
    ),
    Rule(
        "responses.stream-options",
        "Options of a stream come with a stream.",
        "openai-python 3.49, ResponseCreateParams.stream_options",
        _idle_stream_options,
    ),
    Rule(
        "responses.json-word",
        "Who wants a JSON object says the word json in the input.",
        "public reports of the vendor's words; recorded: all json_object requests say it in a message",
        _silent_about_json,
    ),
    Rule(
        "responses.format-name",
        "The name of a format is 1 to 64 letters, digits, underscores and dashes.",
        "wire/openai_responses.md section 1 (as for Chat)",
        _odd_format_name,
    ),
    Rule(
        "responses.format-schema",
        "The schema of an answer is an object's, and if strict within the strict subset.",
        "wire/gemini_schema.md section 6",
        _odd_format_schema,
    ),
    Rule(
        "responses.cache-retention",
        "From gpt-5.5 on prompts are cached for 24 hours or not at all.",
        f"openai-python 3.49, ResponseCreateParams.prompt_cache_retention; {_MEASURED}",
        _short_cache,
    ),
    Rule(
        "responses.cache-options",
        "Options of the prompt cache, and marks for it, need gpt-5.6 or later.",
        "wire/openai_responses.md section 1; wire/openai_chat.md section 2 (for the marks)",
        _early_cache_options,
    ),
)
