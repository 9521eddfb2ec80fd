"""Find what is new in a history that a client may have sent again, whole or from its last answer on.

Clients write the same thing in many ways: they leave out what they do not know, and thoughts, and ids. So histories are
compared by what they say: texts by their role, calls by id, name and arguments, results by call and content.
"""

from collections.abc import Sequence
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
    systems: int = 0
    """How many messages at the head say anew who the model is, in place of what is kept there."""


class _Told(Struct, frozen=True):
    """A saying, and the messages it stands in: some clients keep a text in the pieces it was streamed in."""

    saying: Saying
    first: int
    last: int


def find_new(
    sent: Sequence[Message], kept: Sequence[Message], of_last: int, name: str, *, may_differ: bool = False
) -> New:
    """Return where the new messages begin; `of_last` of the kept ones are of the last turn, given and said.

    A history that the client tells otherwise than it was is a conflict, unless it may: then all of it is new.
    """
    if not kept:
        return New(0)
    head, kept_head = leading(sent), leading(kept)
    systems = head if _sayings(sent[:head]) != _sayings(kept[:kept_head]) else 0
    told, known = _told(sent[head:]), _sayings(kept[kept_head:])
    said = [one.saying for one in told]
    for length in range(min(len(said), len(known)), 0, -1):
        is_whole = length == len(known)
        if said[:length] == known[-length:] and (is_whole or known[-length][0] == "assistant"):
            begins = told[length - 1].last + 1
            if length < len(told) and told[length].first >= begins:
                return New(head + begins + _silent(sent[head + begins :]), systems=systems)
    before = _sayings(kept[kept_head : len(kept) - of_last])
    asked = [saying for saying in known[len(before) :] if saying[0] != "assistant"]
    if before and said == [*before, *asked]:
        return New(len(sent), answered=True)
    if any(role == "assistant" for role, _, _ in said):
        if may_differ:
            return New(0)
        words = f"the conversation {name!r} has another history: send what is new, or all of it as it was"
        raise Problem("conflict", words, code="conversation_diverged")
    return New(head, systems=systems)


def _silent(messages: Sequence[Message]) -> int:
    """Return how many messages of the model say nothing more: the end of a stream, kept as a piece of its own."""
    for at, message in enumerate(messages):
        if message.role != "assistant":
            return at
        if _sayings([message]):
            break
    return 0


def leading(messages: Sequence[Message]) -> int:
    """Return how many messages at the head say who the model is."""
    return next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))


def _sayings(messages: Sequence[Message]) -> list[Saying]:
    return [told.saying for told in _told(messages)]


def _told(messages: Sequence[Message]) -> list[_Told]:
    """Return what messages say; texts of one side that follow each other are one."""
    told: list[_Told] = []
    for at, message in enumerate(messages):
        for part in message.parts:
            for saying in _saying(message.role, part):
                before = told[-1] if told else None
                if before is not None and before.saying[:2] == saying[:2] == (message.role, "text"):
                    told[-1] = _Told((*saying[:2], before.saying[2] + saying[2]), before.first, at)
                else:
                    told.append(_Told(saying, at, at))
    return told


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
