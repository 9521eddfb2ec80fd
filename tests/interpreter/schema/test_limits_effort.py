"""How many steps validation would take."""

from math import inf

import pytest

from dragoman.interpreter.schema.limits import MAX_STEPS, StepCounter


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (True, 5, 1),
        ({}, 5, 1),
        ({"properties": {"a": {}, "b": {}}}, {"a": 1}, 2),
        ({"properties": {"a~1b": {}, "a/b": {}}}, {"a/b": 1}, 2),
        ({"properties": {"a": {}}}, [1], 1),
        ({"additionalProperties": {}}, {"a": 1, "b": 2}, 3),
        ({"unevaluatedProperties": {}}, {"a": 1, "b": 2}, 3),
        ({"patternProperties": {"x": {}}}, {"a": 1, "b": 2}, 3),
        ({"additionalProperties": {}}, [1, 2], 1),
        ({"items": {}}, ["a", "b", "c"], 4),
        ({"prefixItems": [{}]}, ["a", "b"], 3),
        ({"additionalItems": {}}, ["a", "b"], 3),
        ({"unevaluatedItems": {}}, ["a", "b"], 3),
        ({"contains": {}}, ["a", "b"], 3),
        ({"items": {}}, {"a": 1}, 1),
        ({"anyOf": [{}, {}]}, 5, 3),
        ({"not": {"not": {}}}, 5, 3),
        ({"$defs": {"a": {}}, "definitions": {"a": {}}, "defs": {"a": {}}, "contentSchema": {}}, 5, 1),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"not": {}}}}, 5, 3),
        ({"$dynamicRef": "#/$defs/a", "$defs": {"a": True}}, 5, 2),
        ({"$recursiveRef": "#/$defs/a", "$defs": {"a": True}}, 5, 2),
        ({"$ref": "#/$defs/ghost"}, 5, 1),
        ({"$ref": "#"}, 5, 2),
        ({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {}}}}, 5, 7),
    ],
)
def test_every_schema_counts_once_for_each_value_it_is_applied_to(schema, value, expected):
    assert StepCounter(schema).count(value).steps == expected


def test_references_are_resolved_relative_to_their_location():
    inner = {"$id": "http://x/a", "$ref": "#/$defs/b", "$defs": {"b": {"not": {}}}}
    document = {"properties": {"p": inner}, "$defs": {"b": {}}}
    assert StepCounter(document).count({"p": 1}).steps == 4


def test_counting_stays_cheap_where_the_work_doubles_with_each_level():
    step = {"properties": {"a": {"$ref": "#/$defs/X"}}}
    schema = {"$ref": "#/$defs/X", "$defs": {"X": {"anyOf": [step, {**step, "minProperties": 1}]}}}

    def count(levels):
        value = 5
        for _ in range(levels):
            value = {"a": value}
        return StepCounter(schema).count(value).steps

    # Each level: the two references to X count twice what is below, plus the two steps and X itself.
    assert [count(levels) for levels in range(4)] == [4, 12, 28, 60]
    assert count(10) == 8 * 2**10 - 4
    assert count(60) == 8 * 2**60 - 4 > MAX_STEPS


def test_arguments_deeper_than_can_be_walked_count_as_infinitely_many():
    def count(levels, **more):
        value = 5
        for _ in range(levels):
            value = {"a": value}
        return StepCounter({"properties": {"a": {"$ref": "#"}}, **more}).count(value).steps

    assert count(150) == 301
    assert count(150, required=[]) == 301
    assert count(149, **{"not": {}}) == 449
    assert count(150, **{"not": {}}) == inf
