"""Rules about tools, the choice among them, and the schemas of functions and of answers."""

from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.chat.body import ChatRequest
from dragoman.simulator.apis.chat.rules_messages import PROBED
from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.openai.checks import grammar_fault, limit, name, not_empty, requires
from dragoman.simulator.apis.openai.schemas import Topic, complaints
from dragoman.simulator.rule import Json, Refuse, Rule, Situation, Violation, find

_MOST = 128
_STRICT = "wire/gemini_schema.md section 6 (OpenAI strict subset)"


def _duplicates(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    seen: set[str] = set()
    for index, tool in enumerate(request.list("tools")):
        called = tool[tool["type"]]["name"]
        if called in seen:
            message = f"Invalid 'tools': tool names must be unique, but '{called}' is given twice."
            yield Violation(message, f"/tools/{index}")
        seen.add(called)


def _grammars(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    for pointer, grammar in find(request.document, "/tools/*/custom/format/grammar"):
        where = f"{pointer}/definition"
        if fault := grammar_fault(grammar["syntax"], grammar["definition"]):
            yield Violation(f"Invalid value for '{words.named(where)}': {fault}.", where)


def _chosen(choice: Any) -> Iterator[tuple[str, str, str]]:
    """Iterate the tools a choice names: kind, name, where."""
    if isinstance(choice, dict):
        for where, tool in find(choice, "/allowed_tools/tools/*"):
            yield tool["type"], tool[tool["type"]]["name"], f"/tool_choice{where}"
        for kind in ("function", "custom"):
            for where, called in find(choice, f"/{kind}/name"):
                yield kind, called, f"/tool_choice{where}"


def _choice_known(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    known = {(tool["type"], tool[tool["type"]]["name"]) for tool in request.list("tools")}
    for kind, called, where in _chosen(request.get("tool_choice")):
        if (kind, called) in known:
            continue
        if where == "/tool_choice/function/name":
            yield _unknown_function(called)  # in these words, though the request calls it a tool
        else:
            missing = f"no {kind} named '{called}' was specified in the 'tools' parameter."
            yield Violation(f"Invalid value for 'tool_choice': {missing}", where)
    functions = {function["name"] for function in request.list("functions")}
    for _where, called in find(request.document, "/function_call/name"):
        if functions and called not in functions:
            yield _unknown_function(called)


def _unknown_function(called: str) -> Violation:
    return Violation(
        f"Invalid value for 'function_call': no function named '{called}' was specified in the 'functions' parameter.",
        "/function_call",
    )


def _effort(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    policy, effort = request.family.tools, request.get("reasoning_effort")
    allowed = {"any": effort, "without-effort": effort if effort is None else "none", "effort-none": "none"}
    if any(True for _ in find(request.document, "/tools/*/function")) and effort != allowed.get(policy, ...):
        yield Violation(
            f"Function tools with reasoning_effort are not supported for {request.model} in /v1/chat/completions. To "
            "use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            "/reasoning_effort",
        )


def _schemas(request: ChatRequest) -> Iterator[tuple[str, str, Json, bool]]:
    """Iterate schemas: where, whose, what, and whether to be followed strictly."""
    for path in ("/tools/*/function", "/functions/*"):
        for where, function in find(request.document, path):
            if function.get("parameters") is not None:
                strict = path != "/functions/*" and bool(function.get("strict"))
                yield f"{where}/parameters", f"function '{function['name']}'", function["parameters"], strict
    for _where, asked in find(request.document, "/response_format/json_schema"):
        if asked.get("schema") is not None:
            subject = f"response_format '{asked['name']}'"
            yield "/response_format", subject, asked["schema"], bool(asked.get("strict"))


def _schema_rule(topic: Topic, rule: str, says: str, source: str) -> Rule[ChatRequest]:
    def check(request: ChatRequest, _: Situation) -> Iterator[Violation]:
        if "schemas" not in request.computed:
            request.computed["schemas"] = [
                (complaint.topic, Violation(complaint.about(subject), where))
                for where, subject, schema, strict in _schemas(request)
                if schema  # one without members means that there are no parameters
                for complaint in complaints(schema, strict=strict)
            ]
        return (violation for about, violation in request.computed["schemas"] if about == topic)

    return Rule(rule, says, source, check)


RULES: tuple[Rule[ChatRequest], ...] = (
    Rule(
        "chat.tools-empty",
        "A request without tools has no `tools`, not an empty list; nor `functions`.",
        "reported in public issues: empty_array",
        not_empty("/tools"),
        not_empty("/functions"),
    ),
    Rule(
        "chat.tools-count",
        "There are at most 128 tools.",
        "wire/openai_chat.md section 1",
        limit("/tools", items=_MOST),
        limit("/functions", items=_MOST),
    ),
    Rule(
        "chat.tool-name",
        "The name of a tool has 1 to 64 letters, digits, underscores and dashes.",
        "wire/openai_chat.md section 3",
        name("/tools/*/*/name"),
        name("/functions/*/name"),
    ),
    Rule(
        "chat.tool-name-duplicate",
        "No two tools have the same name.",
        "no source: OpenAI may let it pass, but nobody could tell which tool a call means",
        _duplicates,
    ),
    Rule(
        "chat.custom-tool-model",
        "Custom tools exist since GPT-5.",
        "wire/openai_chat.md section 3; the words: no source",
        Refuse(
            "/tools/*/type",
            words.invalid_value("custom", ("function",)),
            lambda kind: kind == "custom",
            lambda request: not request.family.custom_tools,
        ),
    ),
    Rule(
        "chat.grammar",
        "A Lark grammar has a rule `start`; no grammar has look-around or lazy quantifiers.",
        "wire/openai_chat.md section 3; the words: no source",
        _grammars,
    ),
    Rule(
        "chat.tool-choice-without-tools",
        "`tool_choice` is sent with tools only.",
        "reported in public issues, last 2026-09",
        requires("/tool_choice", "/tools", words.only_allowed_with("tools")),
    ),
    Rule(
        "chat.parallel-without-tools",
        "`parallel_tool_calls` is sent with tools only.",
        "wire/openai_chat.md section 1",
        requires("/parallel_tool_calls", "/tools", words.only_allowed_with("tools")),
    ),
    Rule(
        "chat.function-call-without-functions",
        "`function_call` is sent with functions only.",
        "reported in public issues",
        requires("/function_call", "/functions", words.only_allowed_with("functions")),
    ),
    Rule(
        "chat.allowed-tools-empty",
        "A choice among some tools names one at least.",
        "no source: like other empty lists",
        not_empty("/tool_choice/allowed_tools/tools"),
    ),
    Rule(
        "chat.tool-choice-unknown",
        "A tool that is chosen is among the tools.",
        f"{PROBED}; the words for other than one function: no source",
        _choice_known,
    ),
    Rule(
        "chat.tools-with-effort",
        "From GPT-5.4 on, function tools are refused unless the model does not reason.",
        "wire/openai_chat.md section 0",
        _effort,
    ),
    Rule(
        "chat.strict-schema-missing",
        "An answer that is to follow its schema strictly has one.",
        f"wire/openai_chat.md section 1; {PROBED} (for `json_schema` itself)",
        Refuse(
            "/response_format/json_schema",
            lambda where, _: words.missing(f"{where}/schema"),
            lambda asked: asked.get("strict") and asked.get("schema") is None,
        ),
    ),
    _schema_rule(
        "root",
        "chat.schema-root",
        "A schema is of type object, without oneOf, anyOf, allOf, enum and not at its root; an empty one is none.",
        "wire/openai_chat.md section 3; root combinators of functions that are not strict: reported in public issues",
    ),
    _schema_rule(
        "malformed",
        "chat.schema-malformed",
        "A schema is one: types have known names, and what stands at a keyword is of the kind it wants.",
        "reported in public issues: [] is not of type 'object', 'boolean', for functions that are not strict too",
    ),
    _schema_rule(
        "items",
        "chat.schema-array-items",
        "An array tells its items.",
        "wire/gemini_schema.md section 6 (array schema missing items)",
    ),
    _schema_rule(
        "additional-properties",
        "chat.strict-additional-properties",
        "In a strict schema every object has `additionalProperties: false`.",
        _STRICT,
    ),
    _schema_rule(
        "required",
        "chat.strict-required",
        "In a strict schema every property is required, and nothing else.",
        _STRICT,
    ),
    _schema_rule(
        "reference",
        "chat.strict-reference",
        "In a strict schema a `$ref` stands alone.",
        "reported in public issues: the error names the keywords",
    ),
    _schema_rule(
        "keyword",
        "chat.strict-keyword",
        "A strict schema has no allOf, oneOf, not, conditions, dependencies, patterns or counts of names, uniqueItems.",
        f"{_STRICT}; oneOf, patternProperties, uniqueItems, minProperties and maxProperties: reported in public issues",
    ),
    _schema_rule(
        "type",
        "chat.strict-type",
        "In a strict schema everything but a union and a reference has a type.",
        "reported in public issues: schema must have a 'type' key",
    ),
    _schema_rule(
        "format",
        "chat.strict-format",
        "The formats of strict schemas are date-time, time, date, duration, email, hostname, ipv4, ipv6 and uuid.",
        _STRICT,
    ),
    _schema_rule(
        "nesting",
        "chat.strict-nesting",
        "A strict schema is at most 10 levels deep.",
        _STRICT,
    ),
    _schema_rule(
        "size",
        "chat.strict-size",
        "A strict schema has at most 5000 properties, 1000 enum values, 120,000 characters in names and values, and "
        "15,000 in an enum of more than 250 values.",
        _STRICT,
    ),
)
