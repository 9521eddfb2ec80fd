"""A plain conversation passes through arranging as it is."""

import pytest

from dragoman.core.parts import ToolCall, ToolResult
from dragoman.interpreter.adaptation import Adaptation, traits_for
from dragoman.interpreter.history import arrange_turns
from dragoman.interpreter.ledger import Ledger
from interpreter.workbench import build_message

SYSTEM, USER, ASSISTANT = build_message("system", "s"), build_message("user", "u"), build_message("assistant", "a")
CALL, RESULT = (
    build_message("assistant", ToolCall(id="a", name="f", arguments="{}")),
    build_message("user", ToolResult(call_id="a")),
)


@pytest.mark.parametrize("dialect", ["messages", "gemini", "chat", "responses"])
@pytest.mark.parametrize("messages", [[USER], [SYSTEM, USER], [USER, ASSISTANT, USER], [SYSTEM, USER, ASSISTANT, USER]])
def test_texts_that_alternate_and_end_with_the_user_pass_as_they_are(dialect, messages):
    ledger = Ledger({})
    turns = arrange_turns(messages, Adaptation(traits_for(dialect, ""), ledger, ""))
    assert all(new is old for new, old in zip(turns, messages, strict=True))
    assert ledger.losses() == ()


def test_messages_are_repaired_only_where_calls_and_results_are_not_in_pairs():
    request = []

    class Repair(Adaptation):
        def pair(self, messages):
            request.append(messages)
            return [USER]

    claude = Repair(traits_for("messages", "claude-opus-5"), Ledger({}), "")
    assert arrange_turns([USER, CALL, RESULT], claude) == (USER, CALL, RESULT)
    assert not request
    assert arrange_turns([USER, CALL, USER], claude) == (USER,)
    assert request == [[USER, CALL, USER]]
