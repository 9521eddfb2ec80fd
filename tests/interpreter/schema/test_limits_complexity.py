"""What makes a strict schema costly to compile."""

import json

import pytest

from dragoman.interpreter.schema.limits import Complexity, measure_complexity

UNION = {"type": ["string", "null"]}


@pytest.mark.parametrize(
    ("schema", "optional", "unions"),
    [
        ({}, 0, 0),
        ({"properties": {"a": {}, "b": {}}, "required": ["a"]}, 1, 0),
        ({"properties": {"a": UNION, "b": {"anyOf": [{}]}, "c": {"oneOf": [{}]}}, "required": ["a", "b", "c"]}, 0, 3),
        ({"properties": {"a": {"type": "array", "items": {"properties": {"x": UNION}}}}, "required": ["a"]}, 1, 1),
        ({"properties": {"a": {"anyOf": [{"properties": {"x": {}}}, True]}}}, 2, 1),
        ({"$defs": {"A": {"properties": {"x": UNION}}}}, 1, 1),
        ({"properties": {"a": True}}, 1, 0),
    ],
)
def test_parameters_are_counted_at_every_level(schema, optional, unions):
    assert measure_complexity(json.dumps(schema).encode()) == Complexity(optional, unions)


@pytest.mark.parametrize("schema", [None, b"{", b"true", b"[]"])
def test_what_is_no_schema_costs_nothing(schema):
    assert measure_complexity(schema) == Complexity(0, 0)
