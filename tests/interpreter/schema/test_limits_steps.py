"""The steps a validator would take are foreseen, whatever keyword leads from a schema to the next."""

from typing import Any

import pytest

from dragoman.interpreter.schema.limits import StepCounter

NEXT = {"$ref": "#/$defs/node"}
TWICE: dict[str, Any] = {"allOf": [NEXT, NEXT]}

LEVELS: list[tuple[str, dict[str, Any], Any]] = [
    ("properties", {"properties": {"a": TWICE}}, {"a": None}),
    ("patternProperties", {"patternProperties": {".": NEXT, "a": NEXT}}, {"a": None}),
    ("additionalProperties", {"additionalProperties": TWICE}, {"a": None}),
    ("unevaluatedProperties", {"unevaluatedProperties": TWICE}, {"a": None}),
    ("items", {"items": TWICE}, [None]),
    ("items as a list", {"items": [TWICE]}, [None]),
    ("prefixItems", {"prefixItems": [TWICE]}, [None]),
    ("additionalItems", {"additionalItems": TWICE}, [None]),
    ("contains", {"contains": TWICE}, [None]),
    ("anyOf", {"anyOf": [{"items": NEXT}, {"items": NEXT}]}, [None]),
    ("oneOf", {"oneOf": [{"items": NEXT}, {"items": NEXT}]}, [None]),
    ("not", {"not": {"items": TWICE}}, [None]),
    ("if and then", {"if": {"items": NEXT}, "then": {"items": NEXT}}, [None]),
    ("if and else", {"if": {"items": NEXT}, "else": {"items": NEXT}}, [None]),
    ("dependentSchemas", {"dependentSchemas": {"a": {"properties": {"a": TWICE}}}}, {"a": None}),
    ("dependencies", {"dependencies": {"a": {"properties": {"a": TWICE}}}}, {"a": None}),
]


def nest(level: Any, depth: int) -> Any:
    """A value in which each level holds the next."""
    value: Any = "leaf"
    for _ in range(depth):
        value = [value] if isinstance(level, list) else {"a": value}
    return value


@pytest.mark.parametrize(("schema", "level"), [row[1:] for row in LEVELS], ids=[row[0] for row in LEVELS])
def test_work_that_doubles_at_each_level_is_foreseen_through_every_keyword(schema, level):
    steps = StepCounter({"$ref": "#/$defs/node", "$defs": {"node": schema}})
    assert steps.count(nest(level, 20)).steps >= 2**20
    assert steps.count(nest(level, 20)).pairs < 1000
    assert steps.count(nest(level, 2)).steps < 100


def test_names_of_members_are_validated_one_by_one():
    steps = StepCounter({"propertyNames": {"$ref": "#/$defs/word"}, "$defs": {"word": {"minLength": 1}}})
    few, many = (steps.count({str(n): 0 for n in range(count)}).steps for count in (10, 1000))
    assert many - few == 2 * 990


def test_a_schema_that_refers_to_itself_for_the_same_value_is_one_step():
    assert StepCounter({"$ref": "#"}).count({}).steps == 2


def test_a_value_deeper_than_can_be_walked_takes_no_end():
    assert StepCounter({"items": {"$ref": "#"}}).count(nest([], 500)).steps == float("inf")


@pytest.mark.parametrize("reference", ["#/$defs/a~1b", "#/%24defs/a~1b", "#here", "#/allOf/0"])
def test_a_place_can_be_named_in_every_way(reference):
    target = {"$anchor": "here", "type": "string"}
    document = {"allOf": [target], "$defs": {"a/b": {"type": "string"}}, "items": {"$ref": reference}}
    assert StepCounter(document).resolve_schema({"$ref": reference})["type"] == "string"
