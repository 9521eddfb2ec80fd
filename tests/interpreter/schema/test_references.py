"""Where references lead: to pointers, anchors and ids of the same document, never out of it."""

import pytest

from dragoman.interpreter.schema.references import (
    References,
    drop_reference,
    find_reference,
    get_last_token,
    trim_to_existing,
)

DOCUMENT = {
    "$defs": {
        "plain": {"type": "string"},
        "a/b~c": {"type": "string"},
        "100%": True,
        "anchored": {"$anchor": "here"},
        "dynamic": {"$dynamicAnchor": "there"},
        "seven": {"$id": "#old"},
        "not a schema": [1],
        "listed": {"anyOf": [{"type": "string"}, {"$anchor": "second"}]},
    }
}


@pytest.mark.parametrize(
    ("reference", "pointer"),
    [
        ("#", ""),
        ("", ""),
        ("#/$defs/plain", "/$defs/plain"),
        ("#/$defs/a~1b~0c", "/$defs/a~1b~0c"),
        ("#/$defs/100%25", "/$defs/100%"),
        ("#/$defs/listed/anyOf/1", "/$defs/listed/anyOf/1"),
        ("#/$defs/listed/anyOf/2", None),
        ("#/$defs/listed/anyOf", None),
        ("#/$defs/not a schema", None),
        ("#/$defs/not a schema/0", None),
        ("#/$defs/ghost", None),
        ("#here", "/$defs/anchored"),
        ("#there", "/$defs/dynamic"),
        ("#second", "/$defs/listed/anyOf/1"),
        ("#old", "/$defs/seven"),
        ("#nowhere", None),
        ("other.json", None),
        ("other.json#/$defs/plain", None),
        ("http://[broken", None),
        (5, None),
        (None, None),
    ],
)
def test_a_reference_is_found_in_the_document_or_not_at_all(reference, pointer):
    assert References(DOCUMENT).locate(reference) == pointer


def test_an_anchor_or_id_that_is_no_text_is_passed_over():
    odd = {"$defs": {"a": {"$anchor": 5}, "b": {"$id": 5}, "c": {"$id": ""}, "d": {"$anchor": "x"}}}
    assert References(odd).locate("#x") == "/$defs/d"
    assert References(odd).locate("#5") is None


def test_an_anchor_that_is_defined_twice_names_nothing():
    """Validators do not agree on which of the two they take."""
    twice = {"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}}
    assert References(twice).locate("#x") is None


EMBEDDED = {
    "$id": "http://example.com/root.json",
    "properties": {"p": {"type": "object"}},
    "$defs": {
        "inner": {
            "$id": "nested/inner.json",
            "$defs": {"deep": {"type": "string"}, "marked": {"$anchor": "mark"}},
            "properties": {"q": {"type": "object"}},
        },
        "urn": {"$id": "urn:data#"},
        "seven": {"$id": "#old"},
    },
}
INNER = "/$defs/inner"


@pytest.mark.parametrize(
    ("reference", "where", "pointer"),
    [
        ("#/properties/p", "", "/properties/p"),
        ("#/properties/p", "/properties/p", "/properties/p"),
        ("#/$defs/deep", f"{INNER}/properties/q", f"{INNER}/$defs/deep"),
        ("#/$defs/deep", "/properties/p", None),
        ("#mark", f"{INNER}/properties/q", f"{INNER}/$defs/marked"),
        ("#mark", "/properties/p", None),
        ("#old", "/properties/p", "/$defs/seven"),
        ("nested/inner.json", "/properties/p", INNER),
        ("inner.json", f"{INNER}/properties/q", INNER),
        ("inner.json", "/properties/p", None),
        ("nested/inner.json#mark", "/properties/p", f"{INNER}/$defs/marked"),
        ("nested/inner.json#/$defs/deep", "", f"{INNER}/$defs/deep"),
        ("http://example.com/nested/inner.json#/$defs/deep", "", f"{INNER}/$defs/deep"),
        ("http://example.com/root.json#/properties/p", f"{INNER}/properties/q", "/properties/p"),
        ("http://example.com/root.json", f"{INNER}/properties/q", ""),
        ("urn:data", "", "/$defs/urn"),
        ("urn:data#", "", "/$defs/urn"),
        ("nested/ghost.json#/$defs/deep", "", None),
    ],
)
def test_a_reference_is_resolved_relative_to_its_location(reference, where, pointer):
    assert References(EMBEDDED).locate(reference, where) == pointer


def test_outside_every_id_a_reference_is_read_from_the_root():
    document = {"$defs": {"a": {"$id": "http://x/a"}, "b": {"$anchor": "m"}, "c": {"$id": "c.json"}}}
    assert References(document).locate("#m", "/properties/p") == "/$defs/b"
    assert References(document).locate("#m", "/$defs/a") is None
    assert References(document).locate("c.json", "/properties/p") == "/$defs/c"
    assert References(document).locate("c.json", "/$defs/a") is None


def test_an_anchor_in_the_old_style_is_no_base_for_references():
    document = {"$id": "urn:root", "$defs": {"seven": {"$id": "#old", "items": {}}, "x": {"type": "string"}}}
    assert References(document).locate("#old") == "/$defs/seven"
    assert References(document).locate("urn:root#old") == "/$defs/seven"
    assert References(document).locate("#/$defs/x", "/$defs/seven/items") == "/$defs/x"


def test_an_id_that_is_not_a_valid_uri_is_found_by_its_exact_text():
    document = {"$id": "http://example.com/", "$defs": {"a": {"$id": "http://[broken"}}}
    assert References(document).locate("http://[broken") == "/$defs/a"


def test_anchors_are_collected_as_deep_as_schemas_are_read():
    def anchored_at(levels):
        schema = {"$anchor": "x"}
        for _ in range(levels):
            schema = {"not": schema}
        return References(schema).locate("#x")

    assert anchored_at(64) == "/not" * 64
    assert anchored_at(65) is None


def test_what_a_pointer_names_is_returned_itself():
    references = References(DOCUMENT)
    assert references.get_schema("") is DOCUMENT
    assert references.get_schema("/$defs/a~1b~0c") is DOCUMENT["$defs"]["a/b~c"]
    assert references.get_schema("/$defs/listed/anyOf/1") == {"$anchor": "second"}


def test_the_reference_of_a_node_is_the_first_of_its_three_keywords():
    assert find_reference({"$recursiveRef": "c", "$dynamicRef": "b", "$ref": "a"}) == "a"
    assert find_reference({"$recursiveRef": "c", "$dynamicRef": "b"}) == "b"
    assert find_reference({"$recursiveRef": "#"}) == "#"
    assert find_reference({"$anchor": "x"}) is None
    assert drop_reference({"$ref": "a", "$dynamicRef": "b", "$recursiveRef": "c", "title": "t"}) == {"title": "t"}


def test_a_pointer_is_named_by_its_last_step():
    assert get_last_token("/$defs/a~1b") == "a/b"
    assert get_last_token("") == "the whole schema"


@pytest.mark.parametrize(
    ("pointer", "part"),
    [
        ("/a/b~1c/0/d", "/a/b~1c/0/d"),
        ("/a/b~1c/0/x", "/a/b~1c/0"),
        ("/a/b~1c/1", "/a/b~1c"),
        ("/a/b~1c/-1", "/a/b~1c"),
        ("/a/b~1c/0/d/e", "/a/b~1c/0/d"),
        ("/ghost/b~1c", ""),
        ("", ""),
    ],
)
def test_a_pointer_is_cut_to_what_exists(pointer, part):
    assert trim_to_existing({"a": {"b/c": [{"d": "text"}]}}, pointer) == part
