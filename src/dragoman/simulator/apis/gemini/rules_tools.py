"""What tools must be: functions with good names that are declared once, modes that have functions to choose from."""

import re
from collections import Counter
from collections.abc import Iterator

from dragoman.simulator.apis.gemini.heard import Heard, HeardRule, field, unable
from dragoman.simulator.apis.gemini.shape_tools import FunctionCallingConfig, server_tools
from dragoman.simulator.rule import Rule, Situation, Violation

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_NAME_WORDS = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
)
_MOST_FUNCTIONS = 128
_CHOOSING = frozenset({"ANY", "VALIDATED"})


def _calling(heard: Heard) -> FunctionCallingConfig | None:
    return heard.request.tool_config.function_calling_config if heard.request.tool_config is not None else None


def _name(heard: Heard, _: Situation) -> Iterator[Violation]:
    for (number, index), function in heard.placed_functions:
        if not _NAME.fullmatch(function.name):
            path = f"tools[{number}].function_declarations[{index}].name"
            where = f"/tools/{number}/functionDeclarations/{index}/name"
            vertex = f"The GenerateContentRequest proto is invalid:\n  * {path}: [FIELD_INVALID] {_NAME_WORDS}"
            yield Violation(vertex if heard.vertex else field(path, _NAME_WORDS), where)


def _once(heard: Heard, _: Situation) -> Iterator[Violation]:
    for name, count in Counter(function.name for function in heard.functions).items():
        if count > 1:
            yield Violation(f"Duplicate function declaration found: {name}", "/tools")


def _count(heard: Heard, _: Situation) -> Iterator[Violation]:
    if heard.vertex and len(heard.functions) > _MOST_FUNCTIONS:
        words = f"it has {len(heard.functions)} function declarations but at most {_MOST_FUNCTIONS} are supported."
        yield Violation(unable(words), "/tools")


def _one_schema(heard: Heard, _: Situation) -> Iterator[Violation]:
    for (number, index), function in heard.placed_functions:
        for name in ("parameters", "response"):
            other = f"{name}_json_schema"
            if getattr(function, name) is not None and getattr(function, other) is not None:
                path = f"tools[{number}].function_declarations[{index}].{other}"
                words = f"{other} is mutually exclusive with {name}."
                yield Violation(field(path, words), f"/tools/{number}/functionDeclarations/{index}")


def _mixed(heard: Heard, _: Situation) -> Iterator[Violation]:
    served = set(server_tools(heard.request.tools or [])) - {"code_execution"}
    if heard.functions and served and not heard.generation.combines:
        vertex = "Multiple tools are supported only when they are all search tools."
        yield Violation(vertex if heard.vertex else "Tool use with function calling is unsupported", "/tools")


def _flagged(heard: Heard, _: Situation) -> Iterator[Violation]:
    served = server_tools(heard.request.tools or [])
    flag = heard.request.tool_config and heard.request.tool_config.include_server_side_tool_invocations
    if heard.functions and served and heard.generation.combines and not heard.vertex and not flag:
        words = (
            "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function "
            "calling."
        )
        yield Violation(words, "/toolConfig/includeServerSideToolInvocations")


def _has_functions(heard: Heard, _: Situation) -> Iterator[Violation]:
    calling = _calling(heard)
    # Google's own tools let it pass (gemini/pydantic-ai-0034).
    if calling is not None and calling.mode is not None and not heard.request.tools:
        words = "Function calling config is set without function_declarations."
        yield Violation(words, "/toolConfig/functionCallingConfig")


def _allowed(heard: Heard, _: Situation) -> Iterator[Violation]:
    calling = _calling(heard)
    if calling is not None and calling.allowed_function_names and calling.mode not in _CHOOSING:
        words = "Please set allowed_function_names only when function calling mode is ANY."
        yield Violation(words, "/toolConfig/functionCallingConfig/allowedFunctionNames")


def _known(heard: Heard, _: Situation) -> Iterator[Violation]:
    calling = _calling(heard)
    names = {function.name for function in heard.functions}
    for index, name in enumerate(calling.allowed_function_names or [] if calling is not None else []):
        if name not in names:
            path = f"tool_config.function_calling_config.allowed_function_names[{index}]"
            where = f"/toolConfig/functionCallingConfig/allowedFunctionNames/{index}"
            yield Violation(field(path, f"function `{name}` is not declared."), where)


def _streamed(heard: Heard, _: Situation) -> Iterator[Violation]:
    calling = _calling(heard)
    if calling is not None and calling.stream_function_call_arguments and not heard.generation.combines:
        words = "streaming of function call arguments is not supported for this model."
        yield Violation(unable(words), "/toolConfig/functionCallingConfig/streamFunctionCallArguments")


RULES: tuple[HeardRule, ...] = (
    Rule(
        "gemini.function-name",
        "A function's name begins with a letter or _, goes on with letters, digits and _ . : -, and has at most 128.",
        "wire/gemini.md section 3; Google's words from github.com/Mintplex-Labs/anything-llm/issues/4452",
        _name,
    ),
    Rule(
        "gemini.function-once",
        "A function is declared once.",
        "Google's words from public threads (Duplicate function declaration found)",
        _once,
    ),
    Rule(
        "gemini.function-count",
        "Vertex takes at most 128 functions.",
        "wire/gemini.md section 3; the words are ours",
        _count,
    ),
    Rule(
        "gemini.one-schema",
        "A function has parameters or parametersJsonSchema, and response or responseJsonSchema, not both.",
        "wire/gemini_schema.md section 1; the words are ours",
        _one_schema,
    ),
    Rule(
        "gemini.tools-mixed",
        "Before Gemini 3 functions do not go together with Google's own tools, code execution excepted.",
        "wire/gemini.md section 2, cases T081; Google's words from github.com/symfony/ai/issues/803",
        _mixed,
    ),
    Rule(
        "gemini.tools-flagged",
        "On AI Studio functions go together with Google's own tools only with includeServerSideToolInvocations.",
        "wire/gemini.md section 2; Google's words from github.com/genkit-ai/genkit/issues/4970; "
        "recorded: gemini/pydantic-ai-0205",
        _flagged,
    ),
    Rule(
        "gemini.mode-without-tools",
        "A function calling mode needs tools.",
        "Google's words from public threads (Function calling config is set without function_declarations)",
        _has_functions,
    ),
    Rule(
        "gemini.allowed-mode",
        "Only the modes ANY and VALIDATED take allowed function names.",
        "wire/gemini.md section 4; Google's words from public threads",
        _allowed,
    ),
    Rule(
        "gemini.allowed-known",
        "Allowed function names are names of declared functions.",
        "no source: implied by wire/gemini.md section 4; the words are ours",
        _known,
    ),
    Rule(
        "gemini.streamed-arguments",
        "Arguments are streamed from Gemini 3 on.",
        "wire/gemini.md section 8.2; the words are ours",
        _streamed,
    ),
)
