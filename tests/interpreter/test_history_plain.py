"""What needs no fitting passes as it is."""

from dragoman.core.parts import Text, ToolResult
from dragoman.interpreter.history import adapt_messages
from interpreter.workbench import adaptation_for, build_message


def test_what_is_plain_passes_as_the_very_same_object():
    messages = (build_message("user", "hi"), build_message("user", ToolResult(call_id="a", content=(Text(text="ok"),))))
    for dialect in ("chat", "responses", "messages", "gemini"):
        adapted = adapt_messages(messages, adaptation_for(dialect))
        assert all(new is old for new, old in zip(adapted, messages, strict=True))
