"""Rules: which checks apply to a request, and what they find."""

from dragoman.simulator.apis.rule import (
    CheckContext,
    PathCheck,
    Rule,
    VendorRequest,
    Violation,
    find,
    find_first_violation,
    when_set,
    when_unset,
)

SITUATION = CheckContext(model="m")


def find_violation(document, *checks, root=""):
    return find_first_violation(
        (Rule("r", "It is so.", "here", *checks, root=root),), VendorRequest(document), SITUATION
    )


def test_a_path_finds_what_is_not_null():
    document = {"a": [{"b": 1}, {"b": None}, {}, 5, {"b": [2]}], "c": {"x/y": 3}}
    assert find(document, "/a/*/b") == [("/a/0/b", 1), ("/a/4/b", [2])]
    assert find(document, "/c/*") == [("/c/x~1y", 3)]
    assert find(document, "/d/*/b") == []


def test_a_value_is_refused_by_its_test_and_condition():
    check = PathCheck(
        "/n", lambda where, value: f"{where}: {value}", lambda value: value > 1, when_set("/on"), status=404
    )
    assert find_violation({"n": 2, "on": True}, check) == Violation("/n: 2", "/n", 404, "r")
    for document in ({"n": 1, "on": True}, {"n": 2, "on": False}, {"n": None, "on": True}, {"on": True}):
        assert find_violation(document, check) is None
    assert find_violation({"a": {"b": 1}}, PathCheck("/a/b", "no", when=when_unset("/c"), steps=1)) == Violation(
        "no", "/a", 400, "r"
    )


def test_a_check_is_not_called_for_a_request_without_its_field():
    def check(request, _):
        yield Violation(str(request.document["tools"]))

    assert find_violation({}, check, root="tools") is None
    assert find_violation({"tools": None}, check, root="tools") is None
    assert find_violation({"tools": []}, check, root="tools") == Violation("[]", rule="r")
