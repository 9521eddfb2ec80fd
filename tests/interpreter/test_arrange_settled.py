"""A plain conversation is known at sight and passes through arranging as it is."""

import pytest

from dragoman.core.parts import Text, ToolCall
from dragoman.interpreter.arrange import _is_settled, arranged
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.traits import traits_for
from interpreter.workbench import said

CLAUDE = traits_for("messages", "claude-opus-5")
SYSTEM, USER, ASSISTANT = said("system", "s"), said("user", "u"), said("assistant", "a")


@pytest.mark.parametrize(
    ("messages", "settled"),
    [
        ([USER], True),
        ([SYSTEM, USER], True),
        ([USER, ASSISTANT, USER], True),
        ([SYSTEM, USER, ASSISTANT, USER], True),
        ([], False),
        ([SYSTEM], False),
        ([SYSTEM, SYSTEM, USER], False),
        ([USER, SYSTEM, USER], False),
        ([USER, USER], False),
        ([ASSISTANT, USER], False),
        ([USER, ASSISTANT], False),
        ([USER, ASSISTANT, ASSISTANT, USER], False),
        ([said("user", "u", "v")], False),
        ([said("user")], False),
        ([USER, said("assistant", ToolCall(id="a", name="f", arguments="{}")), USER], False),
    ],
)
def test_texts_that_alternate_and_end_with_the_user_are_settled(messages, settled):
    assert _is_settled(messages, CLAUDE) is settled


@pytest.mark.parametrize(
    ("dialect", "settled"), [("messages", True), ("gemini", True), ("chat", False), ("responses", False)]
)
def test_only_targets_of_alternating_turns_take_a_history_at_sight(dialect, settled):
    assert _is_settled([USER], traits_for(dialect, "")) is settled


def test_a_settled_history_passes_as_it_is():
    messages = [SYSTEM, USER, ASSISTANT, USER]
    ledger = Ledger({})
    assert all(new is old for new, old in zip(arranged(messages, CLAUDE, ledger), messages, strict=True))
    assert ledger.losses() == ()


def test_an_empty_text_is_still_a_plain_text():
    assert _is_settled([said("user", Text(text=""))], CLAUDE)
