import json

import pytest

from dragoman.interpreter.schema.arguments import ArgumentUndo, restore_arguments
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.schema.plain import adapt_root


def adapt_part(schema, **options):
    outcome = adapt_root(json.dumps(schema).encode(), **options)
    assert outcome.schema is not None
    return json.loads(outcome.schema), outcome


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}',
        b'{ "$schema" : "http://json-schema.org/draft-07/schema#", "type":"object", "properties":{}, "additionalProperties":false }',
        b'{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"$defs":{"A":{"type":"string"}}}',
        b'{"type":"object","properties":{"a":{"type":"object","properties":{},"required":[]}}}',
    ],
)
def test_a_schema_that_needs_no_change_is_returned_as_the_same_bytes(text):
    assert adapt_root(text, property_keys=True).schema is text
    copy = bytes(bytearray(text))
    assert adapt_root(copy, property_keys=True).schema is copy
    assert adapt_root(text).notes == ()


@pytest.mark.parametrize("schema", [{}, True, None, {"type": "object"}])
def test_an_empty_root_becomes_an_empty_object(schema):
    assert adapt_part(schema)[0] == {"type": "object", "properties": {}}
    assert adapt_part(schema)[1].notes == ()


@pytest.mark.parametrize("schema", [False, [], "x", 5])
def test_a_root_that_is_no_schema_becomes_an_empty_object_with_a_note(schema):
    document, outcome = adapt_part(schema)
    assert document == {"type": "object", "properties": {}}
    assert len(outcome.notes) == 1


def test_empty_properties_are_added_only_on_request():
    text = b'{"type":"object"}'
    assert adapt_root(text, add_properties=False).schema is text


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"type": "string"},
        {"enum": [1, 2]},
        {"anyOf": [{"type": "string"}, {"type": "object"}]},
    ],
)
def test_a_root_that_is_no_object_is_wrapped_and_unwrapped(schema):
    document, outcome = adapt_part(schema, add_properties=False)
    assert document["properties"] == {"value": schema}
    assert document["required"] == ["value"]
    assert outcome.undo is not None
    assert restore_arguments('{"value":["a", "b"]}', outcome.undo) == '["a", "b"]'


def test_references_of_a_wrapped_root_still_point_at_something():
    schema = {
        "type": "array",
        "items": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#"}]},
        "$defs": {"A": {"type": "string"}},
    }
    document, _ = adapt_part(schema)
    assert document["$defs"] == {"A": {"type": "string"}}
    assert document["properties"]["value"]["items"]["anyOf"] == [{"$ref": "#/$defs/A"}, {"$ref": "#/properties/value"}]


def test_a_root_reference_is_inlined_and_definitions_stay():
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"next": {"$ref": "#/$defs/A"}}}}}
    document, outcome = adapt_part(schema)
    assert document["type"] == "object"
    assert document["properties"] == {"next": {"$ref": "#/$defs/A"}}
    assert document["$defs"] == schema["$defs"]
    assert outcome.notes == ()


def test_a_root_all_of_is_merged():
    schema = {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
        ]
    }
    assert adapt_part(schema)[0] == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["a", "b"],
    }


def test_a_root_union_of_objects_is_merged_and_its_variants_described():
    variants = [
        {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
        {"type": "object", "properties": {"kind": {"const": "b"}, "y": {"type": "string"}}, "required": ["kind"]},
    ]
    document, outcome = adapt_part({"oneOf": variants})
    assert document["required"] == ["kind"]
    assert document["properties"]["kind"] == {"anyOf": [{"const": "a"}, {"const": "b"}]}
    assert document["description"] == "(one of: {kind, x} | {kind, y?})"
    assert [note.where for note in outcome.notes] == ["/oneOf"]


def test_root_alternatives_of_required_names_are_described():
    schema = {
        "type": "object",
        "properties": {"a": {}, "b": {}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        "not": {"required": ["c"]},
    }
    document, outcome = adapt_part(schema)
    assert not {"anyOf", "not"} & document.keys()
    assert 'at least one of these must be given: "a", or "b"' in document["description"]
    assert [note.where for note in outcome.notes] == ["/anyOf", "/not"]


def test_required_is_repaired_at_every_level_but_not_in_branches():
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"x": {}}, "required": ["x", "x", "ghost"]},
            "b": {"type": "object", "properties": {"x": {}}, "anyOf": [{"required": ["x"]}]},
        },
    }
    document, outcome = adapt_part(schema)
    assert document["properties"]["a"]["required"] == ["x"]
    assert document["properties"]["b"] == schema["properties"]["b"]
    assert [note.where for note in outcome.notes] == ["/properties/a/required/2"]


def test_illegal_property_names_are_renamed_injectively_and_back():
    names = ["a b", "a_b", "a/b", "é", "x" * 70, "", "fine.name-1"]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}
    document, outcome = adapt_part(schema, property_keys=True)
    sent = list(document["properties"])
    assert len(set(sent)) == len(names)
    assert all(0 < len(name) <= 64 and name.isascii() for name in sent)
    assert document["required"] == sent
    assert outcome.undo is not None
    arguments = json.dumps(dict.fromkeys(sent, "v"))
    assert list(json.loads(restore_arguments(arguments, outcome.undo))) == names


def test_property_names_stay_where_they_may():
    text = b'{"type":"object","properties":{"a b":{"type":"string"}}}'
    assert adapt_root(text).schema is text


@pytest.mark.parametrize("branch", ["anyOf/0", "oneOf/1", "allOf/0", "not", "if", "then", "else"])
def test_a_branch_may_require_what_the_schema_around_it_declares(branch):
    keyword, _, index = branch.partition("/")
    inner = {"type": "object", "required": ["x"]}
    around = [True] * int(index) + [inner] if index else inner
    schema = {"type": "object", "properties": {"p": {"type": "object", "properties": {"x": {}}, keyword: around}}}
    text = json.dumps(schema).encode()
    assert adapt_root(text).schema is text


@pytest.mark.parametrize("name", ["not", "if", "then", "else"])
def test_a_property_named_like_a_branch_is_no_branch(name):
    schema = {"type": "object", "properties": {name: {"type": "object", "required": ["x"]}}}
    document, outcome = adapt_part(schema)
    assert document["properties"][name] == {"type": "object", "required": [], "properties": {}}
    assert [note.where for note in outcome.notes] == [f"/properties/{name}/required/0"]


def test_empty_properties_are_added_to_branches_and_properties_but_not_to_references():
    schema = {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "object"}, {"type": "string"}]},
            "c": {"type": "object", "required": ["x"]},
            "b": {"type": "object", "$ref": "#/$defs/B"},
        },
        "$defs": {"B": {"type": "object", "properties": {"y": {}}}},
    }
    document, outcome = adapt_part(schema)
    assert document["properties"] == {
        "a": {"anyOf": [{"type": "object", "properties": {}}, {"type": "string"}]},
        "c": {"type": "object", "required": [], "properties": {}},
        "b": {"type": "object", "$ref": "#/$defs/B"},
    }
    assert outcome.notes == (Note("/properties/c/required/0", '"x" is required but not declared', "dropped"),)


def test_an_array_without_items_is_an_array_of_anything():
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "array"},
            "b": {"type": "array", "items": {"type": "array"}},
            "c": {"type": "array", "prefixItems": [{}]},
            "d": {"type": "array", "$ref": "#/properties/b"},
        },
    }
    document, outcome = adapt_part(schema)
    assert document["properties"] == {
        "a": {"type": "array", "items": {}},
        "b": {"type": "array", "items": {"type": "array", "items": {}}},
        "c": {"type": "array", "prefixItems": [{}], "items": {}},
        "d": {"type": "array", "$ref": "#/properties/b"},
    }
    assert outcome.notes == ()
    assert adapt_part(schema, property_keys=True)[0]["properties"]["c"] == schema["properties"]["c"]


@pytest.mark.parametrize("required", ["b", {"a": 1}, 1])
def test_what_requires_without_a_list_is_left_out_and_noted(required):
    schema = {"type": "object", "properties": {"a": {"type": "string", "required": required}}, "required": required}
    document, outcome = adapt_part(schema)
    assert document == {"type": "object", "properties": {"a": {"type": "string"}}}
    assert {note.where for note in outcome.notes} == {"/properties/a/required", "/required"}


@pytest.mark.parametrize(
    ("name", "sent"),
    [("a b", "a_b"), ("é", "_"), ("", "_"), ("x" * 65, "x" * 64), ("a/b~c", "a_b_c"), ("$ref", "_ref")],
)
def test_an_illegal_property_name_becomes_the_nearest_legal_one(name, sent):
    schema = {"type": "object", "properties": {name: {"type": "string"}, "ok": {}}, "required": ["ok", name]}
    document, outcome = adapt_part(schema, property_keys=True)
    assert document["properties"] == {sent: {"type": "string"}, "ok": {}}
    assert document["required"] == ["ok", sent]
    assert outcome.undo == ArgumentUndo(renamed={sent: name}, converts_history=True)
    where = "/properties/" + name.replace("~", "~0").replace("/", "~1")
    assert outcome.notes == (Note(where, f'renamed to "{sent}"', "approximated"),)


def test_a_legal_name_that_is_taken_gets_a_mark_of_the_name_that_was_meant():
    schema = {"type": "object", "properties": {"a_b": {}, "a b": {}, "a/b": {}, "y" * 64: {}, "y" * 65: {}}}
    sent = list(adapt_part(schema, property_keys=True)[0]["properties"])
    assert sent == ["a_b", "a_b_c8687a08", "a_b_c14cddc0", "y" * 64, "y" * 55 + "_c4a2649e"]


def test_a_schema_that_cannot_be_read_becomes_an_empty_object_with_a_note():
    outcome = adapt_root(b"{")
    assert outcome.schema == b'{"type":"object","properties":{}}'
    assert [(note.where, note.kind) for note in outcome.notes] == [("", "dropped")]
