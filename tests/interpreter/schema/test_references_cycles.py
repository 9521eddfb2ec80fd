"""Which definitions refer to each other in a circle."""

import pytest

from dragoman.interpreter.schema.references import References, find_cycles, find_definition


def rings(definitions, keyword="$defs"):
    """The circles as sets of names, those of one member left out."""
    root = {keyword: {name: {"anyOf": [{"$ref": target} for target in to]} for name, to in definitions.items()}}
    found = find_cycles(root, References(root))
    assert found.keys() == {f"/{keyword}/{name.replace('/', '~1')}" for name in definitions}
    groups = {}
    for pointer, representative in found.items():
        groups.setdefault(representative, set()).add(pointer.removeprefix(f"/{keyword}/"))
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)


def defs(**targets):
    return {name: [f"#/$defs/{target}" for target in to] for name, to in targets.items()}


@pytest.mark.parametrize(
    ("definitions", "expected"),
    [
        (defs(a="b", b="a"), [["a", "b"]]),
        (defs(a="b", b="c", c="a"), [["a", "b", "c"]]),
        (defs(a="b", b="c", c=""), []),
        (defs(a="bc", b="", c=""), []),
        (defs(a="b", b="a", c="a"), [["a", "b"]]),
        (defs(c="a", a="b", b="a"), [["a", "b"]]),
        (defs(a="bc", b="a", c="d", d="c"), [["a", "b"], ["c", "d"]]),
        (defs(d="c", c="d", b="ca", a="b"), [["a", "b"], ["c", "d"]]),
        (defs(a="bc", b="d", c="d", d="a"), [["a", "b", "c", "d"]]),
        (defs(a="bc", b="d", c="d", d=""), []),
        (defs(a="a"), []),
        (defs(a="x", b="a"), []),
    ],
)
def test_definitions_of_one_cycle_share_their_replacement(definitions, expected):
    definitions = {name: [target for target in to if target != "#/$defs/"] for name, to in definitions.items()}
    assert rings(definitions) == expected


def test_circles_are_found_in_both_kinds_of_definitions_and_through_escaped_names():
    assert rings({"a": ["#/definitions/b~1c"], "b/c": ["#/definitions/a"]}, "definitions") == [["a", "b~1c"]]


def test_a_circle_may_lead_through_a_part_of_a_definition():
    root = {
        "$defs": {
            "a": {"properties": {"p": {"$ref": "#/$defs/b/properties/q"}}},
            "b": {"properties": {"q": {"items": {"$ref": "#/$defs/a"}}}},
        }
    }
    found = find_cycles(root, References(root))
    assert found["/$defs/a"] == found["/$defs/b"]


def test_references_are_resolved_relative_to_their_location():
    root = {
        "$defs": {
            "a": {"$id": "http://x/a", "not": {"$ref": "#/$defs/b"}, "$defs": {"b": {"type": "string"}}},
            "b": {"$ref": "#/$defs/a"},
        }
    }
    found = find_cycles(root, References(root))
    assert found["/$defs/a"] != found["/$defs/b"]


def test_a_document_without_definitions_has_no_circles():
    assert find_cycles(None, References(None)) == {}
    assert find_cycles({"$defs": [1], "definitions": {"a": True}}, References({})) == {
        "/definitions/a": "/definitions/a"
    }


@pytest.mark.parametrize(
    ("pointer", "definition"),
    [
        ("/$defs/a/properties/b", "/$defs/a"),
        ("/definitions/a", "/definitions/a"),
        ("/properties/a/$defs/b", ""),
        ("", ""),
    ],
)
def test_the_definition_around_a_place_is_one_of_the_root(pointer, definition):
    assert find_definition(pointer) == definition
