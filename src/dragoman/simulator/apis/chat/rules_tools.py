"""Rules about tools, the tool choice, and the schemas of functions and of answers."""

from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.chat.body import ChatCompletionsRequest
from dragoman.simulator.apis.chat.rules_messages import PROBED
from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.openai.checks import (
    describe_grammar_problem,
    reject_empty_array,
    reject_invalid_name,
    reject_over_limit,
    reject_without,
)
from dragoman.simulator.apis.openai.schemas import SchemaTopic, find_schema_violations
from dragoman.simulator.apis.rule import CheckContext, Json, PathCheck, Rule, Violation, find

_MAX_TOOLS = 128
_STRICT = "wire/gemini_schema.md section 6 (OpenAI strict subset)"


def _check_duplicate_names(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    seen: set[str] = set()
    for index, tool in enumerate(request.list("tools")):
        called = tool[tool["type"]]["name"]
        if called in seen:
            message = f"Invalid 'tools': tool names must be unique, but '{called}' is given twice."
            yield Violation(message, f"/tools/{index}")
        seen.add(called)


def _check_grammars(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    for pointer, grammar in request.find("/tools/*/custom/format/grammar"):
        where = f"{pointer}/definition"
        if fault := describe_grammar_problem(grammar["syntax"], grammar["definition"]):
            yield Violation(f"Invalid value for '{words.format_pointer(where)}': {fault}.", where)


def _iterate_chosen_tools(choice: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, name and pointer of each tool that a tool choice names."""
    if isinstance(choice, dict):
        for where, tool in find(choice, "/allowed_tools/tools/*"):
            yield tool["type"], tool[tool["type"]]["name"], f"/tool_choice{where}"
        for kind in ("function", "custom"):
            for where, called in find(choice, f"/{kind}/name"):
                yield kind, called, f"/tool_choice{where}"


def _check_choice_declared(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    known = {(tool["type"], tool[tool["type"]]["name"]) for tool in request.list("tools")}
    for kind, called, where in _iterate_chosen_tools(request.get("tool_choice")):
        if (kind, called) in known:
            continue
        if where == "/tool_choice/function/name":
            yield _build_unknown_function(called)  # OpenAI writes `function_call` here
        else:
            missing = f"no {kind} named '{called}' was specified in the 'tools' parameter."
            yield Violation(f"Invalid value for 'tool_choice': {missing}", where)
    functions = {function["name"] for function in request.list("functions")}
    for _where, called in request.find("/function_call/name"):
        if functions and called not in functions:
            yield _build_unknown_function(called)


def _build_unknown_function(function_name: str) -> Violation:
    return Violation(
        f"Invalid value for 'function_call': no function named '{function_name}' was specified "
        "in the 'functions' parameter.",
        "/function_call",
    )


def _check_effort(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    policy, effort = request.family.tools, request.get("reasoning_effort")
    allowed = {"any": effort, "without-effort": effort if effort is None else "none", "effort-none": "none"}
    if any(True for _ in request.find("/tools/*/function")) and effort != allowed.get(policy, ...):
        yield Violation(
            f"Function tools with reasoning_effort are not supported for {request.model} in /v1/chat/completions. To "
            "use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            "/reasoning_effort",
        )


def _iterate_schemas(request: ChatCompletionsRequest) -> Iterator[tuple[str, str, Json, bool]]:
    """Yield the pointer, subject, schema and strictness of each schema."""
    for path in ("/tools/*/function", "/functions/*"):
        for where, function in request.find(path):
            if function.get("parameters") is not None:
                strict = path != "/functions/*" and bool(function.get("strict"))
                yield f"{where}/parameters", f"function '{function['name']}'", function["parameters"], strict
    for _where, answer in request.find("/response_format/json_schema"):
        if answer.get("schema") is not None:
            subject = f"response_format '{answer['name']}'"
            yield "/response_format", subject, answer["schema"], bool(answer.get("strict"))


def _build_schema_rule(topic: SchemaTopic, rule: str, says: str, source: str) -> Rule[ChatCompletionsRequest]:
    def check(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
        if "schemas" not in request.computed:
            request.computed["schemas"] = [
                (complaint.topic, Violation(complaint.describe(subject), where))
                for where, subject, schema, strict in _iterate_schemas(request)
                if schema  # an empty schema means that there are no parameters
                for complaint in find_schema_violations(schema, strict=strict)
            ]
        return (violation for about, violation in request.computed["schemas"] if about == topic)

    return Rule(rule, says, source, check)


RULES: tuple[Rule[ChatCompletionsRequest], ...] = (
    Rule(
        "chat.tools-empty",
        "A request without tools has no `tools`, not an empty list; nor `functions`.",
        "reported in public issues: empty_array",
        reject_empty_array("/tools"),
        reject_empty_array("/functions"),
    ),
    Rule(
        "chat.tools-count",
        "There are at most 128 tools.",
        "wire/openai_chat.md section 1",
        reject_over_limit("/tools", items=_MAX_TOOLS),
        reject_over_limit("/functions", items=_MAX_TOOLS),
    ),
    Rule(
        "chat.tool-name",
        "The name of a tool has 1 to 64 letters, digits, underscores and dashes.",
        "wire/openai_chat.md section 3",
        reject_invalid_name("/tools/*/*/name"),
        reject_invalid_name("/functions/*/name"),
    ),
    Rule(
        "chat.tool-name-duplicate",
        "No two tools have the same name.",
        "no source: OpenAI may accept it, but a call could not be assigned to its tool",
        _check_duplicate_names,
    ),
    Rule(
        "chat.custom-tool-model",
        "Custom tools are supported since GPT-5.",
        "wire/openai_chat.md section 3; error text: no source",
        PathCheck(
            "/tools/*/type",
            words.describe_invalid_value("custom", ("function",)),
            lambda kind: kind == "custom",
            lambda request: not request.family.custom_tools,
        ),
    ),
    Rule(
        "chat.grammar",
        "A Lark grammar has a rule `start`; no grammar has lookaround or lazy quantifiers.",
        "wire/openai_chat.md section 3; error text: no source",
        _check_grammars,
    ),
    Rule(
        "chat.tool-choice-without-tools",
        "`tool_choice` requires `tools`.",
        "reported in public issues, last 2026-09",
        reject_without("/tool_choice", "/tools", words.describe_only_allowed_with("tools")),
    ),
    Rule(
        "chat.parallel-without-tools",
        "`parallel_tool_calls` requires `tools`.",
        "wire/openai_chat.md section 1",
        reject_without("/parallel_tool_calls", "/tools", words.describe_only_allowed_with("tools")),
    ),
    Rule(
        "chat.function-call-without-functions",
        "`function_call` requires `functions`.",
        "reported in public issues",
        reject_without("/function_call", "/functions", words.describe_only_allowed_with("functions")),
    ),
    Rule(
        "chat.allowed-tools-empty",
        "`allowed_tools` names at least one tool.",
        "no source: like other empty lists",
        reject_empty_array("/tool_choice/allowed_tools/tools"),
    ),
    Rule(
        "chat.tool-choice-unknown",
        "A tool that `tool_choice` names is in `tools`.",
        f"{PROBED}; error text for anything but one function: no source",
        _check_choice_declared,
    ),
    Rule(
        "chat.tools-with-effort",
        "From GPT-5.4 on, function tools are rejected unless the model does not reason.",
        "wire/openai_chat.md section 0; models that are not OpenAI's accept them: recorded: openai_chat/llm-0009, "
        "openai_chat/fantasy-0096, openai_chat/rig-0107",
        _check_effort,
    ),
    Rule(
        "chat.strict-schema-missing",
        "A response format with `strict: true` has a schema.",
        f"wire/openai_chat.md section 1; {PROBED} (for `json_schema` itself)",
        PathCheck(
            "/response_format/json_schema",
            lambda where, _: words.describe_missing(f"{where}/schema"),
            lambda asked: asked.get("strict") and asked.get("schema") is None,
        ),
    ),
    _build_schema_rule(
        "root",
        "chat.schema-root",
        "A schema is of type object, without oneOf, anyOf, allOf, enum and not at its root; an empty one counts as "
        "none.",
        "wire/openai_chat.md section 3; root combinators of functions that are not strict: reported in public issues",
    ),
    _build_schema_rule(
        "malformed",
        "chat.schema-malformed",
        "A schema is valid JSON Schema: types have known names, and keywords have values of the right type.",
        "reported in public issues: [] is not of type 'object', 'boolean', for functions that are not strict too",
    ),
    _build_schema_rule(
        "items",
        "chat.schema-array-items",
        "A schema of type array has `items` or `prefixItems`.",
        "wire/gemini_schema.md section 6 (array schema missing items)",
    ),
    _build_schema_rule(
        "additional-properties",
        "chat.strict-additional-properties",
        "In a strict schema every object has `additionalProperties: false`.",
        _STRICT,
    ),
    _build_schema_rule(
        "required",
        "chat.strict-required",
        "In a strict schema `required` lists every property, and nothing else.",
        _STRICT,
    ),
    _build_schema_rule(
        "reference",
        "chat.strict-reference",
        "In a strict schema a `$ref` has no other keywords next to it.",
        "reported in public issues: the error names the keywords",
    ),
    _build_schema_rule(
        "keyword",
        "chat.strict-keyword",
        "A strict schema has no allOf, oneOf, not, conditions, dependencies, patterns or counts of names, uniqueItems.",
        f"{_STRICT}; oneOf, patternProperties, uniqueItems, minProperties and maxProperties: reported in public issues",
    ),
    _build_schema_rule(
        "type",
        "chat.strict-type",
        "In a strict schema every subschema but a union or a reference has a type.",
        "reported in public issues: schema must have a 'type' key",
    ),
    _build_schema_rule(
        "format",
        "chat.strict-format",
        "The formats of strict schemas are date-time, time, date, duration, email, hostname, ipv4, ipv6 and uuid.",
        _STRICT,
    ),
    _build_schema_rule(
        "nesting",
        "chat.strict-nesting",
        "A strict schema is at most 10 levels deep.",
        _STRICT,
    ),
    _build_schema_rule(
        "size",
        "chat.strict-size",
        "A strict schema has at most 5000 properties, 1000 enum values, 120,000 characters in names and values, and "
        "15,000 in an enum of more than 250 values.",
        _STRICT,
    ),
)
