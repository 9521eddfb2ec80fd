"""Rules about tools and the generation config: names, modes, ranges of numbers, and the model's thinking settings."""

import re
from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.gemini.proto import to_snake_case
from dragoman.simulator.apis.gemini.request import (
    GeminiRequest,
    build_check,
    build_field_message,
    describe_field,
    describe_vertex_error,
    format_path,
)
from dragoman.simulator.apis.rule import CheckContext, PathCheck, Rule, Violation, when_unset

_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_NAME_WORDS = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
)
_MOST_FUNCTIONS = 128
_MOST_ON_AI_STUDIO = 512
_MOST_STOPS = 5
_FORCING_MODES = frozenset({"ANY", "VALIDATED"})
_JSON = "application/json"
_MEDIA = frozenset({"", "text/plain", _JSON, "text/x.enum", "application/xml", "application/yaml"})
_UNSPECIFIED = "THINKING_LEVEL_UNSPECIFIED"
_THOUGHTS = "Thinking_config.include_thoughts is only enabled when thinking is enabled."
_FUNCTIONS = "/tools/*/functionDeclarations/*"
_CALLING = "/toolConfig/functionCallingConfig"
_CONFIG = "/generationConfig"
_THINKING = "/generationConfig/thinkingConfig"


def _is_strict_model(request: GeminiRequest) -> bool:
    return request.generation.is_strict


def _cannot_combine_tools(request: GeminiRequest) -> bool:
    return not request.generation.combines_tools


def _lacks_functions(request: GeminiRequest) -> bool:
    """Return whether a request has nothing that a function calling mode is about."""
    if request.vertex or not _cannot_combine_tools(request):
        return not request.document.get("tools")
    return not request.functions


def _check_duplicate_functions(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    known: set[str] = set()
    for _where, function in request.functions:
        if function["name"] in known:
            yield Violation(f"Duplicate function declaration found: {function['name']}", "/tools")
        known.add(function["name"])


def _check_function_count(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    count = len(request.functions)
    if request.vertex and count > _MOST_FUNCTIONS:
        message = f"it has {count} function declarations but at most {_MOST_FUNCTIONS} are supported."
        yield Violation(describe_vertex_error(message), "/tools")
    if not request.vertex and count > _MOST_ON_AI_STUDIO:
        yield Violation(f"At most {_MOST_ON_AI_STUDIO} function declarations can be specified.", "/tools")


def _build_exclusive_schema_check(name: str) -> PathCheck:
    """Return a check that rejects two schemas for the same purpose."""
    other = f"{name}JsonSchema"
    message = f"{to_snake_case(other)} is mutually exclusive with {name}."
    return PathCheck(
        _FUNCTIONS,
        lambda where, _: describe_field(f"{where}/{other}", message),
        lambda function: name in function and other in function,
    )


def _check_mixed_tools(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    if request.functions and _cannot_combine_tools(request) and set(request.server_tools) - {"codeExecution"}:
        vertex = "Multiple tools are supported only when they are all search tools."
        yield Violation(vertex if request.vertex else "Tool use with function calling is unsupported", "/tools")


def _check_server_tool_flag(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    flag = request.tool_config.get("includeServerSideToolInvocations")
    if request.functions and not (flag or request.vertex or _cannot_combine_tools(request)) and request.server_tools:
        message = (
            "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function "
            "calling."
        )
        yield Violation(message, "/toolConfig/includeServerSideToolInvocations")


def _check_allowed_names_declared(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    names = {function["name"] for _, function in request.functions}
    for index, name in enumerate(request.calling.get("allowedFunctionNames", ())):
        if name not in names:
            where = f"{_CALLING}/allowedFunctionNames/{index}"
            yield Violation(describe_field(where, f"function `{name}` is not declared."), where)


def _build_range_check(name: str, least: float, most: float | None = None, end: str = "2147483648") -> Any:
    """Return a check that rejects a number out of range; `end` is the upper bound as Vertex's error text writes it.

    Without `most`, AI Studio's error text asks for a positive number.
    """
    if most is None:
        studio = f"{to_snake_case(name)} must be positive."
    else:
        studio = f"{to_snake_case(name)} must be in the range [{least:.1f}, {most:.1f}]."
    return build_check(
        f"{_CONFIG}/{name}",
        build_field_message(studio),
        lambda _, value: (
            f"Unable to submit request because it has a {name} value of {value:g} but the supported range is from "
            f"{least:g} (inclusive) to {end} (exclusive). Update the value and try again."
        ),
        lambda value: not least <= value <= (2**31 if most is None else most),
    )


def _check_schema_media_type(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    kind = request.config.get("responseMimeType") or "text/plain"
    for name, taken in (("responseSchema", (_JSON, "text/x.enum")), ("responseJsonSchema", (_JSON,))):
        if name in request.config and kind not in taken:
            where = f"{_CONFIG}/{name}"
            yield Violation(
                describe_field(where, f"{to_snake_case(name)} can not be used with response mime type {kind}."), where
            )


def _check_json_with_tools(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    if request.get("tools") and request.config.get("responseMimeType") == _JSON and _cannot_combine_tools(request):
        what = "Function calling" if request.functions else "Tool use"
        message = f"{what} with a response mime type: '{_JSON}' is unsupported"
        yield Violation(message, f"{_CONFIG}/responseMimeType")


def _check_thinking_level(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    level = request.thinking.get("thinkingLevel", _UNSPECIFIED)
    if level == _UNSPECIFIED or level in request.generation.thinking_levels:
        return
    message = f"Thinking level {level} is not supported for this model. Please retry with other thinking level."
    if not request.generation.thinking_levels:
        message = "Thinking level is not supported for this model."
    yield Violation(message, f"{_THINKING}/thinkingLevel")


def _check_thinking_budget(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    budget = request.thinking.get("thinkingBudget", -1)
    where = f"{_THINKING}/thinkingBudget"
    least, most = request.generation.thinking_budgets or (1, 2**31)
    if budget == -1:
        return
    if budget == 0:
        if request.generation.always_thinks:
            yield Violation("Budget 0 is invalid. This model only works in thinking mode.", where)
    elif not request.generation.can_think:
        yield Violation("Thinking is not supported by this model.", where)
    elif not least <= budget <= most:
        message = f"The thinking budget {budget} is invalid. Please choose a value between {least} and {most}."
        yield Violation(message, where)


def _is_thinking_off(request: GeminiRequest) -> bool:
    return request.thinking.get("thinkingBudget") == 0 or not request.generation.can_think


TOOL_RULES: tuple[Rule[GeminiRequest], ...] = (
    Rule(
        "gemini.function-name",
        "A function's name has 1 to 128 letters, digits and _ . : -, and begins with a letter or _.",
        "wire/gemini.md section 3; Google's error text from github.com/Mintplex-Labs/anything-llm/issues/4452",
        build_check(
            f"{_FUNCTIONS}/name",
            build_field_message(_NAME_WORDS),
            lambda where, _: (
                f"The GenerateContentRequest proto is invalid:\n  * {format_path(where)}: [FIELD_INVALID] {_NAME_WORDS}"
            ),
            lambda name: not _FUNCTION_NAME.fullmatch(name),
        ),
    ),
    Rule(
        "gemini.function-once",
        "A function is declared once.",
        "Google's error text from public threads (Duplicate function declaration found)",
        _check_duplicate_functions,
    ),
    Rule(
        "gemini.function-count",
        "Vertex accepts at most 128 functions, AI Studio 512.",
        "wire/gemini.md section 3, the error text is invented; Google's from google-gemini/gemini-cli#19083",
        _check_function_count,
    ),
    Rule(
        "gemini.one-schema",
        "A function has parameters or parametersJsonSchema, and response or responseJsonSchema, not both.",
        "wire/gemini_schema.md section 1; the error text is invented",
        _build_exclusive_schema_check("parameters"),
        _build_exclusive_schema_check("response"),
    ),
    Rule(
        "gemini.tools-mixed",
        "Before Gemini 3 functions cannot be combined with Google's own tools, except code execution.",
        "wire/gemini.md section 2, cases T081; Google's error text from github.com/symfony/ai/issues/803",
        _check_mixed_tools,
    ),
    Rule(
        "gemini.tools-flagged",
        "On AI Studio functions can be combined with Google's own tools only with `includeServerSideToolInvocations`.",
        "wire/gemini.md section 2; Google's error text from github.com/genkit-ai/genkit/issues/4970; "
        "recorded: gemini/pydantic-ai-0205",
        _check_server_tool_flag,
    ),
    Rule(
        "gemini.mode-without-tools",
        "A function calling mode requires tools; on AI Studio before Gemini 3, functions.",
        "Google's error text and the models from github.com/pydantic/pydantic-ai/pull/5791; "
        "recorded for Gemini 3: gemini/pydantic-ai-0034",
        PathCheck(
            _CALLING,
            "Function calling config is set without function_declarations.",
            lambda calling: "mode" in calling,
            _lacks_functions,
        ),
    ),
    Rule(
        "gemini.allowed-mode",
        "Only the modes ANY and VALIDATED accept allowed function names.",
        "wire/gemini.md section 4; Google's error text from public threads",
        PathCheck(
            f"{_CALLING}/allowedFunctionNames",
            "Please set allowed_function_names only when function calling mode is ANY.",
            bool,
            lambda request: request.calling.get("mode") not in _FORCING_MODES,
        ),
    ),
    Rule(
        "gemini.allowed-known",
        "Allowed function names are names of declared functions.",
        "no source: implied by wire/gemini.md section 4; the error text is invented",
        _check_allowed_names_declared,
    ),
    Rule(
        "gemini.streamed-arguments",
        "Streamed arguments need Gemini 3 or later.",
        "wire/gemini.md section 8.2; the error text is invented",
        PathCheck(
            f"{_CALLING}/streamFunctionCallArguments",
            describe_vertex_error("streaming of function call arguments is not supported for this model."),
            bool,
            _cannot_combine_tools,
        ),
    ),
)
CONFIG_RULES: tuple[Rule[GeminiRequest], ...] = (
    Rule(
        "gemini.ranges",
        "Temperature is from 0 to 2, topP from 0 to 1, topK and maxOutputTokens are positive, candidateCount from 1 to "
        "8, penalties from -2 to 2, logprobs from 0 to 20.",
        "wire/gemini.md section 2; recorded: gemini/opentelemetry-python-contrib-0008",
        _build_range_check("temperature", 0, 2, "2.0001"),
        _build_range_check("topP", 0, 1, "1.0001"),
        _build_range_check("topK", 1),
        _build_range_check("maxOutputTokens", 1),
        _build_range_check("candidateCount", 1, 8, "9"),
        _build_range_check("presencePenalty", -2, 2, "2.0001"),
        _build_range_check("frequencyPenalty", -2, 2, "2.0001"),
        _build_range_check("logprobs", 0, 20, "21"),
    ),
    Rule(
        "gemini.stop-sequences",
        "There are at most five stop sequences.",
        "wire/gemini.md section 2; AI Studio's error text from public threads, Vertex's is invented",
        build_check(
            f"{_CONFIG}/stopSequences",
            build_field_message(f"the number of stop_sequences must not exceed {_MOST_STOPS}."),
            lambda _, stops: describe_vertex_error(
                f"it has {len(stops)} stopSequences but the supported number is {_MOST_STOPS} or fewer."
            ),
            lambda stops: len(stops) > _MOST_STOPS,
        ),
    ),
    Rule(
        "gemini.logprobs",
        "`logprobs` requires `responseLogprobs`.",
        "no source but the comment in the protos (only valid if response_logprobs is true); the error text is invented",
        PathCheck(
            f"{_CONFIG}/logprobs",
            build_field_message("logprobs is only allowed when response_logprobs is true."),
            when=when_unset(f"{_CONFIG}/responseLogprobs"),
        ),
    ),
    Rule(
        "gemini.penalties",
        "From Gemini 3.6 on, and for 3.5 Flash-Lite, penalties are rejected.",
        "wire/gemini.md section 0; Google's error text from public threads",
        PathCheck(f"{_CONFIG}/presencePenalty", "Penalty is not enabled for this model", when=_is_strict_model),
        PathCheck(f"{_CONFIG}/frequencyPenalty", "Penalty is not enabled for this model", when=_is_strict_model),
    ),
    Rule(
        "gemini.candidates",
        "From Gemini 3.6 on, and for 3.5 Flash-Lite, there is one candidate.",
        "wire/gemini.md section 0; Google's error text from public threads",
        PathCheck(
            f"{_CONFIG}/candidateCount",
            "Multiple candidates is not enabled for this model",
            lambda count: count > 1,
            _is_strict_model,
        ),
    ),
    Rule(
        "gemini.response-type",
        "The media type of the answer is that of text, JSON, XML, YAML or an enum.",
        "wire/gemini.md section 2; the error text is invented",
        PathCheck(
            f"{_CONFIG}/responseMimeType",
            build_field_message(
                "allowed mimetypes are `text/plain`, `application/json`, `application/xml`, `application/yaml` and "
                "`text/x.enum`."
            ),
            lambda kind: kind not in _MEDIA,
        ),
    ),
    Rule(
        "gemini.response-schema-type",
        "A schema for the answer requires the media type of JSON or of an enum.",
        "wire/gemini_schema.md section 5; the error text is invented",
        _check_schema_media_type,
    ),
    Rule(
        "gemini.response-schema-once",
        "The answer has one schema.",
        "wire/gemini_schema.md section 1; the error text is invented",
        PathCheck(
            f"{_CONFIG}/responseJsonSchema",
            build_field_message("response_json_schema is mutually exclusive with response_schema."),
            when=lambda request: "responseSchema" in request.config,
        ),
    ),
    Rule(
        "gemini.response-with-tools",
        "Before Gemini 3 a JSON answer cannot be combined with tools.",
        "wire/gemini_schema.md section 5; Google's error text from github.com/googleapis/python-genai/issues/867",
        _check_json_with_tools,
    ),
    Rule(
        "gemini.thinking-once",
        "Thinking has a budget or a level, not both.",
        "wire/gemini.md section 2; Google's error text from public threads",
        PathCheck(
            _THINKING,
            "You can only set only one of thinking budget and thinking level.",
            lambda thinking: (
                "thinkingBudget" in thinking and thinking.get("thinkingLevel", _UNSPECIFIED) != _UNSPECIFIED
            ),
        ),
    ),
    Rule(
        "gemini.thinking-level",
        "Thinking levels exist from Gemini 3 on; MINIMAL is for Flash before 3.7 and for Flash-Lite.",
        "wire/gemini.md sections 0 and 2, wire/mapping.md section 3; Google's error text from "
        "github.com/dhyansraj/mcp-mesh/issues/1346",
        _check_thinking_level,
    ),
    Rule(
        "gemini.thinking-budget",
        "A thinking budget is in the model's range; Pro always thinks, models before 2.5 never do.",
        "wire/gemini.md section 2; Google's error text from public threads; later models take any: gemini/lingua-0013",
        _check_thinking_budget,
    ),
    Rule(
        "gemini.thoughts",
        "Thoughts are included only if the model thinks.",
        "Google's error text from public threads (include_thoughts is only enabled when thinking is enabled)",
        build_check(
            f"{_THINKING}/includeThoughts",
            _THOUGHTS,
            f"Unable to submit request because {_THOUGHTS}",
            bool,
            _is_thinking_off,
        ),
    ),
)
