"""What needs no fitting is known at sight."""

import pytest

from dragoman.core.parts import Citation, Data, Signature, Text, ToolResult
from dragoman.core.value import Extras
from dragoman.interpreter.history import _is_plain_result, fit_messages, is_plain
from interpreter.workbench import fitting_for, said

OWN = Extras("chat", {"/x": b"1"})


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        (said("user", "hi"), True),
        (said("assistant", " hi "), True),
        (said("user", "hi", "ho"), False),
        (said("user"), False),
        (said("user", ""), False),
        (said("user", " \n"), False),
        (said("user", "hi", name="ann"), False),
        (said("user", "hi", extras=OWN), False),
        (said("user", Text(text="hi", extras=OWN)), False),
        (said("user", Text(text="hi", cache="")), False),
        (said("user", Text(text="hi", signature=Signature("google", "s"))), False),
        (said("user", Text(text="hi", citations=(Citation("chat", b"{}"),))), False),
        (said("user", ToolResult(call_id="a", content=(Text(text="ok"),))), False),
    ],
)
def test_one_text_without_marks_is_a_plain_message(message, plain):
    assert is_plain(message) is plain


@pytest.mark.parametrize(
    ("fields", "plain"),
    [
        ({}, True),
        ({"content": (Text(text=""),)}, True),
        ({"content": (Text(text=" "),)}, False),
        ({"content": ()}, False),
        ({"content": (Text(text="a"), Text(text="b"))}, False),
        ({"content": (Data(json=b"{}"),)}, False),
        ({"content": (Text(text="a", extras=OWN),)}, False),
        ({"content": (Text(text="a", cache=""),)}, False),
        ({"failed": True}, False),
        ({"name": "f"}, False),
        ({"extras": OWN}, False),
        ({"cache": ""}, False),
    ],
)
def test_one_text_without_marks_is_a_plain_result(fields, plain):
    assert _is_plain_result(ToolResult(**{"call_id": "a", "content": (Text(text="ok"),), **fields})) is plain


def test_what_is_plain_passes_as_the_very_same_object():
    messages = (said("user", "hi"), said("user", ToolResult(call_id="a", content=(Text(text="ok"),))))
    for dialect in ("chat", "responses", "messages", "gemini"):
        fitted = fit_messages(messages, fitting_for(dialect))
        assert all(new is old for new, old in zip(fitted, messages, strict=True))
