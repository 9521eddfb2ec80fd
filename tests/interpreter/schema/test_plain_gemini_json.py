import json

import pytest

from dragoman.interpreter.schema.arguments import restore_arguments
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.schema.plain import adapt_gemini


def adapt_part(schema):
    outcome = adapt_gemini(json.dumps(schema).encode())
    return json.loads(outcome.schema or b"null"), outcome


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"object","properties":{"a":{"type":["string","null"],"multipleOf":5,"x-y":1}}}',
        b'{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}',
        b'{"type":"object","additionalProperties":{"type":"string"}}',
        b'{"type":"object","properties":{"a":{"type":"object","additionalProperties":false}}}',
        b'{"type":"object","patternProperties":{"^x":{"type":"string"}}}',
    ],
)
def test_what_gemini_takes_or_ignores_is_returned_as_the_very_same_bytes(text):
    outcome = adapt_gemini(text)
    assert outcome.schema is text
    assert outcome.notes == ()


@pytest.mark.parametrize(
    "text",
    [b"{}", b"null", b"true", b'{"type":"object"}', b'{"type":"object","properties":{},"additionalProperties":false}'],
)
def test_a_tool_without_parameters_has_no_schema(text):
    assert adapt_gemini(text).schema is None


def test_definitions_move_and_references_follow():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/A"}},
        "definitions": {"A": {"type": "string"}},
    }
    assert adapt_part(schema)[0] == {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "string"}},
    }


def test_a_reference_with_siblings_is_inlined_and_they_win():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A", "description": "mine"}},
        "$defs": {"A": {"type": "string", "description": "theirs"}},
    }
    assert adapt_part(schema)[0]["properties"]["a"] == {"type": "string", "description": "mine"}


def test_siblings_of_a_recursive_reference_are_next_to_a_union_of_only_it():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N", "description": "the next"}}}
    document, outcome = adapt_part({"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}})
    kept = {"description": "the next", "anyOf": [{"$ref": "#/$defs/N"}]}
    assert document["$defs"]["N"]["properties"]["next"] == kept
    assert outcome.notes == ()


def test_changes_in_an_inlined_copy_are_not_losses_of_its_reference():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N", "anyOf": [{"title": "t"}]}}}
    top = {"$ref": "#/$defs/N", "description": "d"}
    _, outcome = adapt_part({"type": "object", "properties": {"n": top}, "$defs": {"N": node}})
    assert {(note.where, note.kind) for note in outcome.notes} == {
        ("/properties/n", "approximated"),
        ("/$defs/N/properties/next/anyOf", "approximated"),
    }


def test_an_external_reference_is_replaced_by_a_description():
    document, outcome = adapt_part({"type": "object", "properties": {"a": {"$ref": "https://example.com/a"}}})
    assert document["properties"]["a"] == {"description": "(as described at https://example.com/a)"}
    assert [(note.where, note.kind) for note in outcome.notes] == [("/properties/a/$ref", "approximated")]


def test_boolean_schemas_become_objects_or_go():
    schema = {"type": "object", "properties": {"yes": True, "no": False, "list": {"type": "array", "items": True}}}
    document, _ = adapt_part(schema)
    assert document["properties"] == {"yes": {}, "list": {"type": "array", "items": {}}}


def test_a_root_that_is_no_object_is_wrapped():
    document, outcome = adapt_part({"type": "array", "items": {"type": "integer"}})
    assert document["properties"] == {"value": {"type": "array", "items": {"type": "integer"}}}
    assert outcome.undo is not None
    assert restore_arguments('{"value":[1.0,2]}', outcome.undo) == "[1,2]"


def test_integers_are_restored_wherever_the_schema_requires_them():
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "x": {"type": "number"},
            "list": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
            "pair": {"prefixItems": [{"type": "number"}, {"type": "integer"}]},
            "map": {"additionalProperties": {"type": ["integer", "null"]}},
            "tree": {"$ref": "#/$defs/T"},
        },
        "$defs": {"T": {"properties": {"id": {"type": "integer"}, "children": {"items": {"$ref": "#/$defs/T"}}}}},
    }
    _, outcome = adapt_part(schema)
    assert outcome.undo is not None
    sent = '{"n":1.0,"x":1.0,"list":[2.0,"3.0"],"pair":[1.0,2.0],"map":{"a":3.0,"b":null},"tree":{"id":4.0,"children":[{"id":5.0}]}}'
    assert (
        restore_arguments(sent, outcome.undo)
        == '{"n":1,"x":1.0,"list":[2,"3.0"],"pair":[1.0,2],"map":{"a":3,"b":null},"tree":{"id":4,"children":[{"id":5}]}}'
    )


def test_a_schema_without_integers_needs_no_undo():
    assert adapt_gemini(b'{"type":"object","properties":{"integer":{"type":"string"}}}').undo is None


@pytest.mark.parametrize(
    "words",
    [
        {"required": ["ghost"]},
        {"title": "t"},
        {"description": "d"},
        {"propertyOrdering": []},
        {"additionalProperties": True},
        {"$schema": "https://json-schema.org/draft/2020-12/schema"},
        {"$id": "x"},
        {"$comment": "c"},
        {"$defs": {"A": {"type": "string"}}},
        {"definitions": {"A": {"type": "string"}}},
    ],
    ids=lambda words: next(iter(words)),
)
def test_a_description_at_the_root_makes_no_parameters(words):
    assert adapt_part({"type": "object", "properties": {}, **words})[0] is None


@pytest.mark.parametrize("root", [{"minProperties": 1}, {"additionalProperties": {"type": "string"}}, {"x-y": 1}])
def test_a_root_with_constraints_is_sent(root):
    assert adapt_part({"type": "object", **root})[0] == {"type": "object", **root}


@pytest.mark.parametrize(
    "keyword", ["additionalProperties", "unevaluatedProperties", "unevaluatedItems", "additionalItems"]
)
def test_where_a_boolean_is_understood_it_stays(keyword):
    for content in (True, False):
        schema = {"type": "object", "properties": {"p": {"type": "object", "properties": {}, keyword: content}}}
        assert adapt_part(schema)[0] == schema


def test_an_unsatisfiable_property_is_dropped_with_a_note():
    document, outcome = adapt_part({"type": "object", "properties": {"a": {"type": "string"}, "no": False}})
    assert document["properties"] == {"a": {"type": "string"}}
    assert outcome.notes == (Note("/properties/no", "a schema that accepts no value", "dropped"),)


def test_a_schema_that_cannot_be_read_is_dropped_with_a_note():
    outcome = adapt_gemini(b"{")
    assert outcome.schema is None
    assert [(note.where, note.kind) for note in outcome.notes] == [("", "dropped")]


def test_both_kinds_of_definitions_are_put_together():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/A"}, "b": {"$ref": "#/$defs/B"}},
        "definitions": {"A": {"type": "string"}},
        "$defs": {"B": {"type": "number"}},
    }
    document, _ = adapt_part(schema)
    assert document["$defs"] == {"A": {"type": "string"}, "B": {"type": "number"}}
    assert "definitions" not in document
    assert document["properties"] == {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/B"}}


def test_definitions_next_to_an_inlined_reference_stay_if_they_are_referenced():
    inner = {"$ref": "#/$defs/A", "description": "d", "$defs": {"B": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {"a": inner, "b": {"$ref": "#/properties/a/$defs/B"}},
        "$defs": {"A": {"type": "object"}},
    }
    assert adapt_part(schema)[0]["properties"] == {
        "a": {"description": "d", "type": "object", "$defs": {"B": {"type": "string"}}},
        "b": {"$ref": "#/properties/a/$defs/B"},
    }


@pytest.mark.parametrize(
    ("reference", "becomes"),
    [
        ({"$ref": "#"}, "#"),
        ({"$recursiveRef": "#"}, "#"),
        ({"$dynamicRef": "#node"}, "#/$defs/N"),
        ({"$ref": "#node"}, "#/$defs/N"),
    ],
)
def test_a_recursive_reference_with_siblings_names_its_target_plainly(reference, becomes):
    node = {"$dynamicAnchor": "node", "type": "object", "properties": {"next": {**reference, "description": "d"}}}
    document, outcome = adapt_part({"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}})
    assert document["$defs"]["N"]["properties"]["next"] == {"description": "d", "anyOf": [{"$ref": becomes}]}
    assert outcome.notes == ()


def chain(links):
    """A member with words of its own that leads over `links` references to a string."""
    definitions = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(links - 1)}
    return {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/d0", "title": "t"}},
        "$defs": {**definitions, f"d{links - 1}": {"type": "string"}},
    }


def test_a_chain_of_references_with_siblings_is_followed_thirty_one_times():
    document, outcome = adapt_part(chain(31))
    assert document["properties"]["p"] == {"title": "t", "type": "string"}
    assert outcome.notes == ()
    document, outcome = adapt_part(chain(32))
    assert document["properties"]["p"] == {"title": "t", "anyOf": [{"$ref": "#/$defs/d31"}]}
    assert outcome.notes == ()


def test_inlining_stops_at_a_depth_and_leaves_the_rest_as_it_is():
    def bury(schema, levels):
        for _ in range(levels):
            schema = {"not": schema}
        return schema

    definitions = {f"d{i}": bury({"$ref": f"#/$defs/d{i + 1}", "title": "t"}, 42) for i in range(3)}
    definitions["d3"] = {"contains": True, "not": {"contains": True}}
    schema = {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/d0", "title": "t"}},
        "$defs": definitions,
    }
    found = adapt_part(schema)[0]["properties"]["p"]
    for _ in range(3 * 42):
        found = found["not"]
    # 128 steps from the root is the last place that is still fitted.
    assert found == {"title": "t", "contains": {}, "not": {"contains": True}}


def test_a_reference_by_id_is_written_as_a_pointer():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "urn:c"}, "b": {"$dynamicRef": "#x"}},
        "$defs": {"C": {"$id": "urn:c", "type": "string"}, "X": {"$dynamicAnchor": "x"}},
    }
    assert adapt_part(schema)[0]["properties"] == {"a": {"$ref": "#/$defs/C"}, "b": {"$dynamicRef": "#x"}}


def test_a_recursive_reference_with_siblings_follows_moved_definitions():
    node = {"type": "object", "properties": {"next": {"$ref": "#/definitions/N", "description": "d"}}}
    schema = {"type": "object", "properties": {"n": {"$ref": "#/definitions/N"}}, "definitions": {"N": node}}
    assert adapt_part(schema)[0]["$defs"]["N"]["properties"]["next"] == {
        "description": "d",
        "anyOf": [{"$ref": "#/$defs/N"}],
    }


def test_twenty_thousand_schemas_are_inlined_and_further_references_stay():
    members = {f"p{i}": {"$ref": "#/$defs/A", "title": "t"} for i in range(10_001)}
    document, outcome = adapt_part({"type": "object", "properties": members, "$defs": {"A": {"type": "string"}}})
    # The root is one, and a member that is inlined is two.
    assert document["properties"]["p9999"] == {"title": "t", "type": "string"}
    assert document["properties"]["p10000"] == {"title": "t", "anyOf": [{"$ref": "#/$defs/A"}]}
    assert outcome.notes == ()


def test_a_property_named_like_a_keyword_that_may_be_boolean_is_still_a_property():
    document, _ = adapt_part(
        {"type": "object", "properties": {"additionalProperties": True}, "additionalProperties": True}
    )
    assert document == {"type": "object", "properties": {"additionalProperties": {}}, "additionalProperties": True}


def test_a_union_next_to_a_recursive_reference_is_moved_and_reported():
    union = [{"required": ["a"]}, {"required": ["b"]}]
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N", "anyOf": union}}}
    document, outcome = adapt_part({"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}})
    assert document["$defs"]["N"]["properties"]["next"] == {
        "allOf": [{"anyOf": union}],
        "anyOf": [{"$ref": "#/$defs/N"}],
    }
    place = "/$defs/N/properties/next/anyOf"
    assert outcome.notes == (Note(place, "moved into allOf next to a recursive reference", "approximated"),)
