"""Strings, numbers and enums on their way into Google's `Schema`."""

import json

import pytest

from dragoman.interpreter.schema.arguments import restore_arguments
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.schema.openapi import to_openapi


def convert(schema, *, vertex=False):
    outcome = to_openapi(json.dumps({"type": "object", "properties": {"p": schema}}).encode(), vertex=vertex)
    return json.loads(outcome.schema or b"")["properties"]["p"], outcome


def convert_with_notes(outcome):
    return [(note.where.removeprefix("/properties/p"), note.what) for note in outcome.notes]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer", "exclusiveMinimum": 0.5}, {"minimum": 1}),
        ({"type": "integer", "exclusiveMinimum": 7, "minimum": 3}, {"minimum": 8}),
        ({"type": "integer", "exclusiveMaximum": 9}, {"maximum": 8}),
        ({"type": "integer", "exclusiveMaximum": 9, "maximum": 5}, {"maximum": 5}),
        ({"type": "integer", "exclusiveMaximum": 3, "maximum": 5}, {"maximum": 2}),
        ({"type": "integer", "maximum": 3, "exclusiveMaximum": True}, {"maximum": 2}),
        ({"type": "integer", "maximum": 3, "exclusiveMaximum": False}, {"maximum": 3}),
        ({"type": "integer", "exclusiveMinimum": True}, {}),
        ({"type": "number", "minimum": 3, "exclusiveMinimum": 1}, {"minimum": 3}),
        ({"type": "number", "maximum": 1, "exclusiveMaximum": 3}, {"maximum": 1}),
        ({"type": "number", "minimum": 0, "maximum": 0}, {"minimum": 0, "maximum": 0}),
        ({"type": "number", "minimum": "x"}, {}),
    ],
)
def test_open_bounds_are_closed_without_loss(schema, expected):
    found, outcome = convert(schema)
    assert found == {"type": schema["type"].upper(), **expected}
    assert outcome.notes == ()


@pytest.mark.parametrize(
    ("schema", "keyword", "bound", "words"),
    [
        ({"exclusiveMinimum": 3, "minimum": 1}, "minimum", 3, "greater than 3"),
        ({"exclusiveMinimum": 3, "minimum": 3}, "minimum", 3, "greater than 3"),
        ({"exclusiveMaximum": 3}, "maximum", 3, "less than 3"),
        ({"exclusiveMaximum": 3, "maximum": 5}, "maximum", 3, "less than 3"),
        ({"exclusiveMaximum": True, "maximum": 5}, "maximum", 5, "less than 5"),
    ],
)
def test_an_exclusive_bound_of_a_number_is_weakened_and_described(schema, keyword, bound, words):
    found, outcome = convert({"type": "number", **schema})
    assert found == {"type": "NUMBER", keyword: bound, "description": f"(must be {words})"}
    exclusive = f"exclusive{keyword.capitalize()}"
    assert convert_with_notes(outcome) == [(f"/{exclusive}", f"{exclusive} is weakened to {keyword}")]


@pytest.mark.parametrize(
    ("kind", "known"), [("string", ["enum", "date-time"]), ("number", ["float", "double"]), ("integer", ["int32", "int64"])]
)  # fmt: skip
def test_a_format_is_kept_if_the_backend_supports_it(kind, known):
    for content in known:
        assert convert({"type": kind, "format": content})[0] == {"type": kind.upper(), "format": content}
    found, outcome = convert({"type": kind, "format": "odd"})
    assert found == {"type": kind.upper(), "description": "(format: odd)"}
    assert convert_with_notes(outcome) == [("/format", "format odd is moved to the description")]
    assert convert({"type": kind, "format": 5})[0] == {"type": kind.upper()}


def test_vertex_reads_any_format_of_a_string_and_no_other():
    assert convert({"type": "string", "format": "uri"}, vertex=True)[0] == {"type": "STRING", "format": "uri"}
    found, _ = convert({"type": "number", "format": "uri"}, vertex=True)
    assert found == {"type": "NUMBER", "description": "(format: uri)"}


@pytest.mark.parametrize(
    ("value", "kept"),
    [(0, 0), (3, 3), (3.0, 3), (-1, None), (1.5, None), (2**63 - 1, 2**63 - 1), (2**63, None), ("3", None), (True, None)],
)  # fmt: skip
def test_a_count_stays_if_it_is_one(value, kept):
    for keyword in ("minLength", "maxLength"):
        found, _ = convert({"type": "string", keyword: value})
        assert found.get(keyword) == kept
    for keyword in ("minItems", "maxItems"):
        assert convert({"type": "array", "items": {"type": "string"}, keyword: value})[0].get(keyword) == kept
    for keyword in ("minProperties", "maxProperties"):
        assert convert({"type": "object", keyword: value})[0].get(keyword) == kept


def test_a_pattern_that_is_no_text_is_left_out():
    assert convert({"type": "string", "pattern": 5})[0] == {"type": "STRING"}


@pytest.mark.parametrize(
    ("schema", "expected", "notes"),
    [
        ({"const": True, "nullable": True}, {"type": "BOOLEAN", "nullable": True, "description": "(must be true)"}, ["/const"]),
        ({"enum": [False, False]}, {"type": "BOOLEAN", "description": "(must be false)"}, ["/enum"]),
        ({"enum": [True, None, False]}, {"type": "BOOLEAN", "nullable": True}, []),
        ({"enum": [None, None], "title": "t"}, {"type": "NULL", "title": "t"}, []),
        ({"enum": ["a"], "nullable": True}, {"type": "STRING", "enum": ["a"], "nullable": True}, []),
        ({"const": ""}, {"type": "STRING", "description": '(must be "")'}, ["/const"]),
        ({"enum": ["", None]}, {"type": "STRING", "nullable": True, "description": '(must be "")'}, ["/enum/0"]),
        ({"enum": ["a", ""], "description": "d"}, {"type": "STRING", "enum": ["a"], "description": "d"}, ["/enum/1"]),
        ({"enum": [1, 1.5]}, {"type": "STRING", "enum": ["1", "1.5"]}, ["/enum"]),
        ({"enum": [True, "true"]}, {"type": "STRING", "enum": ["true", '"true"']}, ["/enum"]),
        ({"const": "a", "enum": ["b"]}, {"type": "STRING", "enum": ["a"]}, []),
    ],
)  # fmt: skip
def test_enum_values_are_strings_or_described(schema, expected, notes):
    found, outcome = convert(schema)
    assert found == expected
    assert [where for where, _ in convert_with_notes(outcome)] == notes


def test_the_description_of_values_names_their_keyword():
    assert convert({"const": 5})[1].notes == (
        Note("/properties/p/const", "values are sent as strings and converted back", "approximated"),
    )
    assert convert({"enum": ["a", ""]})[1].notes == (
        Note("/properties/p/enum/1", "the empty string cannot be listed in an enum", "dropped"),
    )
    assert convert({"const": True})[1].notes == (
        Note("/properties/p/const", "the only allowed boolean is moved to the description", "approximated"),
    )


@pytest.mark.parametrize(
    ("values", "sent", "meant"),
    [
        ([1, 2], "1.0", "1"),
        ([1, 2.5], "1.0", "1.0"),
        ([1, "a"], '"a"', '"a"'),
        ([1, "a"], "1.0", "1.0"),
        (["true", True], '"true"', "true"),
        (["true", True], '"\\"true\\""', '"true"'),
    ],
)
def test_listed_values_come_back_as_they_were(values, sent, meant):
    undo = convert({"enum": values})[1].undo
    assert undo is not None
    assert restore_arguments(f'{{"p":{sent}}}', undo) == f'{{"p":{meant}}}'


def test_strings_need_nothing_undone():
    assert convert({"enum": ["a", "b"]})[1].undo is None
    assert convert({"type": "number"})[1].undo is None
