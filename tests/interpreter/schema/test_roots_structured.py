import json

import pytest

from dragoman.interpreter.schema.arguments import restore_arguments
from dragoman.interpreter.schema.roots import to_anthropic_output, to_openai_strict


def output(schema):
    outcome = to_anthropic_output(json.dumps(schema).encode())
    return json.loads(outcome.schema or b""), outcome


def strict(schema):
    outcome = to_openai_strict(json.dumps(schema).encode())
    return json.loads(outcome.schema or b""), outcome


def property_of(convert, schema):
    return convert({"type": "object", "properties": {"p": schema}, "required": ["p"]})[0]["properties"]["p"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {"type": "integer", "minimum": 1, "maximum": 9},
            {"type": "integer", "description": "(must be at least 1; must be at most 9)"},
        ),
        (
            {"type": "string", "minLength": 2, "description": "Name"},
            {"type": "string", "description": "Name (must have at least 2 characters)"},
        ),
        ({"type": "string", "format": "email"}, {"type": "string", "format": "email"}),
        ({"type": "string", "format": "regex"}, {"type": "string", "description": "(format: regex)"}),
        ({"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "^a+$"}),
        ({"type": "string", "pattern": "(?=a)"}, {"type": "string", "description": "(must match the pattern (?=a))"}),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True},
            {
                "type": "array",
                "items": {"type": "string"},
                "description": "(must have at least 2 items; items must be unique)",
            },
        ),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"const": "x"}, {"const": "x"}),
        ({"enum": [1, None]}, {"enum": [1, None]}),
        (
            {"const": {"a": 1}},
            {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": False, "required": ["a"]},
        ),
    ],
)
def test_keywords_are_supported_by_anthropic_or_described(schema, expected):
    assert property_of(output, schema) == expected


def test_every_object_is_closed_for_anthropic_and_optional_members_stay_optional():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": True}},
    }
    document, outcome = output(schema)
    assert document["additionalProperties"] is False
    assert document["properties"]["a"]["additionalProperties"] is False
    assert "required" not in document
    assert "/properties/a" in [note.where for note in outcome.notes]


@pytest.mark.parametrize(
    "definitions",
    [
        {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}},
        {
            "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}},
            "B": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
        },
        {"A": {"type": "object", "properties": {"root": {"$ref": "#"}}}},
    ],
    ids=["itself", "ring", "root"],
)
def test_recursion_is_cut_for_anthropic_and_noted(definitions):
    document, outcome = output({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": definitions})
    assert any("recursion" in note.what for note in outcome.notes)
    seen = []

    def follow(node, trail):
        if "$ref" in node:
            assert node["$ref"] not in trail
            seen.append(node["$ref"])
            follow(document["$defs"][node["$ref"].rpartition("/")[2]], [*trail, node["$ref"]])
        for child in node.get("properties", {}).values():
            follow(child, trail)

    follow(document, [])
    assert seen


def test_all_of_with_references_is_merged_for_anthropic():
    schema = {
        "type": "object",
        "properties": {"p": {"allOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": {"type": "string"}}}]}},
        "$defs": {"A": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
    }
    merged = output(schema)[0]["properties"]["p"]
    assert sorted(merged["properties"]) == ["a", "b"]
    assert merged["required"] == ["a"]


def test_strict_requires_everything_and_makes_the_optional_nullable():
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "string"},
            "c": {"enum": ["x"]},
            "d": {"const": "x"},
            "e": {"$ref": "#/$defs/E"},
            "f": {"type": ["string", "null"]},
        },
        "required": ["a"],
        "$defs": {"E": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    }
    document, outcome = strict(schema)
    assert document["required"] == list("abcdef")
    assert document["properties"] == {
        "a": {"type": "string"},
        "b": {"type": ["string", "null"]},
        "c": {"type": ["string", "null"], "enum": ["x", None]},
        "d": {"anyOf": [{"type": "string", "const": "x"}, {"type": "null"}]},
        "e": {"anyOf": [{"$ref": "#/$defs/E"}, {"type": "null"}]},
        "f": {"type": ["string", "null"]},
    }
    assert outcome.undo is not None
    sent = '{"a":"1","b":null,"c":null,"d":"x","e":{"n":null},"f":null}'
    assert restore_arguments(sent, outcome.undo) == '{"a":"1","d":"x","e":{},"f":null}'


def test_nulls_are_dropped_at_every_turn_of_a_recursion():
    schema = {
        "$ref": "#/$defs/N",
        "$defs": {"N": {"type": "object", "properties": {"v": {"type": "string"}, "next": {"$ref": "#/$defs/N"}}}},
    }
    _, outcome = strict(schema)
    assert outcome.undo is not None
    assert (
        restore_arguments('{"v":null,"next":{"v":"x","next":{"v":null,"next":null}}}', outcome.undo)
        == '{"next":{"v":"x","next":{}}}'
    )


def test_strict_mode_keeps_supported_keywords_and_describes_the_rest():
    assert property_of(strict, {"type": "integer", "minimum": 1, "multipleOf": 2}) == {
        "type": "integer",
        "minimum": 1,
        "multipleOf": 2,
    }
    assert property_of(strict, {"type": "string", "maxLength": 5}) == {
        "type": "string",
        "description": "(must have at most 5 characters)",
    }
    assert property_of(strict, {"type": "string", "default": "x"})["description"] == '(Default: "x")'


def test_a_strict_schema_passes_openais_own_strictness_unchanged():
    from openai.lib._pydantic import _ensure_strict_json_schema

    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}},
            "c": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {}}]},
        },
    }
    document, _ = strict(schema)
    again = _ensure_strict_json_schema(json.loads(json.dumps(document)), path=(), root=document)
    assert again == document


@pytest.mark.parametrize(
    "content", ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"]
)
def test_the_formats_that_both_vendors_enforce_stay(content):
    schema = {"type": "string", "format": content}
    assert property_of(output, schema) == schema
    in_words = {"type": "string", "description": f"(format: {content})"}
    assert property_of(strict, schema) == (in_words if content == "uri" else schema)


@pytest.mark.parametrize(
    ("kind", "keyword", "value"),
    [
        ("string", "pattern", "^(?:a)"),
        ("number", "multipleOf", 2),
        ("number", "minimum", 1),
        ("number", "maximum", 9),
        ("number", "exclusiveMinimum", 1),
        ("number", "exclusiveMaximum", 9),
        ("array", "minItems", 3),
        ("array", "maxItems", 4),
    ],
)
def test_strict_mode_keeps_the_bounds_that_are_described_for_anthropic(kind, keyword, value):
    schema = {"type": kind, keyword: value, **({"items": {"type": "string"}} if kind == "array" else {})}
    assert property_of(strict, schema) == schema
    result = property_of(output, schema)
    assert keyword not in result
    assert str(value) in result["description"]


def test_anthropic_takes_a_default_as_it_is():
    assert property_of(output, {"type": "string", "default": "x"}) == {"type": "string", "default": "x"}


@pytest.mark.parametrize("convert", [to_anthropic_output, to_openai_strict])
def test_a_schema_that_cannot_be_read_becomes_a_closed_object_with_a_note(convert):
    outcome = convert(b"{")
    assert outcome.schema == b'{"type":"object","properties":{},"additionalProperties":false}'
    assert [(note.where, note.kind) for note in outcome.notes] == [("", "dropped")]


def test_what_is_wrapped_for_a_vendor_is_unwrapped_and_its_nulls_dropped():
    _, outcome = output({"type": "array", "items": {"type": "string"}})
    assert outcome.undo is not None
    assert restore_arguments('{"value":["a"]}', outcome.undo) == '["a"]'
    inner = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/B"}}}
    definitions = {"B": {"type": "object", "properties": {"c": {"type": "string"}}}}
    _, outcome = strict({"type": "array", "items": inner, "$defs": definitions})
    assert outcome.undo is not None
    assert (
        restore_arguments('{"value":[{"a":null,"b":{"c":null}},{"a":"x","b":null}]}', outcome.undo)
        == '[{"b":{}},{"a":"x"}]'
    )


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"const": "x"}, "string"),
        ({"const": True}, "boolean"),
        ({"const": 1}, "integer"),
        ({"const": 1.5}, "number"),
        ({"const": None}, "null"),
        ({"enum": ["a", 1, "b", None]}, ["string", "integer", "null"]),
        ({"enum": ["a"], "type": "string"}, "string"),
    ],
)
def test_strict_mode_adds_the_type_of_enum_values_and_anthropic_does_not_need_it(schema, kind):
    assert property_of(strict, schema) == {**schema, "type": kind}
    assert property_of(output, schema) == schema
