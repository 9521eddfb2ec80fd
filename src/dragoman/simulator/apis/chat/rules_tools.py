"""Rules about the tools of a request and the choice among them."""

from collections.abc import Iterator

from dragoman.simulator.apis.chat import words
from dragoman.simulator.apis.chat.models import family_of
from dragoman.simulator.apis.chat.rules_messages import PROBED, check_tool_name
from dragoman.simulator.apis.chat.shape import (
    AllowedTools,
    ChatRequest,
    CustomTool,
    FunctionTool,
    GrammarFormat,
    Named,
    NamedCustom,
    NamedFunction,
    Tool,
)
from dragoman.simulator.apis.openai.grammars import grammar_fault
from dragoman.simulator.rule import Rule, Situation, Violation

_MOST = 128


def tool_name(tool: Tool) -> str:
    """Return a tool's name."""
    return tool.function.name if isinstance(tool, FunctionTool) else tool.custom.name


def _check_empty(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for name, given in (("tools", body.tools), ("functions", body.functions)):
        if given == []:
            yield Violation(words.empty_array(f"/{name}"), f"/{name}")


def _check_count(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for name, given in (("tools", body.tools), ("functions", body.functions)):
        if given is not None and len(given) > _MOST:
            yield Violation(words.long_array(f"/{name}", _MOST, len(given)), f"/{name}")


def _check_name(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for index, tool in enumerate(body.tools or ()):
        kind = "function" if isinstance(tool, FunctionTool) else "custom"
        yield from check_tool_name(tool_name(tool), f"/tools/{index}/{kind}/name")
    for index, function in enumerate(body.functions or ()):
        yield from check_tool_name(function.name, f"/functions/{index}/name")


def _check_duplicate(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    seen: set[str] = set()
    for index, tool in enumerate(body.tools or ()):
        name = tool_name(tool)
        if name in seen:
            yield Violation(
                f"Invalid 'tools': tool names must be unique, but '{name}' is given twice.", f"/tools/{index}"
            )
        seen.add(name)


def _check_custom(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if family_of(body.model).custom_tools:
        return
    for index, tool in enumerate(body.tools or ()):
        if isinstance(tool, CustomTool):
            yield Violation(words.invalid_value("custom", ("function",)), f"/tools/{index}/type")


def _check_grammar(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for index, tool in enumerate(body.tools or ()):
        if isinstance(tool, CustomTool) and isinstance(tool.custom.format, GrammarFormat):
            grammar = tool.custom.format.grammar
            where = f"/tools/{index}/custom/format/grammar/definition"
            if fault := grammar_fault(grammar.syntax, grammar.definition):
                yield Violation(f"Invalid value for '{words.named(where)}': {fault}.", where)


def _only_with(name: str, needed: str) -> Violation:
    return Violation(f"Invalid value for '{name}': '{name}' is only allowed when '{needed}' are specified.", f"/{name}")


def _check_choice_alone(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if body.tool_choice is not None and not body.tools:
        yield _only_with("tool_choice", "tools")


def _check_parallel_alone(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if body.parallel_tool_calls is not None and not body.tools:
        yield _only_with("parallel_tool_calls", "tools")


def _check_function_call_alone(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if body.function_call is not None and not body.functions:
        yield _only_with("function_call", "functions")


def _chosen(body: ChatRequest) -> Iterator[tuple[str, str, str]]:
    """Iterate the tools a choice names: kind, name, where."""
    choice = body.tool_choice
    match choice:
        case NamedFunction():
            yield "function", choice.function.name, "/tool_choice/function/name"
        case NamedCustom():
            yield "custom", choice.custom.name, "/tool_choice/custom/name"
        case AllowedTools():
            for index, tool in enumerate(choice.allowed_tools.tools):
                where = f"/tool_choice/allowed_tools/tools/{index}"
                if isinstance(tool, NamedFunction):
                    yield "function", tool.function.name, where
                else:
                    yield "custom", tool.custom.name, where
        case _:
            return


def _check_choice_known(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    known = {("function" if isinstance(tool, FunctionTool) else "custom", tool_name(tool)) for tool in body.tools or ()}
    for kind, name, where in _chosen(body):
        if (kind, name) in known:
            continue
        if isinstance(body.tool_choice, NamedFunction):
            yield _unknown_function(name)  # in these words, though the request calls it a tool
        else:
            missing = f"no {kind} named '{name}' was specified in the 'tools' parameter."
            yield Violation(f"Invalid value for 'tool_choice': {missing}", where)
    if isinstance(body.function_call, Named) and body.functions is not None:
        name = body.function_call.name
        if name not in {function.name for function in body.functions}:
            yield _unknown_function(name)


def _unknown_function(name: str) -> Violation:
    return Violation(
        f"Invalid value for 'function_call': no function named '{name}' was specified in the 'functions' parameter.",
        "/function_call",
    )


def _check_allowed_empty(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if isinstance(body.tool_choice, AllowedTools) and not body.tool_choice.allowed_tools.tools:
        where = "/tool_choice/allowed_tools/tools"
        yield Violation(words.empty_array(where), where)


def _check_effort(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    policy = family_of(body.model).tools
    effort = body.reasoning_effort
    if not any(isinstance(tool, FunctionTool) for tool in body.tools or ()) or policy == "any":
        return
    if policy == "without-effort" and effort in {None, "none"}:
        return
    if policy == "effort-none" and effort == "none":
        return
    yield Violation(
        f"Function tools with reasoning_effort are not supported for {body.model} in /v1/chat/completions. To use "
        "function tools, use /v1/responses or set reasoning_effort to 'none'.",
        "/reasoning_effort",
    )


RULES: tuple[Rule[ChatRequest], ...] = (
    Rule(
        "chat.tools-empty",
        "A request without tools has no `tools`, not an empty list; nor `functions`.",
        "reported in public issues: empty_array",
        _check_empty,
    ),
    Rule(
        "chat.tools-count",
        "There are at most 128 tools.",
        "wire/openai_chat.md section 1",
        _check_count,
    ),
    Rule(
        "chat.tool-name",
        "The name of a tool has 1 to 64 letters, digits, underscores and dashes.",
        "wire/openai_chat.md section 3",
        _check_name,
    ),
    Rule(
        "chat.tool-name-duplicate",
        "No two tools have the same name.",
        "no source: OpenAI may let it pass, but nobody could tell which tool a call means",
        _check_duplicate,
    ),
    Rule(
        "chat.custom-tool-model",
        "Custom tools exist since GPT-5.",
        "wire/openai_chat.md section 3; the words: no source",
        _check_custom,
    ),
    Rule(
        "chat.grammar",
        "A Lark grammar has a rule `start`; no grammar has look-around or lazy quantifiers.",
        "wire/openai_chat.md section 3; the words: no source",
        _check_grammar,
    ),
    Rule(
        "chat.tool-choice-without-tools",
        "`tool_choice` is sent with tools only.",
        "reported in public issues, last 2026-09",
        _check_choice_alone,
    ),
    Rule(
        "chat.parallel-without-tools",
        "`parallel_tool_calls` is sent with tools only.",
        "wire/openai_chat.md section 1",
        _check_parallel_alone,
    ),
    Rule(
        "chat.function-call-without-functions",
        "`function_call` is sent with functions only.",
        "reported in public issues",
        _check_function_call_alone,
    ),
    Rule(
        "chat.allowed-tools-empty",
        "A choice among some tools names one at least.",
        "no source: like other empty lists",
        _check_allowed_empty,
    ),
    Rule(
        "chat.tool-choice-unknown",
        "A tool that is chosen is among the tools.",
        f"{PROBED}; the words for other than one function: no source",
        _check_choice_known,
    ),
    Rule(
        "chat.tools-with-effort",
        "From GPT-5.4 on, function tools are refused unless the model does not reason.",
        "wire/openai_chat.md section 0",
        _check_effort,
    ),
)
