"""Rules about the schemas of functions and of answers; `dragoman.simulator.apis.openai.schemas` judges them."""

from collections.abc import Callable, Iterator
from typing import Any

from dragoman.simulator.apis.chat import words
from dragoman.simulator.apis.chat.rules_messages import PROBED
from dragoman.simulator.apis.chat.shape import ChatRequest, FunctionTool, JsonSchemaAnswer
from dragoman.simulator.apis.openai.schemas import (
    Topic,
    complaints,
)
from dragoman.simulator.rule import Rule, Situation, Violation

Check = Callable[[ChatRequest, Situation], Iterator[Violation]]
_STRICT = "wire/gemini_schema.md section 6 (OpenAI strict subset)"


def _schemas(body: ChatRequest) -> Iterator[tuple[str, str, dict[str, Any], bool]]:
    """Iterate schemas: where, whose, what, and whether to be followed strictly."""
    for index, tool in enumerate(body.tools or ()):
        if isinstance(tool, FunctionTool) and tool.function.parameters is not None:
            function = tool.function
            where = f"/tools/{index}/function/parameters"
            yield where, f"function '{function.name}'", tool.function.parameters, bool(function.strict)
    for index, function in enumerate(body.functions or ()):
        if function.parameters is not None:
            yield f"/functions/{index}/parameters", f"function '{function.name}'", function.parameters, False
    answer = body.response_format
    if isinstance(answer, JsonSchemaAnswer) and answer.json_schema.schema is not None:
        asked = answer.json_schema
        yield "/response_format", f"response_format '{asked.name}'", answer.json_schema.schema, bool(asked.strict)


def _check(topic: Topic) -> Check:
    def check(body: ChatRequest, _: Situation) -> Iterator[Violation]:
        for where, subject, schema, strict in _schemas(body):
            # A schema without members means that there are no parameters.
            for complaint in complaints(schema, strict=strict) if schema else ():
                if complaint.topic == topic:
                    yield Violation(complaint.about(subject), where)

    return check


def _check_schema_given(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    answer = body.response_format
    if isinstance(answer, JsonSchemaAnswer) and answer.json_schema.strict and answer.json_schema.schema is None:
        where = "/response_format/json_schema"
        yield Violation(words.missing(f"{where}/schema"), where)


def _rule(topic: Topic, name: str, says: str, source: str) -> Rule[ChatRequest]:
    return Rule(name, says, source, _check(topic))


RULES: tuple[Rule[ChatRequest], ...] = (
    Rule(
        "chat.strict-schema-missing",
        "An answer that is to follow its schema strictly has one.",
        f"wire/openai_chat.md section 1; {PROBED} (for `json_schema` itself)",
        _check_schema_given,
    ),
    _rule(
        "root",
        "chat.schema-root",
        "A schema is of type object, without oneOf, anyOf, allOf, enum and not at its root; an empty one is none.",
        "wire/openai_chat.md section 3; root combinators of functions that are not strict: reported in public issues",
    ),
    _rule(
        "malformed",
        "chat.schema-malformed",
        "A schema is one: types have known names, and what stands at a keyword is of the kind it wants.",
        "reported in public issues: [] is not of type 'object', 'boolean', for functions that are not strict too",
    ),
    _rule(
        "items",
        "chat.schema-array-items",
        "An array tells its items.",
        "wire/gemini_schema.md section 6 (array schema missing items)",
    ),
    _rule(
        "additional-properties",
        "chat.strict-additional-properties",
        "In a strict schema every object has `additionalProperties: false`.",
        _STRICT,
    ),
    _rule(
        "required",
        "chat.strict-required",
        "In a strict schema every property is required, and nothing else.",
        _STRICT,
    ),
    _rule(
        "reference",
        "chat.strict-reference",
        "In a strict schema a `$ref` stands alone.",
        "reported in public issues: the error names the keywords",
    ),
    _rule(
        "keyword",
        "chat.strict-keyword",
        "A strict schema has no allOf, oneOf, not, conditions, dependencies, patterns or counts of names, uniqueItems.",
        f"{_STRICT}; oneOf, patternProperties, uniqueItems, minProperties and maxProperties: reported in public issues",
    ),
    _rule(
        "type",
        "chat.strict-type",
        "In a strict schema everything but a union and a reference has a type.",
        "reported in public issues: schema must have a 'type' key",
    ),
    _rule(
        "format",
        "chat.strict-format",
        "The formats of strict schemas are date-time, time, date, duration, email, hostname, ipv4, ipv6 and uuid.",
        _STRICT,
    ),
    _rule(
        "nesting",
        "chat.strict-nesting",
        "A strict schema is at most 10 levels deep.",
        _STRICT,
    ),
    _rule(
        "size",
        "chat.strict-size",
        "A strict schema has at most 5000 properties, 1000 enum values, 120,000 characters in names and values, and "
        "15,000 in an enum of more than 250 values.",
        _STRICT,
    ),
)
