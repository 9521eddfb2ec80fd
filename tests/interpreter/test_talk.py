"""Turns of plain talk are read once, behind those they came after, and what is no talk is known for that."""

import json
from typing import Any

import pytest

from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.talk import NUMBERS, Talk, joined

CHAT, GEMINI = dialect_named("chat"), dialect_named("gemini")
SYSTEM = {"role": "system", "content": "Be brief."}
HELLO = {"role": "user", "content": "Hello"}
ANSWER = {"role": "assistant", "content": "Good day"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "1"}


class Reader:
    """Reads as Chat does, and notes what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[int, int]] = []

    def __call__(self, array: bytes, known: int) -> Any:
        assert CHAT.read_history is not None
        self.given.append((known, len(json.loads(array))))
        return CHAT.read_history(array, known)


def write(messages: Any) -> bytes:
    assert GEMINI.write_history is not None
    return GEMINI.write_history(messages)


def raws(*messages: dict[str, Any]) -> list[bytes]:
    return [json.dumps(message).encode() for message in messages]


def told(talk: Talk, frame: int, reader: Reader, *messages: dict[str, Any]) -> bytes | None:
    turns = talk.told(frame, raws(*messages), reader, write)
    return None if turns is None else joined(turns, write(())[:-2]) + b"}"


def test_only_what_is_new_in_a_conversation_is_read():
    talk, reader, frame = Talk(), Reader(), next(NUMBERS)
    told(talk, frame, reader, SYSTEM, HELLO)
    told(talk, frame, reader, SYSTEM, HELLO)
    told(talk, frame, reader, SYSTEM, HELLO, ANSWER, HELLO)
    assert reader.given == [(0, 2), (2, 2)]


@pytest.mark.parametrize(
    "messages", [(HELLO,), (SYSTEM, HELLO), (SYSTEM, HELLO, ANSWER, HELLO), (HELLO, ANSWER, HELLO)]
)
def test_what_is_put_together_is_what_the_target_would_be_written(messages):
    talk, frame = Talk(), next(NUMBERS)
    assert CHAT.read_history is not None
    whole = write(CHAT.read_history(json.dumps(messages).encode(), 0))
    for _ in range(2):
        assert told(talk, frame, Reader(), *messages) == whole


def test_the_same_words_elsewhere_are_another_turn():
    talk, frame = Talk(), next(NUMBERS)
    turns = talk.told(frame, raws(HELLO, ANSWER, HELLO), Reader(), write)
    assert turns is not None
    assert [turn.message.where for turn in turns] == ["/messages/0", "/messages/1", "/messages/2"]
    reader = Reader()
    told(talk, next(NUMBERS), reader, HELLO)
    assert reader.given == [(0, 1)]


def test_what_is_no_talk_is_known_for_that():
    talk, reader, frame = Talk(), Reader(), next(NUMBERS)
    assert told(talk, frame, reader, HELLO, CALL, RESULT) is None
    assert told(talk, frame, reader, HELLO, CALL, RESULT, ANSWER, HELLO) is None
    assert reader.given == [(0, 3)]
    assert told(talk, frame, reader, HELLO, ANSWER, HELLO) is not None


@pytest.mark.parametrize("messages", [(HELLO, HELLO), (ANSWER, HELLO), (HELLO, SYSTEM), (SYSTEM, SYSTEM, HELLO)])
def test_turns_that_would_have_to_be_arranged_are_no_talk(messages):
    assert told(Talk(), next(NUMBERS), Reader(), *messages) is None


def test_a_full_memory_forgets_and_goes_on():
    talk, frame, reader = Talk(most=2000), next(NUMBERS), Reader()
    for number in range(50):
        asked = {"role": "user", "content": f"{number} " * 50}
        assert told(talk, frame, reader, asked) is not None
    told(talk, frame, reader, {"role": "user", "content": "0 " * 50})
    assert len(reader.given) == 51
