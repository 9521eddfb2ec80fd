"""Two schemas that hold at once, as one."""

import pytest

from dragoman.interpreter.schema.nodes import intersect_schemas, merge


def merge_nodes(first, second, *, join=True):
    """The merged schema, and the keywords over which the two are at odds."""
    clashes = []
    return merge(first, second, clashes.append, join=join), clashes


@pytest.mark.parametrize(
    ("keyword", "first", "second", "expected"),
    [
        ("minimum", 1, 5, 5),
        ("minimum", 5, 1, 5),
        ("exclusiveMinimum", 1.5, 2, 2),
        ("minLength", 1, 2, 2),
        ("minItems", 1, 2, 2),
        ("minProperties", 1, 2, 2),
        ("minContains", 1, 2, 2),
        ("maximum", 1, 5, 1),
        ("maximum", 5, 1, 1),
        ("exclusiveMaximum", 1.5, 2, 1.5),
        ("maxLength", 2, 1, 1),
        ("maxItems", 2, 1, 1),
        ("maxProperties", 2, 1, 1),
        ("maxContains", 2, 1, 1),
        ("required", ["a", "b"], ["b", "c"], ["a", "b", "c"]),
        ("enum", [1, "1", 2], ["1", 2, 3], ["1", 2]),
        ("allOf", [{"a": 1}], [{"b": 1}], [{"a": 1}, {"b": 1}]),
        ("uniqueItems", True, False, True),
        ("uniqueItems", False, True, True),
        ("uniqueItems", False, None, False),
        ("type", "number", "integer", "integer"),
        ("type", "integer", "number", "integer"),
        ("type", ["string", "null"], "string", "string"),
        ("type", ["string", "null", "boolean"], ["boolean", "string"], ["string", "boolean"]),
        ("type", ["number", "string"], ["integer", "string"], ["integer", "string"]),
        ("type", ["integer", "string"], ["number", "string"], ["integer", "string"]),
        ("type", ["number", "integer"], "integer", "integer"),
        ("type", ["string", "integer"], ["string", "number", "integer"], ["string", "integer"]),
        ("type", "number", ["integer", "number"], "number"),
        ("type", "string", "thing", "string"),
        ("items", {"a": 1}, {"b": 1}, {"allOf": [{"a": 1}, {"b": 1}]}),
        ("additionalProperties", {"a": 1}, False, False),
        ("additionalItems", True, {"b": 1}, {"b": 1}),
        ("contains", {"a": 1}, {"b": 1}, {"allOf": [{"a": 1}, {"b": 1}]}),
        ("propertyNames", {"a": 1}, {}, {"a": 1}),
        ("properties", {"a": 1, "b": {"x": 1}}, {"b": {"y": 1}, "c": 2}, {"a": 1, "b": {"allOf": [{"x": 1}, {"y": 1}]}, "c": 2}),
        ("patternProperties", {"a": {}}, {"b": {}}, {"a": {}, "b": {}}),
        ("$defs", {"a": {}}, {"b": {}}, {"a": {}, "b": {}}),
        ("definitions", {"a": {}}, {"b": {}}, {"a": {}, "b": {}}),
        ("dependentSchemas", {"a": {}}, {"b": {}}, {"a": {}, "b": {}}),
        ("description", "one", "two", "one\ntwo"),
        ("title", "one", "two", "one"),
        ("default", 1, 2, 1),
        ("example", 1, 2, 1),
        ("examples", [1], [2], [1]),
        ("$schema", "a", "b", "a"),
        ("$id", "a", "b", "a"),
        ("$comment", "a", "b", "a"),
        ("$anchor", "a", "b", "a"),
    ],
)  # fmt: skip
def test_compatible_keywords_of_two_schemas_are_merged(keyword, first, second, expected):
    schema, clashes = merge_nodes({keyword: first}, {keyword: second})
    assert schema == {keyword: expected}
    assert type(schema[keyword]) is type(expected)
    assert clashes == []


@pytest.mark.parametrize(
    ("keyword", "first", "second"),
    [
        ("type", "string", "integer"),
        ("enum", [1], [2]),
        ("const", 1, 2),
        ("const", 1, True),
        ("pattern", "a", "b"),
        ("format", "date", "time"),
        ("minimum", 1, "x"),
        ("maximum", "x", 1),
        ("properties", {"a": 1}, []),
        ("properties", [], {"a": 1}),
        ("anyOf", [{"a": 1}], [{"b": 1}]),
        ("multipleOf", 2, 3),
    ],
)
def test_a_real_conflict_is_won_by_the_first_and_reported(keyword, first, second):
    schema, clashes = merge_nodes({keyword: first}, {keyword: second})
    assert schema[keyword] is first
    assert clashes == [keyword]


def test_descriptions_are_joined_or_the_first_is_kept():
    assert merge_nodes({"description": "a"}, {"description": "b"}, join=False) == ({"description": "a"}, [])
    assert merge_nodes({"description": "a"}, {"description": "a"}) == ({"description": "a"}, [])


def test_keywords_of_only_one_schema_are_kept_and_neither_is_mutated():
    first, second = {"a": 1}, {"b": 2}
    assert merge_nodes(first, second) == ({"a": 1, "b": 2}, [])
    assert (first, second) == ({"a": 1}, {"b": 2})


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"a": 1}, {"a": 1}, {"a": 1}),
        (True, True, True),
        (True, {"a": 1}, {"a": 1}),
        ({}, {"a": 1}, {"a": 1}),
        ({"a": 1}, True, {"a": 1}),
        ({"a": 1}, {}, {"a": 1}),
        (False, {"a": 1}, False),
        ({"a": 1}, False, False),
        (True, False, False),
        (True, 1, 1),
        ({"a": 1}, {"b": 1}, {"allOf": [{"a": 1}, {"b": 1}]}),
    ],
)
def test_a_value_that_must_fit_both_has_the_narrower_schema(first, second, expected):
    found = intersect_schemas(first, second)
    assert found == expected
    assert type(found) is type(expected)
