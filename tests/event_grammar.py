"""The grammar of events: what every decoder and every adapter of events keeps to."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from dragoman.core.events import (
    Event,
    Failed,
    Finished,
    Native,
    PartCited,
    PartDelta,
    PartEnded,
    PartNative,
    PartSigned,
    PartStarted,
    Started,
    UsageSeen,
)
from dragoman.core.parts import AnyPart, Reasoning, Refusal, Text, ToolCall
from dragoman.core.stream import STREAMED_PARTS


class GrammarError(AssertionError):
    """A stream breaks the grammar of events; no decoder may produce it."""


def check_events(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events unchanged and raise `GrammarError` at the first that breaks the grammar."""
    started = over = False
    count = 0
    open_parts: dict[int, AnyPart] = {}
    for event in events:
        if over:
            raise GrammarError(f"event after Finished or Failed: {event}")
        match event:
            case Started():
                if started:
                    raise GrammarError("second Started event")
                started = True
            case PartStarted(index, part):
                if index != count:
                    raise GrammarError(f"part {index} started, expected {count}")
                count += 1
                open_parts[index] = part
                _check_start(part)
            case PartEnded(index):
                _check_open(event, index, open_parts)
                del open_parts[index]
            case PartDelta(index) | PartSigned(index) | PartCited(index) | PartNative(index):
                _check_open(event, index, open_parts)
            case Finished():
                if open_parts:
                    raise GrammarError("Finished while a part is open")
                over = True
            case Failed():
                over = True
            case UsageSeen() | Native():
                pass
            case _:
                assert_never(event)
        if not started and not isinstance(event, Failed):
            raise GrammarError(f"event before Started: {event}")
        yield event
    if not over:
        raise GrammarError("the stream ended without Finished or Failed")


def _check_open(event: Event, index: int, open_parts: dict[int, AnyPart]) -> None:
    part = open_parts.get(index)
    if part is None:
        raise GrammarError(f"part {index} is not open")
    match event:
        case PartDelta(piece=piece):
            if not isinstance(part, STREAMED_PARTS) or (piece and not isinstance(part, Reasoning)):
                raise GrammarError(f"part {index} cannot have this delta: {event}")
        case PartCited():
            if not isinstance(part, Text):
                raise GrammarError(f"part {index} is not text and cannot have a citation")
        case _:
            pass


def _check_start(part: AnyPart) -> None:
    match part:
        case Text(text=text) | Refusal(text=text) | ToolCall(arguments=text):
            if text:
                raise GrammarError("a part with deltas must start empty")
        case Reasoning(texts=texts):
            if texts:
                raise GrammarError("a part with deltas must start empty")
        case _:
            pass
