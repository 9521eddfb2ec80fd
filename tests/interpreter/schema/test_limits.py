"""What speaks against compiling a schema."""

import pytest

from dragoman.interpreter.schema.limits import Excess, find_excesses, is_recursive


def find(schema):
    return [(excess.where, excess.message) for excess in find_excesses(schema)]


@pytest.mark.parametrize(
    "dialect",
    [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-07/schema",
    ],
)
def test_the_drafts_from_4_on_are_known(dialect):
    assert find({"$schema": dialect}) == []


@pytest.mark.parametrize("dialect", ["http://json-schema.org/draft-03/schema#", 5, True, "", "mine"])
def test_an_unknown_dialect_is_named(dialect):
    assert find({"$schema": dialect}) == [
        ("/$schema", f"unknown dialect {dialect!r}; use draft 4, 6, 7, 2019-09 or 2020-12")
    ]


@pytest.mark.parametrize("schema", [True, None, [1], {}, {"$schema": None}])
def test_what_has_nothing_to_measure_has_no_excess(schema):
    assert find(schema) == []


def test_every_unresolved_reference_is_reported_with_its_pointer():
    schema = {
        "$ref": "#/ghost",
        "properties": {"a/b": {"$dynamicRef": "http://x/y"}, "c": {"items": {"$recursiveRef": 5}}, "d": {"$ref": "#"}},
    }
    assert find(schema) == [
        ("/$ref", "reference #/ghost points to nothing in the schema, or to an anchor that is defined twice"),
        (
            "/properties/a~1b/$dynamicRef",
            "reference http://x/y points outside the schema; external schemas are not fetched",
        ),
        (
            "/properties/c/items/$recursiveRef",
            "reference 5 points outside the schema; external schemas are not fetched",
        ),
    ]


def test_references_are_resolved_relative_to_their_location():
    inner = {"$id": "http://x/a", "properties": {"p": {"$ref": "#/$defs/b"}}, "$defs": {"b": {}}}
    assert find({"properties": {"p": inner}}) == []
    assert [where for where, _ in find({"properties": {"p": inner, "q": {"$ref": "#/$defs/b"}}})] == [
        "/properties/q/$ref"
    ]


def test_a_schema_may_be_nested_sixty_four_times():
    def nest(levels):
        schema = {}
        for _ in range(levels):
            schema = {"not": schema}
        return schema

    assert find(nest(64)) == []
    assert list(find_excesses(nest(65))) == [Excess("/not" * 65, "nested deeper than 64 schemas")]


def fan_out(levels, leaves):
    """References that double `levels` times, with `leaves` schemas at the end."""
    definitions = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{levels}": {"anyOf": [True] * leaves}}}


def test_references_may_expand_to_ten_thousand_schemas():
    message = "references expand to more than 10000 schemas"
    # The root, three for each doubling, and the leaves twice: 1 + 3 + 2 * (1 + leaves).
    assert find(fan_out(1, 4997)) == []
    assert find(fan_out(1, 4998)) == [("", message)]
    assert find(fan_out(40, 1)) == [("", message)]


@pytest.mark.parametrize("keyword", ["$defs", "definitions"])
def test_definitions_cost_only_where_they_are_used(keyword):
    unused = {f"d{i}": {"anyOf": [True] * 200} for i in range(60)}
    assert find({"type": "object", keyword: unused}) == []
    assert find({"properties": unused}) == [("", "references expand to more than 10000 schemas")]


def test_a_schema_inside_itself_counts_once():
    def recursive(leaves):
        return {"properties": {"a": {"$ref": "#"}}, "anyOf": [True] * leaves}

    # The root, the member, what it refers to, and the leaves.
    assert find(recursive(9997)) == []
    assert find(recursive(9998)) == [("", "references expand to more than 10000 schemas")]


def test_schemas_between_references_count_in_the_chain():
    def chain(links):
        definitions = {f"d{i}": {"not": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(links)}
        return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{links}": {}}}

    assert find(chain(99)) == []
    assert find(chain(100)) == [("", "references expand to more than 10000 schemas")]


def test_a_chain_of_references_may_be_two_hundred_long():
    def chain(links):
        definitions = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(links - 1)}
        return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{links - 1}": {}}}

    assert find(chain(200)) == []
    assert find(chain(201)) == [("", "references expand to more than 10000 schemas")]


@pytest.mark.parametrize(
    ("schema", "recursive"),
    [
        ({"properties": {"a": {"$ref": "#"}}}, True),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}, True),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"not": {"$ref": "#/$defs/a"}}}}, True),
        ({"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {}}}, True),
        ({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "string"}}}, False),
        ({"type": "object", "$defs": {"a": {"$ref": "#/$defs/a"}}}, False),
        ({"$ref": "#/ghost"}, False),
        (True, False),
    ],
)  # fmt: skip
def test_a_schema_is_recursive_if_it_contains_itself(schema, recursive):
    assert is_recursive(schema) is recursive
