"""Equality is of meaning; problems compare by what they say."""

import pytest

from dragoman.core.parts import Text, ToolCall, ToolResult
from dragoman.core.problems import DEFAULT_STATUS, KINDS, Problem
from dragoman.core.request import Message, Tool
from dragoman.core.value import Extras, own_extras

CALL = ToolCall(id="a", name="f", arguments="{}")


@pytest.mark.parametrize(
    "make",
    [
        lambda **about: Text(text="x", **about),
        lambda **about: ToolCall(id="a", name="f", arguments="{}", **about),
        lambda **about: ToolResult(call_id="a", content=(Text(text="x", **about),), **about),
        lambda **about: Message(role="user", parts=(Text(text="x", **about),), **about),
        lambda **about: Tool(name="f", **about),
    ],
)
def test_pointer_and_spelling_of_a_value_do_not_affect_equality(make):
    first = make(where="/a", spelling="one")
    second = make(where="/b", spelling="two")
    assert first == second
    assert not first != second  # noqa: SIM202  # Struct has its own opinion of `!=`
    assert hash(first) == hash(second)
    assert len({first, second}) == 1


@pytest.mark.parametrize(
    "other",
    [
        ToolCall(id="b", name="f", arguments="{}"),
        ToolCall(id="a", name="f", arguments="{ }"),
        ToolCall(id="a", name="f", arguments="{}", complete=False),
        ToolCall(id="a", name="f", arguments="{}", extras=Extras("chat", {"/x": b"1"})),
        Text(text="{}"),
        None,
    ],
)
def test_any_other_difference_makes_values_differ(other):
    assert other != CALL
    assert not other == CALL  # noqa: SIM201


def test_extras_belong_to_one_dialect():
    text = Text(text="x", extras=Extras("chat", {"/a": b"1"}))
    assert own_extras(text, "chat") == {"/a": b"1"}
    assert own_extras(text, "gemini") is None
    assert own_extras(Text(text="x"), "chat") is None


def test_every_kind_of_problem_has_a_status():
    assert set(DEFAULT_STATUS) == set(KINDS)
    assert [Problem(kind, "x").status for kind in KINDS] == [DEFAULT_STATUS[kind] for kind in KINDS]


def test_problems_are_equal_when_all_their_fields_are_equal():
    assert Problem("internal", "x", status=500) == Problem("internal", "x")
    assert hash(Problem("internal", "x")) == hash(Problem("internal", "x"))
    assert Problem("internal", "x") != Problem("internal", "x", retry_after=1)
    assert Problem("internal", "x") != Problem("timeout", "x", status=500)
    assert str(Problem("internal", "words")) == "words"
    assert "internal" in repr(Problem("internal", "words"))
