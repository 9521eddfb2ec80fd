"""Schemas on their way into the subsets of structured output, place by place."""

import json

import pytest

from dragoman.interpreter.schema.arguments import restore_arguments
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.schema.roots import to_anthropic_output, to_openai_strict

SCALARS = ["string", "number", "boolean", "null"]
ANY = "a value of any type is limited to scalar values"
UNDECLARED = "properties that are not declared cannot be sent"


def close_schema(convert, schema, **root):
    """What becomes of one required member, and the outcome."""
    document = {"type": "object", "properties": {"p": schema}, "required": ["p"], **root}
    outcome = convert(json.dumps(document).encode())
    return json.loads(outcome.schema or b"")["properties"]["p"], outcome


def output(schema, **root):
    return close_schema(to_anthropic_output, schema, **root)


def strict(schema, **root):
    return close_schema(to_openai_strict, schema, **root)


def convert_with_notes(outcome):
    return [(note.where, note.what) for note in outcome.notes]


@pytest.mark.parametrize("schema", [{}, True, None])
def test_any_value_is_narrowed_to_plain_values(schema):
    found, outcome = output(schema)
    assert found == {"type": SCALARS}
    assert outcome.notes == (Note("/properties/p", ANY, "approximated"),)
    assert outcome.narrowed


def test_keywords_for_any_type_stay():
    found, outcome = output({"title": "t", "description": "d", "default": 5, "x-y": 1})
    assert found == {"type": SCALARS, "title": "t", "description": "d", "default": 5}
    assert convert_with_notes(outcome) == [("/properties/p", ANY), ("/properties/p/x-y", "x-y is dropped")]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": ["string"]}, {"type": "string"}),
        ({"type": "INT"}, {"type": "integer"}),
        ({"minimum": 1}, {"type": "number", "description": "(must be at least 1)"}),
        ({"enum": ["a", 1], "type": "string"}, {"type": "string", "enum": ["a", 1]}),
        ({"const": None}, {"const": None}),
        ({"const": "a", "title": "t", "description": "d"}, {"const": "a", "title": "t", "description": "d"}),
        (
            {"const": [1, 2], "description": "d"},
            {"type": "array", "items": {"type": SCALARS}, "description": "d (must be [1,2])"},
        ),
        (
            {"enum": [{"a": 1}, "x"]},
            {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"a": {"const": 1}},
                        "additionalProperties": False,
                        "required": ["a"],
                    },
                    {"const": "x"},
                ]
            },
        ),
        (
            {"enum": [["a"], "x"], "type": ["array", "string"]},
            {
                "anyOf": [
                    {"type": "array", "items": {"type": SCALARS}, "description": '(must be ["a"])'},
                    {"const": "x"},
                ]
            },
        ),
        ({"const": {}}, {"type": "object", "properties": {}, "additionalProperties": False}),
        ({"enum": []}, {"type": SCALARS}),
        ({"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "string"}}),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        ),
        (
            {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        ),
        (
            {"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "integer"}},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        ),
        (
            {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
            {"type": "array", "items": {"anyOf": [{"type": "string"}]}},
        ),
        (
            {"anyOf": [{"type": "string"}, False, {"type": "string"}], "title": "t"},
            {"anyOf": [{"type": "string"}], "title": "t"},
        ),
        ({"anyOf": [False], "type": "string", "description": "d"}, {"type": "string", "description": "d"}),
        (
            {"anyOf": [{"minimum": 1}, {"maximum": 2}], "type": "integer", "description": "d"},
            {
                "anyOf": [
                    {"type": "integer", "description": "(must be at least 1)"},
                    {"type": "integer", "description": "(must be at most 2)"},
                ],
                "description": "d",
            },
        ),
        (
            {"allOf": [{"type": "string", "description": "a"}, {"description": "b"}, True], "title": "t"},
            {"type": "string", "description": "a\nb", "title": "t"},
        ),
        (
            {"allOf": [{"allOf": [{"type": "string"}]}, {"allOf": [{"title": "t"}]}]},
            {"type": "string", "title": "t"},
        ),
        (
            {"type": ["object", "array"], "properties": {"a": {"type": "string"}}, "items": {"type": "string"}},
            {
                "type": ["object", "array"],
                "properties": {"a": {"type": "string"}},
                "additionalProperties": False,
                "items": {"type": "string"},
            },
        ),
        (
            {"type": "object", "properties": {"a": False, "b": {"type": "string"}}, "required": ["a", "b", "c"]},
            {
                "type": "object",
                "properties": {"b": {"type": "string"}},
                "additionalProperties": False,
                "required": ["b"],
            },
        ),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_a_schema_becomes_its_closed_form(schema, expected):
    assert output(schema)[0] == expected


def test_string_constraints_do_not_apply_to_other_types():
    content = {"pattern": "^a$", "minLength": 1, "maxLength": 2}
    found, outcome = output({"type": "integer", **content})
    assert found == {"type": "integer"}
    assert outcome.notes == ()
    found, _ = output({"type": ["integer", "string"], "format": "email", **content})
    assert (found["format"], found["pattern"]) == ("email", "^a$")
    found, _ = output({"enum": ["a"], "format": "email"})
    assert found == {"enum": ["a"], "format": "email"}


@pytest.mark.parametrize("output_of", [output, strict])
def test_a_number_format_is_described_and_noted(output_of):
    found, outcome = output_of({"type": "integer", "format": "int64"}, required=["p"])
    assert found == {"type": "integer", "description": "(format: int64)"}
    assert convert_with_notes(outcome) == [("/properties/p/format", "format is moved to the description")]


@pytest.mark.parametrize("output_of", [output, strict])
def test_constraints_on_array_values_are_described(output_of):
    listed = {"type": "array", "items": {"type": "string"}, "description": "d", "enum": ["a", "b"]}
    found, outcome = output_of(listed, required=["p"])
    assert found == {"type": "array", "items": {"type": "string"}, "description": 'd (must be one of ["a","b"])'}
    assert convert_with_notes(outcome) == [("/properties/p/enum", "enum is moved to the description")]


@pytest.mark.parametrize("pattern", ["(?=a)b", "(?:a)", "a\\b", "a\\B", "(a)\\1", "\\k<a>"])
def test_a_complex_pattern_is_described_for_anthropic(pattern):
    found, outcome = output({"type": "string", "pattern": pattern})
    assert found == {"type": "string", "description": f"(must match the pattern {pattern})"}
    assert convert_with_notes(outcome) == [("/properties/p/pattern", "pattern is moved to the description")]


@pytest.mark.parametrize(("least", "known"), [(0, True), (1, True), (2, False), (1.5, False)])
def test_anthropic_supports_min_items_of_zero_or_one(least, known):
    found, _ = output({"type": "array", "items": {"type": "string"}, "minItems": least})
    assert (found.get("minItems") == least) is known
    assert ("description" in found) is not known


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        *((word, "x") for word in ("$schema", "$id", "$comment", "$anchor", "$dynamicAnchor", "nullable")),
        *((word, {"type": "string"}) for word in ("then", "else", "unevaluatedProperties", "unevaluatedItems")),
        ("propertyOrdering", ["x"]),
        ("required", ["x"]),
    ],
)
def test_keywords_without_a_constraint_are_dropped_without_a_note(keyword, value):
    found, outcome = output({"type": "string", keyword: value})
    assert found == {"type": "string"}
    assert outcome.notes == ()


def test_keywords_outside_the_subset_are_described_and_noted():
    found, outcome = output({"type": "object", "properties": {}, "minProperties": 1, "x/y": 1, "default": {}})
    assert found["description"] == "(must have at least 1 members)"
    assert found["default"] == {}
    assert convert_with_notes(outcome) == [
        ("/properties/p/minProperties", "minProperties is moved to the description"),
        ("/properties/p/x~1y", "x/y is dropped"),
    ]
    found, outcome = strict({"type": "string", "default": "x"})
    assert found == {"type": "string", "description": '(Default: "x")'}
    assert outcome.notes == ()


@pytest.mark.parametrize(
    "open_to", [{"additionalProperties": True}, {"additionalProperties": {}}, {"patternProperties": {"^a": {}}}]
)
def test_members_that_are_not_declared_cannot_be_sent(open_to):
    found, outcome = output({"type": "object", "properties": {"a": {"type": "string"}}, **open_to})
    assert found["additionalProperties"] is False
    assert ("/properties/p", UNDECLARED) in convert_with_notes(outcome)
    assert outcome.narrowed


def test_a_closed_object_needs_no_note():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    found, outcome = output(schema)
    assert found == schema
    assert outcome.notes == ()
    assert not outcome.narrowed


@pytest.mark.parametrize(
    "schema",
    [
        {"prefixItems": [{"type": "string"}]},
        {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
        {"items": [{"type": "string"}], "additionalItems": {"type": "integer"}},
    ],
)
def test_positions_of_a_tuple_are_noted(schema):
    assert convert_with_notes(output(schema)[1]) == [
        ("/properties/p", "the item positions of a tuple are not enforced")
    ]


def test_a_note_about_an_item_has_its_place():
    assert convert_with_notes(output({"type": "array", "items": {}})[1]) == [("/properties/p/items", ANY)]


def test_combinators_without_a_branch_demand_nothing():
    found, outcome = output({"type": "string", "anyOf": [], "oneOf": {}, "allOf": []})
    assert found == {"type": "string"}
    assert outcome.notes == ()


def test_what_is_noted_inside_an_alternative_is_noted_once():
    union = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}], "default": "x"}
    found, outcome = output(union)
    assert found["default"] == "x"
    assert all("default" not in branch for branch in found["anyOf"])
    assert convert_with_notes(outcome) == [("/properties/p/anyOf/0/minimum", "minimum is moved to the description")]


def test_one_of_is_weakened_with_a_note_and_any_of_is_not():
    _, outcome = output({"oneOf": [{"type": "string"}, {"type": "null"}]})
    assert convert_with_notes(outcome) == [("/properties/p/oneOf", "oneOf is weakened to anyOf")]
    assert output({"anyOf": [{"type": "string"}, {"type": "null"}]})[1].notes == ()


def test_conflicts_with_an_alternative_are_noted_inside_and_next_to_it():
    found, outcome = output({"anyOf": [{"type": "string"}, {"type": "integer"}], "type": "string"})
    assert found == {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    what = "conflicting values of type; the first is kept"
    assert outcome.notes == (
        Note("/properties/p/anyOf/1/type", what, "approximated"),
        Note("/properties/p/type", what, "dropped"),
    )


def test_a_conflict_inside_all_of_is_won_by_the_first_and_noted():
    found, outcome = output({"allOf": [{"type": "string"}, {"type": "integer"}]})
    assert found == {"type": "string"}
    assert convert_with_notes(outcome) == [("/properties/p", "conflicting values of type; the first is kept")]


def test_strict_mode_uses_null_for_absent_and_records_where():
    schema = {
        "type": "object",
        "properties": {
            "a/b": {"type": "string"},
            "n": {"type": ["string", "null"]},
            "c": {"const": None},
            "e": {"enum": [None, 1]},
            "u": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "v": {"anyOf": [{"const": "x"}, {"type": "string"}]},
        },
    }
    found, outcome = strict(schema)
    assert found["required"] == ["a/b", "n", "c", "e", "u", "v"]
    where = "/properties/p/properties"
    what = "optional property: null means absent"
    assert convert_with_notes(outcome) == [(f"{where}/a~1b", what), (f"{where}/v", what)]
    assert outcome.undo is not None
    sent = '{"p":{"a/b":null,"n":null,"c":null,"e":null,"u":null,"v":null}}'
    assert restore_arguments(sent, outcome.undo) == '{"p":{"n":null,"c":null,"e":null,"u":null}}'


def test_strict_drops_nulls_inside_lists_unions_and_definitions():
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = {
        "type": ["object", "array"],
        "items": inner,
        "properties": {
            "u": {"anyOf": [{"type": "string"}, inner]},
            "d": {"anyOf": [{"$ref": "#/$defs/D"}, {"type": "string"}]},
            "r": {"$ref": "#/definitions/E~1"},
        },
        "required": ["u", "d", "r"],
    }
    root = {"$defs": {"D": inner}, "definitions": {"E/": inner, "plain": {"type": "string"}}}
    found, outcome = strict(schema, **root)
    assert found["properties"]["r"] == {"$ref": "#/definitions/E~1"}
    assert outcome.undo is not None
    sent = '{"p":{"u":{"a":null},"d":{"a":null},"r":{"a":null}}}'
    assert restore_arguments(sent, outcome.undo) == '{"p":{"u":{},"d":{},"r":{}}}'
    assert restore_arguments('{"p":[{"a":null},{"a":"x"}]}', outcome.undo) == '{"p":[{},{"a":"x"}]}'
    document = json.loads(outcome.schema or b"")
    closed_inner = {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}},
        "additionalProperties": False,
        "required": ["a"],
    }
    assert document["$defs"] == {"D": closed_inner}
    assert document["definitions"] == {"E/": closed_inner, "plain": {"type": "string"}}


def test_an_undo_is_needed_only_where_something_was_optional():
    schema = {"anyOf": [{"type": "string"}, {"type": "object", "properties": {}}], "description": "d"}
    assert strict(schema)[1].undo is None
    assert strict({"type": "array", "items": {"type": "string"}})[1].undo is None
