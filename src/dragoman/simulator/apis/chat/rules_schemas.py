"""Rules about the schemas of functions and of answers; `dragoman.simulator.apis.openai.schemas` judges them."""

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

from dragoman.simulator.apis.chat import changes, words
from dragoman.simulator.apis.chat.rules_messages import PROBED
from dragoman.simulator.apis.chat.shape import ChatRequest, FunctionTool, JsonSchemaAnswer
from dragoman.simulator.apis.openai.schemas import (
    COMBINATORS,
    FORBIDDEN,
    LISTS,
    LONG_ENUM,
    MOST_CHARACTERS_OF_LONG_ENUM,
    MOST_LEVELS,
    MOST_PROPERTIES,
    MOST_VALUES,
    Topic,
    complaints,
    nodes,
    types_of,
)
from dragoman.simulator.rule import Json, Mutate, Rule, Situation, Violation

Check = Callable[[ChatRequest, Situation], Iterator[Violation]]
_WORDY = MOST_CHARACTERS_OF_LONG_ENUM // LONG_ENUM
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


def _break_root(body: Json, chance: Random) -> Iterable[Json]:
    for path, schema in changes.schemas(body):
        yield changes.put(body, path, {**schema, "type": "array", "items": {"type": "string"}})
        yield changes.put(body, path, {name: value for name, value in schema.items() if name != "type"})
        combinator = chance.choice(COMBINATORS[:3])
        yield changes.put(body, path, {**schema, combinator: [{"type": "object"}]})


def _inner(schema: Json, wanted: Callable[[Json], bool]) -> Iterator[changes.Path]:
    """Iterate the paths of those schemas within a schema that are wanted."""
    for way, node in nodes(schema):
        if wanted(node):
            numbered = zip(("", *way), way, strict=False)
            yield tuple(int(step) if before in LISTS else step for before, step in numbered)


def _is_object(node: Json) -> bool:
    return "object" in types_of(node)


def _is_plain(node: Json) -> bool:
    return types_of(node) == ("string",) and "enum" not in node


def _break_items(body: Json, _: Random) -> Iterable[Json]:
    for path, schema in changes.schemas(body):
        for inner in _inner(schema, _is_plain):
            yield changes.put(body, (*path, *inner), {"type": "array"})


def _break_keywords(body: Json, _: Random) -> Iterable[Json]:
    within: tuple[Json, ...] = ({"type": {"x": 1}}, {"type": "text"}, {"type": "string", "format": []})
    outside: tuple[Json, ...] = ({"properties": []}, {"required": None}, {"$defs": {"one": []}})
    for path, schema in changes.schemas(body):
        for inner in _inner(schema, _is_plain):
            for wrong in within:
                yield changes.put(body, (*path, *inner), wrong)
        for wrong in outside:
            yield changes.put(body, path, {**schema, **wrong})


def _breaking(wanted: Callable[[Json], bool], *changed: Callable[[Json], Json]) -> Mutate:
    """Make a mutator of strict schemas: each wanted schema within one is changed in each way."""

    def mutate(body: Json, _: Random) -> Iterable[Json]:
        for path, schema in changes.schemas(body, strict=True):
            for inner in _inner(schema, wanted):
                node: Any = schema
                for step in inner:
                    node = node[step]
                for change in changed:
                    yield changes.put(body, (*path, *inner), change(node))

    return mutate


def _without(name: str) -> Callable[[Json], Json]:
    return lambda node: {key: value for key, value in node.items() if key != name}


def _with(**members: Any) -> Callable[[Json], Json]:
    return lambda node: {**node, **members}


def _forbidding(keyword: str) -> Callable[[Json], Json]:
    values: dict[str, Any] = {
        "allOf": [{"type": "string"}],
        "oneOf": [{"type": "string"}],
        **dict.fromkeys(("minProperties", "maxProperties"), 1),
        "uniqueItems": True,
    }
    return _with(**{keyword: values.get(keyword, {})})


def _partly_required(node: Json) -> Json:
    return {**node, "required": list(node.get("properties") or {})[1:]}


def _is_filled_object(node: Json) -> bool:
    return _is_object(node) and bool(node.get("properties"))


def _deep(_node: Json) -> Json:
    schema: Json = {"type": "string"}
    for _level in range(MOST_LEVELS + 1):
        properties = {"next": schema}
        schema = {"type": "object", "properties": properties, "required": ["next"], "additionalProperties": False}
    return schema


def _wide(node: Json) -> Json:
    names = [f"p{number}" for number in range(MOST_PROPERTIES + 1)]
    return {**node, "properties": {name: {"type": "string"} for name in names}, "required": names}


def _break_size(body: Json, chance: Random) -> Iterable[Json]:
    many = {"type": "string", "enum": [f"v{number}" for number in range(MOST_VALUES + 1)]}
    long = {"type": "string", "enum": [str(number).zfill(130) for number in range(MOST_VALUES)]}
    wordy = {"type": "string", "enum": [str(number).zfill(_WORDY) for number in range(LONG_ENUM + 1)]}
    for path, schema in changes.schemas(body, strict=True):
        inner = list(_inner(schema, _is_plain))
        if inner:
            place = (*path, *chance.choice(inner))
            for values in (many, long, wordy):
                yield changes.put(body, place, values)
        if chance.randrange(4) == 0:  # it takes a while to judge
            yield changes.put(body, path, _wide(schema))


def _check_schema_given(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    answer = body.response_format
    if isinstance(answer, JsonSchemaAnswer) and answer.json_schema.strict and answer.json_schema.schema is None:
        where = "/response_format/json_schema"
        yield Violation(words.missing(f"{where}/schema"), where)


def _break_schema_given(body: Json, _: Random) -> Iterable[Json]:
    if changes.schema_answer(body).get("strict"):
        yield changes.drop(body, ("response_format", "json_schema", "schema"))


def _rule(topic: Topic, name: str, says: str, source: str, mutate: Mutate) -> Rule[ChatRequest]:
    return Rule(name, says, source, _check(topic), mutate)


RULES: tuple[Rule[ChatRequest], ...] = (
    Rule(
        "chat.strict-schema-missing",
        "An answer that is to follow its schema strictly has one.",
        f"wire/openai_chat.md section 1; {PROBED} (for `json_schema` itself)",
        _check_schema_given,
        _break_schema_given,
    ),
    _rule(
        "root",
        "chat.schema-root",
        "A schema is of type object, without oneOf, anyOf, allOf, enum and not at its root; an empty one is none.",
        "wire/openai_chat.md section 3; root combinators of functions that are not strict: reported in public issues",
        _break_root,
    ),
    _rule(
        "malformed",
        "chat.schema-malformed",
        "A schema is one: types have known names, and what stands at a keyword is of the kind it wants.",
        "reported in public issues: [] is not of type 'object', 'boolean', for functions that are not strict too",
        _break_keywords,
    ),
    _rule(
        "items",
        "chat.schema-array-items",
        "An array tells its items.",
        "wire/gemini_schema.md section 6 (array schema missing items)",
        _break_items,
    ),
    _rule(
        "additional-properties",
        "chat.strict-additional-properties",
        "In a strict schema every object has `additionalProperties: false`.",
        _STRICT,
        _breaking(_is_object, _without("additionalProperties"), _with(additionalProperties=True)),
    ),
    _rule(
        "required",
        "chat.strict-required",
        "In a strict schema every property is required, and nothing else.",
        _STRICT,
        _breaking(_is_filled_object, _without("required"), _partly_required),
    ),
    _rule(
        "reference",
        "chat.strict-reference",
        "In a strict schema a `$ref` stands alone.",
        "reported in public issues: the error names the keywords",
        _breaking(lambda node: "$ref" in node, _with(description="See there.")),
    ),
    _rule(
        "keyword",
        "chat.strict-keyword",
        "A strict schema has no allOf, oneOf, not, conditions, dependencies, patterns or counts of names, uniqueItems.",
        f"{_STRICT}; oneOf, patternProperties, uniqueItems, minProperties and maxProperties: reported in public issues",
        _breaking(_is_plain, *(_forbidding(keyword) for keyword in FORBIDDEN)),
    ),
    _rule(
        "type",
        "chat.strict-type",
        "In a strict schema everything but a union and a reference has a type.",
        "reported in public issues: schema must have a 'type' key",
        _breaking(_is_plain, _without("type"), lambda _node: {}),
    ),
    _rule(
        "format",
        "chat.strict-format",
        "The formats of strict schemas are date-time, time, date, duration, email, hostname, ipv4, ipv6 and uuid.",
        _STRICT,
        _breaking(_is_plain, _with(format="uri"), _with(format="phone")),
    ),
    _rule(
        "nesting",
        "chat.strict-nesting",
        "A strict schema is at most 10 levels deep.",
        _STRICT,
        _breaking(_is_plain, _deep),
    ),
    _rule(
        "size",
        "chat.strict-size",
        "A strict schema has at most 5000 properties, 1000 enum values, 120,000 characters in names and values, and "
        "15,000 in an enum of more than 250 values.",
        _STRICT,
        _break_size,
    ),
)
