"""Schemas made to crash, hang or blow up the converter."""

import json

import pytest

from cpu_limit import cpu_limit
from dragoman.interpreter.schema.openapi import to_openapi
from dragoman.interpreter.schema.plain import adapt_gemini, adapt_root, to_json_schema
from dragoman.interpreter.schema.roots import to_anthropic_output, to_openai_strict


def fan_out(levels):
    definitions = {
        f"d{i}": {"properties": {"a": {"$ref": f"#/$defs/d{i + 1}"}, "b": {"$ref": f"#/$defs/d{i + 1}"}}}
        for i in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{levels}": {"type": "string"}}}


def nest(levels, keyword="properties"):
    schema = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}} if keyword == "properties" else {keyword: [schema]}
    return {"type": "object", "properties": {"deep": schema}}


HOSTILE = {
    "references that fan out": fan_out(30),
    "references with siblings that fan out": {
        "properties": {"p": {"$ref": "#/$defs/d0", "title": "t"}},
        "$defs": {
            **{
                f"d{i}": {"properties": {name: {"$ref": f"#/$defs/d{i + 1}", "title": "t"} for name in "ab"}}
                for i in range(28)
            },
            "d28": {"type": "string"},
        },
    },
    "allOf that fans out": {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)},
    },
    "a chain of references": {
        "properties": {"p": {"$ref": "#/$defs/d0"}},
        "$defs": {**{f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(1500)}, "d1500": {}},
    },
    "a chain of allOf": {
        "properties": {"p": {"$ref": "#/$defs/d0"}},
        "$defs": {**{f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}]} for i in range(1500)}, "d1500": {}},
    },
    "a reference to itself": {"properties": {"p": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}},
    "references in a ring": {
        "properties": {"p": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
    },
    "the root inside itself": {"type": "object", "properties": {"p": {"$ref": "#"}, "q": {"$ref": "#"}}},
    "the root inside its own allOf": {"allOf": [{"$ref": "#"}]},
    "nested properties": nest(60),
    "nested anyOf": nest(60, "anyOf"),
    "nested allOf": nest(60, "allOf"),
    "nested too deeply": nest(400),
    "a wide object": {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(6000)}},
    "a long description by reference": {
        "properties": {f"p{i}": {"$ref": "#/$defs/A"} for i in range(400)},
        "$defs": {"A": {"type": "string", "description": "x" * 50_000}},
    },
    "wide allOf": {
        "properties": {"p": {"allOf": [{"$ref": "#/$defs/A"}] * 1500}},
        "$defs": {"A": {"properties": {f"p{i}": {"type": "string"} for i in range(500)}}},
    },
    "garbage in every place": {
        "type": 5,
        "properties": {
            "a": 1,
            "b": [],
            "c": "x",
            "d": None,
            "e": {
                "type": {},
                "items": 7,
                "enum": 3,
                "required": "a",
                "anyOf": {},
                "format": [],
                "minimum": "x",
                "title": [1],
            },
        },
        "required": 5,
    },
    "a list": [1, 2],
    "a string": "object",
    "a number": 5,
    "false": False,
    "enum of everything": {"enum": [None, {}, [], "", 0, -0.0, 1e300, False]},
    "an unfound root reference": {"$ref": "http://x/y"},
    "empty combinators": {
        "type": "object",
        "properties": {"p": {"anyOf": [], "oneOf": [], "allOf": []}, "q": {"anyOf": [False]}, "r": {"enum": []}},
    },
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_schema_degrades_and_never_hangs_or_crashes(hostile):

    schema = json.dumps(hostile).encode()
    for convert_schema in (to_openapi, to_json_schema, adapt_gemini, adapt_root, to_anthropic_output, to_openai_strict):
        with cpu_limit():
            converted = convert_schema(schema)
        assert converted.schema is None or json.loads(converted.schema) is not None
        assert converted.schema is None or len(converted.schema) < 20 * len(schema) + 2_000_000


def test_a_schema_cut_for_its_size_has_a_note():
    converted = to_openapi(json.dumps(fan_out(30)).encode())
    assert any("too large" in note.what for note in converted.notes)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'{"a":1e999}', b"[" * 100_000])
def test_what_is_not_json_gives_no_schema_and_a_note(text):
    converted = to_openapi(text)
    assert converted.schema is None
    [note] = converted.notes
    assert (note.where, note.kind) == ("", "dropped")
    assert note.what.startswith("the schema cannot be parsed: ")
