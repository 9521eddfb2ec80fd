"""Values that fill schemas: their content, and that they are valid."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.simulator.model.filler import fill
from dragoman.simulator.model.prompt import Evidence, read_clause
from dragoman.simulator.model.schema import Schema, normalise
from dragoman.simulator.model.values import build_match
from shelf import ROOT, needs_shelf

PROMPTS = (
    "",
    "Send 'hello' to ada@example.org on 2025-03-04 at 10:30, see https://example.org/x and src/main.py, 3 copies",
    "What's the weather in Paris, Tokyo and New York in celsius?",
)


def evidence(prompt: str) -> Evidence:
    return Evidence(read_clause(prompt))


def fill_schema(schema: Any, prompt: str = "") -> Any:
    return fill(Schema(schema), evidence(prompt), require_object=False).value


def judge(schema: Any) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(schema, validate_formats=True, offline=True)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 40},
        {"type": "string", "maxLength": 2},
        {"type": "string", "minLength": 3, "maxLength": 3, "pattern": "^[a-z]+$"},
        {"type": "string", "pattern": "^(?:\\+1-)?\\d{3}-\\d{4}$"},
        {"type": "string", "not": {"const": "example"}},
        {"type": "integer", "minimum": 7, "multipleOf": 5},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.1},
        {"type": "integer", "maximum": -3},
        {"type": "number", "minimum": 0, "exclusiveMinimum": 0},
        {"type": "array", "items": {"type": "string"}, "minItems": 3, "uniqueItems": True},
        {"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3, "uniqueItems": True},
        {"type": "array", "prefixItems": [{"const": 1}, {"type": "string"}], "minItems": 2, "items": False},
        {"type": "object", "minProperties": 3},
        {"type": "object", "additionalProperties": {"type": "boolean"}, "required": ["free"]},
        {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"type": "integer", "minimum": 9}}}]},
        {"oneOf": [{"type": "string", "maxLength": 0}, {"type": "integer", "minimum": 100}]},
        {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"k": {"const": "v"}}, "required": ["k"]}]},
        {"if": {"properties": {"k": {"const": 1}}}, "then": {"required": ["x"]}, "type": "object", "required": ["k"]},
        {"type": ["null", "integer"], "not": {"type": "null"}},
        {"type": "object", "properties": {"child": {"$ref": "#"}}, "required": ["child"], "maxProperties": 0}[
            "properties"
        ],
        {"$ref": "#/definitions/a%20b", "definitions": {"a b": {"type": "integer"}}},
        {"const": None},
        {"enum": [None, 5]},
        {"type": "string", "format": "ipv6"},
    ],
)
def test_the_value_matches_the_schema(schema):
    for prompt in PROMPTS:
        assert judge(schema).is_valid(fill_schema(schema, prompt))


@pytest.mark.parametrize(
    "name",
    [
        "date", "date-time", "time", "email", "hostname", "ipv4", "ipv6", "uri", "uuid",
    ],
)  # fmt: skip
def test_there_is_a_text_of_every_common_format(name):
    for prompt in PROMPTS:
        assert judge({"type": "string", "format": name}).is_valid(
            fill_schema({"type": "string", "format": name}, prompt)
        )


def test_formats_are_filled_from_the_prompt():
    form = {
        "type": "object",
        "properties": {
            "when": {"type": "string", "format": "date-time"},
            "day": {"type": "string", "format": "date"},
            "at": {"type": "string", "format": "time"},
            "who": {"type": "string", "format": "email"},
            "where": {"type": "string", "format": "uri"},
        },
        "required": ["day", "at", "who", "where"],
    }
    assert fill_schema(form, PROMPTS[1]) == {
        "day": "2025-03-04",
        "at": "10:30:00Z",
        "who": "ada@example.org",
        "where": "https://example.org/x",
    }


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[A-Z][A-Z0-9_]+-\d+(?:-\d+)*$",
        r"^([/_.\-A-Za-z0-9=, ()!])+$",
        r"^\d{4}-\d{2}-\d{2}to\d{4}-\d{2}-\d{2}$",
        r"^I?\d+[:|-]\d+(?:;\d+[:|-]\d+)*$",
        r"^[a-zA-Z0-9_.-]+\.(png|svg|gif)$",
        r"^(a|(b|c){2,})[^a-z]{3}é?$",
        r"^\$\{[a-z]{1,3}\}$",
    ],
)
def test_a_text_is_written_for_a_simple_pattern(pattern):
    assert judge({"pattern": pattern}).is_valid(build_match(pattern))


def test_a_recursive_schema_ends():
    tree = {
        "type": "object",
        "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["value", "children"],
    }
    assert judge(tree).is_valid(fill_schema(tree, "a tree"))


def test_a_schema_without_an_end_gives_something_all_the_same():
    endless = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    assert not fill(Schema(endless), evidence("")).valid


def test_references_that_fan_out_cost_no_more_than_others():
    steps = {f"s{number}": {"allOf": [{"$ref": f"#/$defs/s{number + 1}"}] * 2} for number in range(40)}
    schema = {"$ref": "#/$defs/s0", "$defs": {**steps, "s40": {"type": "object"}}}
    assert fill(Schema(schema), evidence("anything")).value == {}


def test_null_is_only_given_where_nothing_else_may_be():
    schema = {
        "type": "object",
        "properties": {"a": {"type": ["null", "string"]}, "b": {"anyOf": [{"type": "null"}, {"type": "integer"}]}},
        "required": ["a", "b"],
    }
    assert None not in fill_schema(schema, "anything").values()


def test_schemas_of_gemini_become_schemas_of_json():
    gemini = {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "enum": ["A"], "nullable": True},
            "nullable": {"type": "ARRAY", "items": {"type": "INTEGER", "format": "int32"}, "minItems": "1"},
        },
        "required": ["type", "nullable"],
    }
    assert normalise(gemini) == {
        "type": ["object"],
        "properties": {
            "type": {"type": ["string", "null"], "enum": ["A", None], "nullable": True},
            "nullable": {"type": ["array"], "items": {"type": ["integer"], "format": "int32"}, "minItems": 1},
        },
        "required": ["type", "nullable"],
    }
    result = fill_schema(gemini, "anything")
    assert result["type"] == "A"
    assert isinstance(result["nullable"][0], int)
    assert Schema(gemini).is_valid(result)
    assert not Schema(gemini).is_valid({"type": "B", "nullable": [1]})


_texts = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={
        "minLength": st.integers(0, 8),
        "format": st.sampled_from(["date", "email", "uri", "uuid", "date-time"]),
        "description": st.sampled_from(["A place, e.g. Rome", "The file's path", ""]),
    },
)
_patterned = st.sampled_from(
    [
        r"^[a-z]{2,5}$",
        r"^\d+(\.\d+)?$",
        r"^(red|green)-\w+$",
        r"[^/]+/[^/]+",
        r"^#[0-9A-Fa-f]{6}$",
        r"^\S+@\S+\.\w{2,}$",
    ]
).map(lambda pattern: {"type": "string", "pattern": pattern})


@st.composite
def _numbers(draw: st.DrawFn) -> dict[str, Any]:
    low = draw(st.integers(-1000, 1000))
    schema: dict[str, Any] = {"type": draw(st.sampled_from(["integer", "number"]))}
    if draw(st.booleans()):
        schema["minimum"] = low
    if draw(st.booleans()):
        schema["maximum"] = low + draw(st.integers(10, 500))
    if draw(st.booleans()):
        schema["multipleOf"] = draw(st.sampled_from([1, 2, 5, 10]))
    return schema


_words = st.lists(st.sampled_from(["celsius", "fahrenheit", "a b", "", "x" * 30]), min_size=1, max_size=4, unique=True)
_leaves = st.one_of(
    _texts,
    _patterned,
    _numbers(),
    st.just({"type": "boolean"}),
    st.just({}),
    st.just({"$ref": "#/$defs/node"}),
    _words.map(lambda options: {"type": "string", "enum": options}),
    st.sampled_from([{"const": 3}, {"type": ["string", "null"]}, {"type": "null"}]),
)
_names = st.sampled_from(
    ["location", "path", "url", "query", "count", "email", "unit", "date", "items", "first_name", "x"]
)


def _grown(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    lists = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={"minItems": st.integers(0, 3), "maxItems": st.integers(3, 9)},
    )
    choices = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        lists, _objects(inner), choices.map(lambda parts: {"anyOf": parts}), inner.map(lambda part: {"allOf": [part]})
    )


@st.composite
def _objects(draw: st.DrawFn, inner: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    properties = draw(st.dictionaries(_names, inner, max_size=4))
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.sampled_from([True, False, {"type": "integer"}]))
    return schema


_NODE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
    "required": ["v"],
}
_schemas = _objects(st.recursive(_leaves, _grown, max_leaves=8)).map(
    lambda schema: {**schema, "$defs": {"node": _NODE}}
)


@settings(max_examples=250, deadline=None, derandomize=True)
@given(_schemas, st.sampled_from(PROMPTS))
def test_arguments_validate_for_any_sound_schema(schema, prompt):
    result = fill(Schema(schema), evidence(prompt))
    assert result.valid
    assert judge(schema).is_valid(result.value), result.value
    assert schema["required"] == [name for name in schema["required"] if name in result.value]


def _real() -> list[dict[str, Any]]:
    paths = sorted((ROOT / "corpus" / "schemas").glob("*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").split("\n") if line]


UNSATISFIABLE = {"get_response": "required: a list whose enumeration has texts, no lists"}


@needs_shelf
def test_arguments_validate_for_real_tools():
    rows = [row for row in _real() if "tests" not in row and isinstance(row["parameters"], dict)]
    result = [(row["name"], fill(Schema(row["parameters"]), evidence(row.get("description") or ""))) for row in rows]
    assert len(result) > 2200
    assert [name for name, filled in result if not filled.valid] == list(UNSATISFIABLE)


@needs_shelf
def test_most_schemas_of_the_test_suite_are_satisfied():
    """Only keywords that tools do not use fail: `if`, most `not`, anchors, dynamic references, control characters."""
    rows = [row for row in _real() if any(test["valid"] for test in row.get("tests", ()))]
    schemas = [Schema(row["parameters"]) for row in rows]
    unfit = [schema for schema in schemas if not fill(schema, evidence(""), require_object=False).valid]
    assert len(schemas) > 400
    assert len(unfit) < 30
