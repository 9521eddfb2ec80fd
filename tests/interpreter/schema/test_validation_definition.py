import json

import pytest

from dragoman.core.request import Tool
from dragoman.interpreter.schema.validation import check_definition


def complaints(schema, **fields):
    parameters = schema if schema is None or isinstance(schema, bytes) else json.dumps(schema).encode()
    tool = Tool(**{"name": "weather", "description": "Tells the weather.", **fields}, parameters=parameters)
    return [(error.where, error.message) for error in check_definition(tool)]


def test_a_good_tool_has_no_errors():
    assert complaints({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}) == []


@pytest.mark.parametrize("schema", [None, b"null", b"{}", b'{"type":"object"}'])
def test_a_tool_may_take_no_arguments(schema):
    assert complaints(schema) == []


def test_all_errors_are_listed_not_only_the_first():
    schema = {
        "type": "array",
        "properties": {},
        "required": ["ghost"],
        "items": {"$ref": "http://evil.example/x"},
        "$schema": "urn:mine",
    }
    wheres = [where for where, _ in complaints(schema, name="has space", description=" ")]
    assert wheres == [
        "/name",
        "/description",
        "/parameters/type",
        "/parameters/required",
        "/parameters/$schema",
        "/parameters/items/$ref",
    ]


@pytest.mark.parametrize("name", ["", "has space", "é", "x" * 129])
def test_a_bad_name_is_an_error(name):
    assert complaints(None, name=name)[0][0] == "/name"


@pytest.mark.parametrize("name", ["a", "get_weather", "files.read", "ns:tool", "server/tool", "A-1", "x" * 128])
def test_a_usual_name_is_fine(name):
    assert complaints(None, name=name) == []


@pytest.mark.parametrize(
    ("schema", "where", "content"),
    [
        ([], "", "must be an object schema"),
        ({"type": "string"}, "/type", 'must have "type": "object"'),
        ({"properties": {}}, "/type", 'must have "type": "object"'),
        ({"type": "object", "properties": {}, "required": ["a"]}, "/required", '"a" is required but not declared'),
        ({"type": "object", "properties": {"a": {"type": "strnig"}}}, "/properties/a/type", "strnig"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "", "regex"),
        ({"type": "object", "$ref": "file:///etc/passwd"}, "/$ref", "external schemas are not fetched"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/g"}}}, "/properties/a/$ref", "points to nothing"),
        ({"type": "object", "$schema": "https://example.com/dialect"}, "/$schema", "unknown dialect"),
        (b"{", "", "truncated"),
        (b'{"type":"object","description":"' + b"x" * 300_000 + b'"}', "", "larger than 262144 bytes"),
    ],
)
def test_a_bad_schema_is_a_clear_error(schema, where, content):
    found, message = complaints(schema)[0]
    assert found == f"/parameters{where}"
    assert content in message


def test_every_fault_of_a_schema_is_reported_at_its_pointer():
    properties = {"a": {"type": "strnig"}, "b/c": {"minimum": "x"}}
    found = complaints({"type": "object", "properties": properties, "required": "a"})
    assert {where for where, _ in found} >= {
        "/parameters/properties/a/type",
        "/parameters/properties/b~1c/minimum",
        "/parameters/required",
    }


def test_a_schema_may_have_a_quarter_of_a_megabyte():
    schema = b'{"type":"object","title":"' + b"x" * (262_144 - 28) + b'"}'
    assert complaints(schema) == []
    assert complaints(schema + b" ") == [("/parameters", "larger than 262144 bytes")]


def test_nesting_and_fan_out_are_bounded():
    deep = {"type": "object", "not": {}}
    for _ in range(70):
        deep = {"type": "object", "not": deep}
    assert "nested deeper" in complaints(deep)[0][1]
    definitions = {
        f"d{i}": {"properties": {"a": {"$ref": f"#/$defs/d{i + 1}"}, "b": {"$ref": f"#/$defs/d{i + 1}"}}}
        for i in range(30)
    }
    wide = {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**definitions, "d30": {}}}
    assert "expand" in complaints(wide)[0][1]


def test_recursion_is_allowed():
    tree = {
        "type": "object",
        "properties": {"t": {"$ref": "#/$defs/T"}},
        "$defs": {"T": {"properties": {"left": {"$ref": "#/$defs/T"}, "right": {"$ref": "#/$defs/T"}}}},
    }
    assert complaints(tree) == []


def test_googles_own_schema_is_not_judged_as_json_schema():
    assert complaints({"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}}, openapi=True) == []
