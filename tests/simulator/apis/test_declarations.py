"""Declarations of bodies: what each kind accepts, and the mismatch for anything else."""

from typing import Any

import pytest

from dragoman.simulator.apis.declarations import (
    MapOf,
    Number,
    Object,
    String,
    StringEnum,
    TaggedUnion,
    find_first_mismatch,
)

TOOL = TaggedUnion(
    "type", {"custom": {"name": String(least=1, most=3)}, "search": {"max?": Number(int, 1)}}, default="custom"
)
BODY = Object(
    {
        "tools?": [TOOL],
        "marks?": MapOf(str, names=String(most=2), most=2),
        "stop?": (str, [str]),
        "mode?": StringEnum("a", "b", unlisted=("c",)),
        "share?": float,
        "open?": Object({"known?": bool}, is_open=True),
        "any?": Any,
    }
)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"tools": None, "marks": None, "any": [None]},
        {"tools": [{"name": "abc"}, {"type": "custom", "name": "a"}, {"type": "search", "max": 1}]},
        {"marks": {"ab": "", "cd": ""}, "stop": ["x"], "mode": "c", "share": 1, "open": {"other": 1}},
    ],
)
def test_what_is_declared_is_taken(body):
    assert find_first_mismatch(BODY, body) is None


@pytest.mark.parametrize(
    ("body", "fault", "where", "name"),
    [
        ([], "type", "", ""),
        ({"x": 1}, "unknown-field", "", "x"),
        ({"tools": {}}, "type", "/tools", ""),
        ({"tools": [{}]}, "required", "/tools/0", "name"),
        ({"tools": [{"name": ""}]}, "bounds", "/tools/0/name", ""),
        ({"tools": [{"name": "abcd"}]}, "bounds", "/tools/0/name", ""),
        ({"tools": [{"type": "custom"}]}, "required", "/tools/0", "name"),
        ({"tools": [{"type": "other"}]}, "enum", "/tools/0/type", ""),
        ({"tools": [{"type": 5}]}, "type", "/tools/0/type", ""),
        ({"tools": [{"type": "search", "name": "a"}]}, "unknown-field", "/tools/0", "name"),
        ({"tools": [{"type": "search", "max": 0}]}, "bounds", "/tools/0/max", ""),
        ({"tools": [{"type": "search", "max": 1.0}]}, "type", "/tools/0/max", ""),
        ({"tools": [{"type": "search", "max": True}]}, "type", "/tools/0/max", ""),
        ({"marks": {"abc": ""}}, "bounds", "/marks/...", ""),
        ({"marks": {"a": 1}}, "type", "/marks/...", ""),
        ({"marks": {"a": "", "b": "", "c": ""}}, "bounds", "/marks", ""),
        ({"stop": [1]}, "type", "/stop/0", ""),
        ({"stop": 1}, "type", "/stop", ""),
        ({"mode": "d"}, "enum", "/mode", ""),
        ({"open": {"known": 1}}, "type", "/open/known", ""),
        ({"x": 1, "mode": "d"}, "unknown-field", "", "x"),
        ({"mode": "d", "x": 1}, "enum", "/mode", ""),
    ],
)
def test_the_first_violation_is_reported_with_its_pointer(body, fault, where, name):
    found = find_first_mismatch(BODY, body)
    assert found is not None
    assert (found.reason, found.where, found.name) == (fault, where, name)


def test_one_of_several_names_all_the_types_it_takes():
    found = find_first_mismatch(BODY, {"stop": 1})
    assert found is not None
    assert found.kind.types == ("str", "array")


def test_a_tag_that_is_required_is_missed():
    found = find_first_mismatch(TaggedUnion("type", {"a": {}}), {})
    assert found is not None
    assert (found.reason, found.name) == ("required", "type")


def test_a_form_may_itself_be_distinguished_by_a_field():
    message = TaggedUnion("role", {"user": {"type?": str, "text": str}, "tool": {"type?": str, "id": str}})
    kind = TaggedUnion("type", {"message": message, "stop": {}})
    assert find_first_mismatch(kind, {"type": "message", "role": "tool", "id": "1"}) is None
    assert find_first_mismatch(kind, {"type": "stop"}) is None
    found = find_first_mismatch(kind, {"type": "message", "role": "tool", "text": "a"})
    assert found is not None
    assert (found.reason, found.name) == ("unknown-field", "text")


def test_null_is_a_missing_tag_only_where_that_is_declared():
    forms = {"a": {"b?": int}}
    assert find_first_mismatch(TaggedUnion("type", forms, "a", nullable=True), {"type": None}) is None
    found = find_first_mismatch(TaggedUnion("type", forms, "a"), {"type": None})
    assert found is not None
    assert (found.reason, found.where) == ("type", "/type")
