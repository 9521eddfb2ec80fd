"""Any schema as one object without combinators at its root."""

import pytest

from cpu_limit import cpu_limit
from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.schema.object_root import accepts_objects, locate_notes, to_object_root, unite_schemas

TEXT = {"type": "string"}
EMPTY = {"type": "object", "properties": {}}
UNITED = "variants are merged into one object"
WORDED = "moved to the description"


def add_root(schema, kind="approximated"):
    notes = []
    root, undo = to_object_root(schema, notes)
    assert {note.kind for note in notes} <= {kind}
    return root, undo, [(note.where, note.what) for note in notes]


def objects(**properties):
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize("schema", [{"type": "object"}, objects(a=TEXT), {"type": "object", "minProperties": 1}])
def test_an_object_is_returned_itself(schema):
    root, undo, notes = add_root(schema)
    assert root is schema
    assert (undo, notes) == (None, [])


@pytest.mark.parametrize("schema", [{}, True, None])
def test_an_empty_schema_is_an_object_without_properties(schema):
    assert add_root(schema) == (EMPTY, None, [])


def test_unsatisfiable_and_invalid_schemas_are_noted():
    notes = []
    assert to_object_root(False, notes) == (EMPTY, None)  # noqa: FBT003 - a schema may be a boolean
    assert to_object_root([], notes) == (EMPTY, None)
    assert to_object_root("x", notes) == (EMPTY, None)
    assert notes == [
        Note("", "a schema that accepts no value is replaced by one without arguments", "approximated"),
        Note("", "not a schema", "dropped"),
        Note("", "not a schema", "dropped"),
    ]


@pytest.mark.parametrize(
    ("schema", "root", "notes"),
    [
        ({"properties": {"a": TEXT}}, objects(a=TEXT), []),
        ({"type": "OBJECT", "title": "t"}, {"type": "object", "title": "t"}, []),
        ({"title": "t"}, {"type": "object", "title": "t"}, []),
        (
            {"type": ["object", "null"], "title": "t"},
            {"type": "object", "title": "t"},
            [("/type", "the arguments must be an object")],
        ),
        ({"$ref": "#/$defs/A", "$defs": {"A": objects(a=TEXT)}}, {**objects(a=TEXT), "$defs": {"A": objects(a=TEXT)}}, []),
        (
            {"$ref": "#/$defs/A", "description": "mine", "$defs": {"A": {"$ref": "#/$defs/B", "description": "a"}, "B": objects()}},
            {**EMPTY, "description": "mine", "$defs": {"A": {"$ref": "#/$defs/B", "description": "a"}, "B": objects()}},
            [],
        ),
        ({"$ref": "#/$defs/A", "$defs": {"A": True}}, {"type": "object", "$defs": {"A": True}}, []),
        (
            {"$ref": "http://x/y", "type": "object"},
            {"type": "object", "description": "(as described at http://x/y)"},
            [("/$ref", "reference http://x/y is not in this schema: moved to the description")],
        ),
        (
            {"allOf": [objects(a=TEXT), True, {**objects(b=TEXT), "description": "b"}], "description": "d"},
            {**objects(a=TEXT, b=TEXT), "description": "d\nb"},
            [],
        ),
        (
            {"allOf": [{"type": "object", "pattern": "a"}, {"pattern": "b"}]},
            {"type": "object", "pattern": "a"},
            [("", "conflicting values of pattern; the first is kept")],
        ),
        (
            {"allOf": [{"allOf": [{"type": "object", "pattern": "a"}, {"pattern": "b"}]}]},
            {"type": "object", "pattern": "a"},
            [("/allOf/0", "conflicting values of pattern; the first is kept")],
        ),
        (
            {"anyOf": [{**objects(a=TEXT), "allOf": [{"pattern": "a"}, {"pattern": "b"}]}]},
            {**objects(a=TEXT), "description": "(one of: {a?})"},
            [("/anyOf/0", "conflicting values of pattern; the first is kept"), ("/anyOf", UNITED)],
        ),
        (
            {"type": ["object", "null"], "anyOf": [objects(a=TEXT)]},
            {**objects(a=TEXT), "description": "(one of: {a?})"},
            [("/anyOf", UNITED), ("/type", "the arguments must be an object")],
        ),
        (
            {"type": "object", "not": {"required": ["a"]}, "description": "d"},
            {"type": "object", "description": 'd (must not match {"required":["a"]})'},
            [("/not", WORDED)],
        ),
        ({"type": "object", "not": True}, {"type": "object"}, [("/not", WORDED)]),
        (
            {**objects(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {**objects(a=TEXT, b=TEXT), "description": '(at least one of these must be given: "a", or "b")'},
            [("/anyOf", WORDED)],
        ),
        ({"type": "object", "anyOf": []}, {"type": "object"}, [("/anyOf", WORDED)]),
        ({"type": "object", "oneOf": [True, TEXT]}, {"type": "object"}, [("/oneOf", WORDED)]),
        (
            {"anyOf": [objects(a=TEXT), {"type": "null"}]},
            {**objects(a=TEXT), "description": "(one of: {a?})"},
            [("/anyOf", UNITED)],
        ),
        (
            {"anyOf": [{**objects(a=TEXT), "required": ["a"]}, {**objects(a=TEXT, b=TEXT), "required": ["b", "a"]}]},
            {**objects(a=TEXT, b=TEXT), "required": ["a"], "description": "(one of: {a} | {a, b})"},
            [("/anyOf", UNITED)],
        ),
        (
            {**objects(x=TEXT), "required": ["x"], "description": "d", "anyOf": [objects(a=TEXT), objects(a={"type": "integer"})]},
            {**objects(x=TEXT, a={"anyOf": [TEXT, {"type": "integer"}]}), "required": ["x"], "description": "d (one of: {a?} | {a?})"},
            [("/anyOf", UNITED)],
        ),
        (
            {"anyOf": [objects(a=TEXT)], "oneOf": [objects(b=TEXT)]},
            {**objects(a=TEXT, b=TEXT), "description": "(one of: {a?}) (one of: {b?})"},
            [("/anyOf", UNITED), ("/oneOf", UNITED)],
        ),
        (
            {"anyOf": [{**objects(a=TEXT), "additionalProperties": False}, {**objects(), "additionalProperties": False}]},
            {**objects(a=TEXT), "description": "(one of: {a?} | {})", "additionalProperties": False},
            [("/anyOf", UNITED)],
        ),
        (
            {"anyOf": [{**objects(a=TEXT), "additionalProperties": False}, {**objects(b=TEXT), "additionalProperties": TEXT}]},
            {**objects(a=TEXT, b=TEXT), "description": "(one of: {a?} | {b?})"},
            [("/anyOf", UNITED)],
        ),
        (
            {"oneOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": TEXT}}], "$defs": {"A": objects(a=TEXT)}},
            {**objects(a=TEXT, b=TEXT), "description": "(one of: {a?} | {b?})", "$defs": {"A": objects(a=TEXT)}},
            [("/oneOf", UNITED)],
        ),
        (
            {"type": "object", "anyOf": [objects(a=TEXT), TEXT, 5]},
            {**objects(a=TEXT), "description": "(one of: {a?} | {})"},
            [("/anyOf", UNITED)],
        ),
    ],
)  # fmt: skip
def test_a_root_becomes_one_plain_object(schema, root, notes):
    found, undo, content = add_root(schema)
    assert found == root
    assert undo is None
    assert content == notes


@pytest.mark.parametrize(
    "schema",
    [
        TEXT,
        {"type": ["string", "null"]},
        {"enum": [1, 2]},
        {"const": {"a": 1}},
        {"type": "object", "enum": [{}]},
        {"type": "object", "const": {}},
        {"anyOf": [TEXT, objects(a=TEXT)]},
        {"anyOf": [5, objects(a=TEXT)]},
        {"oneOf": [TEXT]},
        {"allOf": [objects(), False]},
        {"allOf": [TEXT]},
        {"$ref": "#"},
    ],
)
def test_what_is_no_object_is_put_into_one(schema):
    found, undo, notes = add_root(schema)
    inside = {"$ref": "#/properties/value"} if "$ref" in schema else schema
    assert found == {"type": "object", "properties": {"value": inside}, "required": ["value"]}
    assert undo == ArgumentUndo(wrapped="value", wrapped_kinds=undo.wrapped_kinds)
    assert notes[-1] == ("", 'not an object: sent as property "value" of an object')


@pytest.mark.parametrize(
    ("schema", "kinds"),
    [
        ({"type": "array"}, {"array"}),
        ({"type": ["integer", "null"]}, {"number", "null"}),
        ({"allOf": [TEXT]}, {"string"}),
        ({"type": "object", "enum": [{}]}, {"object"}),
        ({"enum": [1]}, set()),
        ({"anyOf": [TEXT, objects(a=TEXT)]}, set()),
    ],
)
def test_it_is_known_what_kinds_of_value_are_put_into_an_object(schema, kinds):
    assert add_root(schema)[1].wrapped_kinds == kinds


def test_references_follow_what_was_put_into_an_object():
    schema = {
        "type": "array",
        "$schema": "s",
        "items": {"$ref": "#/$defs/A"},
        "prefixItems": [{"$ref": "#"}, {"$ref": "#/items"}, {"$ref": "#anchor"}, {"$ref": "http://x#/items"}, True],
        "contains": {"$ref": "#/definitions/B", "not": {"$ref": "#/contains"}},
        "$defs": {"A": {"$ref": "#/prefixItems/4"}},
        "definitions": {"B": TEXT},
    }
    assert add_root(schema)[0] == {
        "type": "object",
        "properties": {
            "value": {
                "type": "array",
                "items": {"$ref": "#/$defs/A"},
                "prefixItems": [
                    {"$ref": "#/properties/value"},
                    {"$ref": "#/properties/value/items"},
                    {"$ref": "#anchor"},
                    {"$ref": "http://x#/items"},
                    True,
                ],
                "contains": {"$ref": "#/definitions/B", "not": {"$ref": "#/properties/value/contains"}},
            }
        },
        "required": ["value"],
        "$schema": "s",
        "$defs": {"A": {"$ref": "#/properties/value/prefixItems/4"}},
        "definitions": {"B": TEXT},
    }


def test_a_reference_into_a_part_that_was_merged_away_is_dropped_with_a_note():
    schema = {
        "allOf": [objects(a=TEXT), objects(b={"$ref": "#/allOf/0/properties/a", "title": "t"}, c={"$ref": "#/ghost"})]
    }
    found, _, notes = add_root(schema, "dropped")
    assert found["properties"] == {"a": TEXT, "b": {"title": "t"}, "c": {"$ref": "#/ghost"}}
    assert notes == [("", "reference #/allOf/0/properties/a points into a merged schema")]


def test_references_are_followed_fifty_times_and_merges_made_a_thousand_times():
    def chain(links):
        definitions = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(links - 1)}
        return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{links - 1}": objects(a=TEXT)}}

    assert "a" in add_root(chain(50))[0]["properties"]
    assert "value" in add_root(chain(51))[0]["properties"]

    def wide(branches):
        return {"allOf": [objects(**{f"p{i}": TEXT}) for i in range(branches)]}

    assert "p998" in add_root(wide(999))[0]["properties"]
    assert "value" in add_root(wide(1000))[0]["properties"]


def test_the_order_of_keywords_is_kept():
    assert list(add_root({"title": "t", "type": "object", "not": True})[0]) == ["title", "type"]


def test_references_are_resolved_relative_to_their_location():
    embedded = {"$id": "http://x/a", "allOf": [{"$ref": "#/$defs/b"}], "$defs": {"b": objects(a=TEXT)}}
    found, undo, _ = add_root({"allOf": [embedded], "$defs": {"b": TEXT}})
    assert undo is None
    assert found["properties"] == {"a": TEXT}


def test_each_note_has_one_pointer_into_the_callers_schema():
    notes = [
        Note("/properties/value/items/x", "lost", "dropped"),
        Note("/items", "lost", "dropped"),
        Note("/items/minimum", "lost", "approximated"),
    ]
    document = {"items": {"minimum": 1}}
    cut = Note("/items", "lost", "approximated")
    assert locate_notes(notes, document, ArgumentUndo(wrapped="value")) == (cut, notes[1], notes[2])
    assert locate_notes([notes[1], notes[1]], document, None) == (notes[1],)
    assert [note.where for note in locate_notes(notes, document, None)] == ["", "/items", "/items/minimum"]
    assert locate_notes(notes, document, ArgumentUndo(renamed={"a": "b"})) == locate_notes(notes, document, None)


def test_a_value_that_may_fit_either_has_both_schemas_or_the_one():
    assert unite_schemas(TEXT, dict(TEXT)) == TEXT
    assert unite_schemas(TEXT, second={}) == {"anyOf": [TEXT, {}]}
    assert unite_schemas(1, second=True) == {"anyOf": [1, True]}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "object"}},
        {"type": "STRING"},
        {"type": ["string", "null"]},
        {"items": {"type": "object"}},
        {"enum": ["a", "b"]},
        {"const": 1},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"oneOf": [False, {"type": "integer"}], "description": "d"},
        {"allOf": [{"type": "string"}, {}]},
        {"$ref": "#/$defs/list", "$defs": {"list": {"type": "array"}}},
        {"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a2"}]}, "a2": {"type": "null"}}},
    ],
)
def test_a_schema_that_no_object_matches_is_known(schema):
    assert not accepts_objects(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        None,
        {"type": "object"},
        {"type": ["object", "null"]},
        {"enum": [{"a": 1}, "b"]},
        {"anyOf": [{"type": "string"}, {"required": ["a"]}]},
        {"allOf": [{"properties": {}}, {"type": "object"}]},
        {"$ref": "#"},
        {"$ref": "#/nothing"},
        {"anyOf": []},
        {"description": "any"},
    ],
)
def test_a_schema_that_an_object_may_match_is_not_refused(schema):
    assert accepts_objects(schema)


def test_a_chain_of_unions_is_searched_once():
    defs = {f"d{at}": {"anyOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 9} for at in range(20)}
    with cpu_limit():
        assert not accepts_objects({"$ref": "#/$defs/d0", "$defs": {**defs, "d20": {"type": "string"}}})
