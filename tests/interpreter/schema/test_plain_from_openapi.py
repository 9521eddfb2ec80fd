import json

import pytest

from dragoman.interpreter.schema.plain import to_json_schema


def plain(schema):
    converted = to_json_schema(json.dumps(schema).encode())
    assert converted.schema is not None
    return json.loads(converted.schema)


@pytest.mark.parametrize(
    ("google", "expected"),
    [
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": "TYPE_UNSPECIFIED", "description": "d"}, {"description": "d"}),
        ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "STRING", "nullable": False}, {"type": "string"}),
        (
            {"type": "STRING", "enum": ["a"], "format": "enum", "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}], "nullable": True},
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        ),
        ({"ref": "#/defs/A", "nullable": True}, {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}),
        (
            {"type": "ARRAY", "items": {"type": "NUMBER"}, "minItems": "1", "maxItems": "20"},
            {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 20},
        ),
        ({"type": "STRING", "example": "x"}, {"type": "string", "examples": ["x"]}),
        ({"type": "INTEGER", "format": "enum", "enum": ["1", "2"]}, {"type": "integer", "enum": [1, 2]}),
        ({"type": "NUMBER", "enum": ["0.5"]}, {"type": "number", "enum": [0.5]}),
        (
            {"type": "OBJECT", "additionalProperties": {"type": "STRING"}},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ),
        ({"type": "NULL"}, {"type": "null"}),
        ({"type": ["STRING", "null"]}, {"type": ["string", "null"]}),
    ],
)
def test_googles_keywords_become_those_of_json_schema(google, expected):
    assert plain({"type": "OBJECT", "properties": {"p": google}}) == {"type": "object", "properties": {"p": expected}}


def test_definitions_and_references_get_their_json_schema_names():
    google = {"type": "OBJECT", "properties": {"a": {"ref": "#/defs/A"}}, "defs": {"A": {"type": "STRING"}}}
    assert plain(google) == {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "string"}},
    }


def test_property_ordering_becomes_the_order_of_the_properties():
    google = {"type": "OBJECT", "properties": {"a": {}, "b": {}, "c": {}}, "propertyOrdering": ["c", "a", "ghost"]}
    converted = plain(google)
    assert list(converted["properties"]) == ["c", "a", "b"]
    assert "propertyOrdering" not in converted


def test_properties_named_like_googles_keywords_are_kept():
    names = ["type", "nullable", "ref", "defs", "example", "propertyOrdering", "enum"]
    google = {"type": "OBJECT", "properties": {name: {"type": "STRING"} for name in names}}
    assert plain(google)["properties"] == {name: {"type": "string"} for name in names}


def test_data_in_defaults_and_enums_is_not_touched():
    schema = {
        "type": "object",
        "properties": {"p": {"type": "string", "default": {"type": "STRING"}, "enum": ["STRING"]}},
    }
    text = json.dumps(schema).encode()
    assert to_json_schema(text).schema is text


@pytest.mark.parametrize(
    "text", [b'{ "type" : "object" }', b"{}", b"true", b"[]", b"not json", b'{"type":"integer","enum":["1"]}']
)
def test_what_is_plain_already_is_returned_as_the_very_same_bytes(text):
    assert to_json_schema(text).schema is text
    copy = bytes(bytearray(text))
    assert to_json_schema(copy).schema is copy


@pytest.mark.parametrize(
    "keyword",
    ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minimum", "maximum"],
)
def test_numbers_written_as_text_become_numbers(keyword):
    assert plain({keyword: "12"}) == {keyword: 12}
    assert plain({keyword: "1.5"}) == {keyword: 1.5}
    for odd in ("true", '"1"', "many", ""):
        assert plain({keyword: odd}) == {keyword: odd}


@pytest.mark.parametrize(
    ("google", "expected"),
    [
        ({"type": 6, "properties": {"a": {"type": 1}}}, {"type": "object", "properties": {"a": {"type": "string"}}}),
        ({"type": 7}, {"type": "null"}),
        ({"type": 0, "title": "t"}, {"title": "t"}),
        ({"type": 8}, {"type": 8}),
        ({"type": True}, {"type": True}),
        ({"type": "integer", "format": "enum", "enum": ["1"]}, {"type": "integer", "enum": [1]}),
        ({"type": "number", "format": "enum", "enum": ["1.5", "x", 2]}, {"type": "number", "enum": [1.5, "x", 2]}),
        ({"type": "string", "format": "enum", "enum": ["1"]}, {"type": "string", "enum": ["1"]}),
        ({"type": "INTEGER", "enum": [1, 2]}, {"type": "integer", "enum": [1, 2]}),
        ({"type": "STRING", "enum": ["1"]}, {"type": "string", "enum": ["1"]}),
        ({"type": "NULL", "nullable": True}, {"type": "null"}),
        ({"type": ["STRING", "INTEGER"], "nullable": True}, {"type": ["string", "integer", "null"]}),
        ({"type": ["STRING", "null"], "nullable": True}, {"type": ["string", "null"]}),
        (
            {"allOf": [{"type": "STRING"}], "nullable": True},
            {"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        (
            {"oneOf": [{"type": "STRING"}], "nullable": True},
            {"anyOf": [{"oneOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        ({"const": "x", "nullable": True}, {"anyOf": [{"const": "x"}, {"type": "null"}]}),
        (
            {"anyOf": [{"type": "STRING"}, {"type": "NULL"}], "nullable": True},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        ({"enum": ["a", None], "nullable": True}, {"enum": ["a", None]}),
        ({"example": 1, "examples": [2]}, {"example": 1, "examples": [2]}),
        ({"defs": {"A": {}}, "$defs": {"B": {}}}, {"defs": {"A": {}}, "$defs": {"B": {}}}),
        ({"ref": "http://x/y"}, {"ref": "http://x/y"}),
        ({"ref": "#/properties/a"}, {"$ref": "#/properties/a"}),
        ({"propertyOrdering": ["a"], "title": "t"}, {"title": "t"}),
        ({"propertyOrdering": "a", "nullable": 1}, {"propertyOrdering": "a", "nullable": 1}),
    ],
)
def test_each_habit_of_google_has_its_plain_form(google, expected):
    assert plain(google) == expected


@pytest.mark.parametrize(
    ("number", "kind"),
    [(1, "string"), (2, "number"), (3, "integer"), (4, "boolean"), (5, "array"), (6, "object"), (7, "null")],
)
def test_the_number_of_a_type_in_googles_enum_is_understood(number, kind):
    assert plain({"type": number}) == {"type": kind}


def test_the_number_of_no_type_names_none_and_other_numbers_stay():
    assert plain({"type": 0, "title": "t"}) == {"title": "t"}
    for odd in (8, -1, True, 1.5):
        assert plain({"type": odd}) == {"type": odd}
