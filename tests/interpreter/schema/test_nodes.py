"""What counts as a schema inside a schema, and which type a schema means."""

import pytest

from dragoman.interpreter.schema.nodes import (
    REMOVED,
    as_list,
    as_node,
    as_number,
    infer_types,
    iterate_children,
    keyword_at,
    list_names,
    read_document,
    read_types,
    rewrite,
)
from dragoman.wire.json import Malformed

SINGLE = [
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
]
LISTS = ["anyOf", "oneOf", "allOf", "prefixItems", "items"]
MAPS = ["properties", "patternProperties", "$defs", "definitions", "defs", "dependentSchemas", "dependencies"]
INNER = {"type": "string"}


@pytest.mark.parametrize("keyword", SINGLE)
def test_a_keyword_with_one_schema_has_one_child(keyword):
    assert list(iterate_children({keyword: INNER})) == [(f"/{keyword}", INNER)]
    assert list(iterate_children({keyword: False})) == [(f"/{keyword}", False)]


@pytest.mark.parametrize("keyword", LISTS)
def test_a_keyword_with_a_list_has_a_child_for_each_position(keyword):
    assert list(iterate_children({keyword: [INNER, True]})) == [(f"/{keyword}/0", INNER), (f"/{keyword}/1", True)]


@pytest.mark.parametrize("keyword", MAPS)
def test_a_keyword_with_named_schemas_has_a_child_for_each_name(keyword):
    assert list(iterate_children({keyword: {"a/b": INNER, "c": True}})) == [
        (f"/{keyword}/a~1b", INNER),
        (f"/{keyword}/c", True),
    ]


def test_lists_of_names_and_data_are_no_children():
    node = {"dependencies": {"a": ["b"]}, "enum": [{}], "default": {}, "anyOf": {}, "properties": [{}]}
    assert list(iterate_children(node)) == []


def test_a_rewrite_that_changes_nothing_returns_the_node_itself():
    node = {
        "items": INNER,
        "anyOf": [INNER],
        "properties": {"a": INNER},
        "dependencies": {"a": ["b"], "b": INNER},
        "allOf": [],
    }
    assert rewrite(node, "", lambda child, where: child) is node


@pytest.mark.parametrize("keyword", sorted({*SINGLE, *LISTS, *MAPS}))
def test_a_rewrite_visits_the_same_places_as_children_names(keyword):
    for value in (INNER, [INNER, True], {"a/b": INNER, "c": ["d"]}):
        if keyword in MAPS and value is INNER:
            continue
        node = {keyword: value, "title": "t"}
        seen = []
        rewrite(node, "/here", lambda child, where, seen=seen: seen.append((where, child)))
        assert seen == [(f"/here{where}", child) for where, child in iterate_children(node)]


def test_a_rewrite_replaces_each_kind_of_child_in_its_place():
    node = {"not": INNER, "anyOf": [INNER, True], "properties": {"a": INNER, "b": True}, "type": "object"}
    changed = rewrite(node, "", lambda child, where: {"at": where} if child is INNER else child)
    assert changed == {
        "not": {"at": "/not"},
        "anyOf": [{"at": "/anyOf/0"}, True],
        "properties": {"a": {"at": "/properties/a"}, "b": True},
        "type": "object",
    }
    assert node["not"] is INNER


def test_a_rewrite_leaves_out_what_is_removed():
    node = {"not": INNER, "anyOf": [INNER, True], "properties": {"a": INNER, "b": True}, "type": "object"}
    kept = rewrite(node, "", lambda child, where: REMOVED if child is INNER else child)
    assert kept == {"anyOf": [True], "properties": {"b": True}, "type": "object"}


def test_a_rewrite_keeps_lists_of_names_among_dependencies():
    node = {"dependencies": {"a": ["b"], "c": INNER}}
    assert rewrite(node, "", lambda child, where: {"new": 1}) == {"dependencies": {"a": ["b"], "c": {"new": 1}}}


@pytest.mark.parametrize(
    ("content", "types"),
    [
        ("string", ["string"]),
        ("STRING", ["string"]),
        ("Str", ["string"]),
        ("int", ["integer"]),
        ("float", ["number"]),
        ("double", ["number"]),
        ("bool", ["boolean"]),
        ("dict", ["object"]),
        ("map", ["object"]),
        ("list", ["array"]),
        ("tuple", ["array"]),
        ("none", ["null"]),
        ("any", []),
        (5, []),
        (None, []),
        (["string", "str", "null", "thing", 4], ["string", "null"]),
        (["number", "integer", "boolean", "array", "object"], ["number", "integer", "boolean", "array", "object"]),
    ],
)
def test_the_type_names_that_callers_use_are_accepted(content, types):
    assert read_types({"type": content}) == types


@pytest.mark.parametrize(
    ("meant", "keywords"),
    [
        ("object", ["properties", "required", "additionalProperties", "patternProperties", "propertyNames"]),
        ("object", ["minProperties", "maxProperties", "dependentRequired", "dependentSchemas"]),
        ("array", ["items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"]),
        ("string", ["pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType"]),
        ("number", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ],
)
def test_a_schema_without_a_type_means_the_one_its_keywords_are_about(meant, keywords):
    for keyword in keywords:
        assert infer_types({keyword: 1}) == [meant]
        assert infer_types({keyword: 1, "type": "boolean"}) == ["boolean"]
    assert infer_types({"title": "t", "enum": [1]}) == []


def test_values_are_taken_only_for_what_they_are():
    assert as_node({"a": 1}) == {"a": 1}
    assert as_node([1]) is None
    assert as_list([1]) == [1]
    assert as_list("x") == []
    assert [as_number(value) for value in (1, 2.5, 0, True, False, "1", None)] == [1, 2.5, 0, None, None, None, None]
    assert list_names(["b", 1, "a", "b"]) == ["b", "a"]
    assert list_names("ab") == []


def nest(levels, opening=b'{"a":', closing=b"}"):
    return opening * levels + b"1" + closing * levels


@pytest.mark.parametrize(("opening", "closing"), [(b'{"a":', b"}"), (b"[", b"]"), (b'[{"a":', b"}]")])
def test_a_document_may_be_nested_as_deep_as_is_safe_and_no_deeper(opening, closing):
    levels = 128 if len(closing) == 1 else 64
    assert read_document(nest(levels, opening, closing))
    with pytest.raises(Malformed) as refused:
        read_document(nest(levels + 1, opening, closing))
    assert refused.value.message == "the schema is nested too deeply"


def test_a_wide_document_is_not_taken_for_a_deep_one():
    assert len(read_document(b"[" + b"[1]," * 500 + b"1]")) == 501
    assert len(read_document(b"[" + nest(127) + b',[1],{"a":{}}]')) == 3


@pytest.mark.parametrize(
    ("where", "keyword"),
    [
        ("", ""),
        ("/not", "not"),
        ("/properties/not", "properties"),
        ("/properties/properties/not", "not"),
        ("/properties/a/anyOf/0", "anyOf"),
        ("/$defs/if/then", "then"),
        ("/items/0/properties/else", "properties"),
        ("/properties/0", "properties"),
    ],
)
def test_a_subschema_is_under_a_keyword_and_not_under_a_property_name(where, keyword):
    assert keyword_at(where) == keyword
