"""Find what is new in a history that a client may have sent again, whole or from its last answer on.

Clients write the same thing in many ways: they leave out what they do not know, and thoughts, and ids. So histories are
compared by what they say: texts by their role, calls by id, name and arguments, results by call and content.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from dragoman.core.parts import AnyPart, Data, Media, Opaque, Refusal, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.wire import json

Saying = tuple[str, str, Any]
"""Role, kind, and what is said."""


class New(Struct, frozen=True):
    """Where what is new begins among the messages a client sent."""

    begins: int
    answered: bool = False
    """There is nothing new: the client asks again what was answered last."""


def find_new(sent: Sequence[Message], kept: Sequence[Message], last_given: int, name: str) -> New:
    """Return where the new messages begin; `last_given` are the messages the last turn had from its client, and said.

    A history that the client tells otherwise than it was is a conflict.
    """
    if not kept:
        return New(0)
    told, known = _sayings(sent), _sayings(kept)
    for length in range(min(len(told), len(known)), 0, -1):
        is_whole = length == len(known)
        if told[:length] == known[-length:] and (is_whole or known[-length][0] == "assistant"):
            begins = _message_after(sent, length)
            if begins is not None and begins < len(sent):
                return New(begins)
    before = _sayings(kept[: len(kept) - last_given])
    asked = [saying for saying in known[len(before) :] if saying[0] != "assistant"]
    if before and told == [*before, *asked]:
        return New(len(sent), answered=True)
    if any(role == "assistant" for role, _, _ in told):
        words = f"the conversation {name!r} has another history: send what is new, or all of it as it was"
        raise Problem("conflict", words, code="conversation_diverged")
    return New(_after_known_systems(sent, kept))


def _after_known_systems(sent: Sequence[Message], kept: Sequence[Message]) -> int:
    """Return where a client's news begin that says who the model is with every turn."""
    at = 0
    while at < min(len(sent), len(kept)) and sent[at].role == "system":
        if _sayings([sent[at]]) != _sayings([kept[at]]):
            break
        at += 1
    return at


def _message_after(messages: Sequence[Message], length: int) -> int | None:
    """Return the message that begins behind so many sayings; None if that is within one."""
    count = 0
    for at, message in enumerate(messages):
        if count == length:
            return at
        count += len(_sayings([message]))
    return len(messages) if count == length else None


def _sayings(messages: Iterable[Message]) -> list[Saying]:
    return [saying for message in messages for part in message.parts for saying in _saying(message.role, part)]


def _saying(role: str, part: AnyPart) -> list[Saying]:
    match part:
        case Text(text=text) | Refusal(text=text):
            return [(role, "text", text)] if text else []
        case ToolCall():
            return [(role, "call", (part.id, part.name, _value(part.arguments)))]
        case ToolResult():
            content = [(kind, said) for item in part.content for _, kind, said in _saying(role, item)]
            return [(role, "result", (part.call_id, content))]
        case Data(json=raw):
            return [(role, "data", _value(raw))]
        case Media():
            return [(role, "media", part.source)]
        case Opaque():
            return [(role, "opaque", _value(part.raw))]
        case _:
            return []


def _value(text: str | bytes) -> Any:
    return json.decode(text) if json.is_json(text) else text
