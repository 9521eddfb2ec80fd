"""How far a conversion to Google's `Schema` goes: size, depth and recursion are bounded."""

import json
from math import ceil

import pytest

from dragoman.interpreter.schema.openapi import to_openapi

TEXT = {"type": "string"}
CUT = "the schema is too large: the rest is sent as JSON text"
AS_TEXT = {"type": "STRING", "description": "(any JSON value, written as JSON text)"}


def convert(schema):
    outcome = to_openapi(json.dumps(schema).encode())
    return json.loads(outcome.schema or b"null"), [(note.where, note.what) for note in outcome.notes]


def whole_members(member, definitions=None):
    """How many members of one kind are converted before the budget is spent."""
    members = {f"p{i}": member for i in range(5001)}
    document, notes = convert({"type": "object", "properties": members, "$defs": definitions or {}})
    cut = {where for where, what in notes if what == CUT}
    converted = [name for name in members if f"/properties/{name}" not in cut]
    assert document["properties"]["p5000"] == AS_TEXT
    assert converted == list(members)[: len(converted)]
    return len(converted)


@pytest.mark.parametrize(
    ("member", "cost"),
    [
        (TEXT, 1),
        ({"type": "string", "description": "x" * 199}, 1),
        ({"type": "string", "description": "x" * 200}, 2),
        ({"type": "string", "description": "x" * 400}, 3),
        ({"enum": [str(i) for i in range(19)]}, 1),
        ({"enum": [str(i) for i in range(20)]}, 2),
        ({"enum": [str(i) for i in range(60)], "description": "x" * 200}, 5),
    ],
    ids=lambda value: str(value)[:50],
)
def test_five_thousand_schemas_are_converted_and_long_ones_count_for_more(member, cost):
    assert whole_members(member) == 4999 // cost


WIDE = {"type": "object", "properties": {f"q{i}": False for i in range(40)}}


@pytest.mark.parametrize(
    ("member", "cost"),
    [
        ({"type": "array", "items": TEXT}, 2),
        ({"$ref": "#/$defs/A"}, 2),
        ({"$ref": "#/$defs/B"}, 3),
        ({"allOf": [TEXT, {"title": "t"}]}, 3),
        ({"allOf": [WIDE]}, 4),
        ({"allOf": [TEXT], **{f"x{i}": i for i in range(20)}}, 3),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_is_inside_and_what_is_merged_counts_too(member, cost):
    definitions = {"A": TEXT, "B": {**TEXT, "description": "x" * 200}}
    # The last member is begun with what is left.
    assert whole_members(member, definitions) == ceil(4999 / cost)


def nest(levels):
    schema = TEXT
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


def test_thirty_two_levels_are_converted():
    document, notes = convert(nest(32))
    assert notes == []
    for _ in range(32):
        document = document["properties"]["x"]
    assert document == {"type": "STRING"}
    document, notes = convert(nest(33))
    assert notes == [("/properties/x" * 33, CUT)]
    for _ in range(33):
        document = document["properties"]["x"]
    assert document == AS_TEXT


def test_a_union_and_a_list_of_types_are_a_level_each():
    deep = nest(30)
    inner = deep
    for _ in range(29):
        inner = inner["properties"]["x"]
    inner["properties"]["x"] = {"anyOf": [{"type": ["string", "integer"]}, {"type": "boolean"}]}
    assert convert(deep)[1] == []
    inner["properties"]["x"] = {"anyOf": [{"type": "array", "items": {"type": ["string", "integer"]}}, TEXT]}
    assert {what for _, what in convert(deep)[1]} == {CUT}


def test_recursion_is_unrolled_twice():
    node = {"type": "object", "properties": {"v": TEXT, "next": {"$ref": "#/$defs/N"}}}
    document, notes = convert({"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}})
    end = {"type": "OBJECT", "description": "recursive N: members as above"}
    assert document["properties"]["n"]["properties"]["next"]["properties"]["next"] == end
    assert notes == [("/$defs/N", "recursion of N is cut")]


def test_recursion_through_all_of_is_cut_where_it_closes():
    node = {"allOf": [{"allOf": [{"$ref": "#/$defs/N"}]}, {"type": "object"}]}
    document, notes = convert({"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}})
    assert document["properties"]["n"]["type"] == "OBJECT"
    assert notes == [("/$defs/N", "recursion of N is cut")]


def test_a_long_chain_of_references_ends_with_the_budget():
    def end(links):
        definitions = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(links - 1)}
        root = {"type": "object", "properties": {"p": {"$ref": "#/$defs/d0"}}}
        return convert({**root, "$defs": {**definitions, f"d{links - 1}": TEXT}})[0]["properties"]["p"]

    # The root and the member are one each.
    assert end(4999) == {"type": "STRING"}
    assert end(5000) == {"type": "OBJECT", "description": "recursive d4998: members as above"}
