"""Constraints in words."""

import pytest

from dragoman.interpreter.schema.nodes import append_sentences, describe_alternatives, describe_keyword


@pytest.mark.parametrize(
    ("keyword", "value", "words"),
    [
        ("multipleOf", 5, "must be a multiple of 5"),
        ("minimum", 1, "must be at least 1"),
        ("maximum", 2.5, "must be at most 2.5"),
        ("exclusiveMinimum", 0, "must be greater than 0"),
        ("exclusiveMaximum", 9, "must be less than 9"),
        ("exclusiveMaximum", True, None),
        ("minLength", 1, "must have at least 1 characters"),
        ("maxLength", 2, "must have at most 2 characters"),
        ("minItems", 1, "must have at least 1 items"),
        ("maxItems", 2, "must have at most 2 items"),
        ("minProperties", 1, "must have at least 1 members"),
        ("maxProperties", 2, "must have at most 2 members"),
        ("pattern", "^a", "must match the pattern ^a"),
        ("format", "uri", "format: uri"),
        ("not", {"type": "null"}, 'must not match {"type":"null"}'),
        ("not", True, None),
        ("contains", {"const": 1}, 'must contain an item that matches {"const":1}'),
        ("minContains", 1, "at least 1 such items"),
        ("maxContains", 2, "at most 2 such items"),
        ("propertyNames", {"pattern": "^a"}, 'names of members must match {"pattern":"^a"}'),
        ("contentMediaType", "text/html", "content type: text/html"),
        ("contentEncoding", "base64", "content encoding: base64"),
        ("contentSchema", {"type": "object"}, 'its content must match {"type":"object"}'),
        ("additionalProperties", {"type": "string"}, 'other members must match {"type":"string"}'),
        ("additionalProperties", False, None),
        ("default", "x", 'Default: "x"'),
        ("default", False, "Default: false"),
        ("const", "x", "must be x"),
        ("const", True, "must be true"),
        ("enum", [1, 2], "must be one of [1,2]"),
        ("uniqueItems", True, "items must be unique"),
        ("uniqueItems", False, None),
        ("patternProperties", {"^a": {"type": "string"}}, 'members named like ^a must match {"type":"string"}'),
        ("patternProperties", {"a": {}, "b": True}, "members named like a must match {}; members named like b must match true"),
        ("patternProperties", 5, ""),
        ("dependentRequired", {"a": ["b", "c"]}, 'with "a" these are required: "b", "c"'),
        ("dependentSchemas", {"a": {"minProperties": 2}}, 'with "a" it must match {"minProperties":2}'),
        ("dependencies", {"a": ["b"], "c": {"x": 1}}, 'with "a" these are required: "b"; with "c" it must match {"x":1}'),
        ("dependentRequired", 5, ""),
        ("x-order", 1, None),
    ],
)  # fmt: skip
def test_a_keyword_is_described_in_text(keyword, value, words):
    assert describe_keyword({keyword: value}, keyword) == words


def test_a_condition_is_described_with_its_consequence():
    condition = {"required": ["a"]}
    assert describe_keyword({"if": condition}, "if") is None
    assert (
        describe_keyword({"if": condition, "then": {"minimum": 1}, "else": False}, "if")
        == 'if it matches {"required":["a"]} then it must match {"minimum":1} else it must match false'
    )
    assert (
        describe_keyword({"if": True, "else": {"minimum": 1}}, "if")
        == 'if it matches true else it must match {"minimum":1}'
    )


def test_a_long_value_is_cut_to_three_hundred_characters():
    text = "x" * 298
    assert describe_keyword({"default": text}, "default") == f'Default: "{text}"'
    cut = describe_keyword({"default": text + "y"}, "default")
    assert cut == f'Default: "{text}…'
    assert len(cut) - len("Default: ") == 300


def test_alternatives_name_what_each_branch_requires():
    assert (
        describe_alternatives([{"required": ["a", "b"]}, {"required": ["c"]}, {"not": {}}, True])
        == 'at least one of these must be given: "a" and "b", or "c"'
    )
    assert describe_alternatives([{}, {"required": []}]) is None


@pytest.mark.parametrize(
    ("description", "written", "whole"),
    [
        ("Name", ["must be x"], "Name (must be x)"),
        ("Name", ["a", None, "", "b", "a"], "Name (a; b)"),
        ("Name", [None, ""], "Name"),
        (None, ["a"], "(a)"),
        (None, [], ""),
        (5, ["a"], "5 (a)"),
        ({"x": 1}, [], '{"x":1}'),
    ],
)
def test_sentences_follow_the_description_in_brackets(description, written, whole):
    assert append_sentences(description, written) == whole
