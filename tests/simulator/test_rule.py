"""Rules: which checks look at a request, and what they find."""

from dragoman.simulator.rule import Refuse, Request, Rule, Situation, Violation, find, first_violation, has, lacks

SITUATION = Situation(model="m")


def found(document, *checks, root=""):
    return first_violation((Rule("r", "It is so.", "here", *checks, root=root),), Request(document), SITUATION)


def test_a_path_finds_what_is_not_null():
    document = {"a": [{"b": 1}, {"b": None}, {}, 5, {"b": [2]}], "c": {"x/y": 3}}
    assert find(document, "/a/*/b") == [("/a/0/b", 1), ("/a/4/b", [2])]
    assert find(document, "/c/*") == [("/c/x~1y", 3)]
    assert find(document, "/d/*/b") == []


def test_a_value_is_refused_by_its_test_and_condition():
    check = Refuse("/n", lambda where, value: f"{where}: {value}", lambda value: value > 1, has("/on"), status=404)
    assert found({"n": 2, "on": True}, check) == Violation("/n: 2", "/n", 404, "r")
    for document in ({"n": 1, "on": True}, {"n": 2, "on": False}, {"n": None, "on": True}, {"on": True}):
        assert found(document, check) is None
    assert found({"a": {"b": 1}}, Refuse("/a/b", "no", when=lacks("/c"), steps=1)) == Violation("no", "/a", 400, "r")


def test_a_check_is_not_asked_about_a_request_without_its_member():
    def check(request, _):
        yield Violation(str(request.document["tools"]))

    assert found({}, check, root="tools") is None
    assert found({"tools": None}, check, root="tools") is None
    assert found({"tools": []}, check, root="tools") == Violation("[]", rule="r")
