"""The texts of a reply that is made of several turns: paragraphs between turns, and interim texts left out."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from msgspec import structs

from dragoman.agent import RunEnded, Step, TurnEnded
from dragoman.agent.history import calls_of
from dragoman.core.events import (
    Event,
    PartCited,
    PartDelta,
    PartEnded,
    PartNative,
    PartSigned,
    PartStarted,
)
from dragoman.core.parts import Citation, Text, ToolCall, ToolResult

_PARAGRAPH_BREAK = "\n\n"


class ParagraphSeparator:
    """Inserts blank lines between the texts of a run's turns."""

    def __init__(self) -> None:
        self._text_end = ""
        """The last characters of the text so far."""
        self._is_new_turn = False
        """Whether the next text is the first of a new turn."""
        self._empty_texts: set[int] = set()
        """Texts of this turn that are still empty."""
        self._offsets: dict[int, int] = {}
        """The number of characters inserted at the start of each text."""

    def end_turn(self, *, continues: bool = False) -> None:
        """End a turn; if `continues`, the next one is the rest of it."""
        self._empty_texts.clear()
        self._offsets.clear()
        self._is_new_turn = bool(self._text_end) and not continues

    def feed(self, event: Event) -> Event:
        """Return an event, with a paragraph break before the first text of a turn."""
        match event:
            case PartStarted(index, Text()):
                self._empty_texts.add(index)
            case PartDelta(index, text) if index in self._empty_texts and text:
                self._empty_texts.discard(index)
                if self._is_new_turn:
                    event = self._add_break(event)
                self._text_end = text[-len(_PARAGRAPH_BREAK) :]
                self._offsets.setdefault(index, 0)
            case PartDelta(index, text) if index in self._offsets and text:
                self._text_end = (self._text_end + text)[-len(_PARAGRAPH_BREAK) :]
            case PartCited(index, citation) if self._offsets.get(index):
                return PartCited(index, _shift_citation(citation, self._offsets[index]))
            case _:
                pass
        return event

    def _add_break(self, event: PartDelta) -> PartDelta:
        """Insert the line breaks that are missing before a new paragraph."""
        self._is_new_turn = False
        present = (
            len(self._text_end) - len(self._text_end.rstrip("\n")) + len(event.text) - len(event.text.lstrip("\n"))
        )
        missing = _PARAGRAPH_BREAK[present:]
        self._offsets[event.index] = len(missing)
        return structs.replace(event, text=missing + event.text)


def _shift_citation(citation: Citation, by: int) -> Citation:
    """Shift the positions of a citation."""
    if citation.start is None or citation.end is None or not citation.url:
        return citation
    shifted = structs.replace(citation, start=citation.start + by, end=citation.end + by)
    # The raw form has the old positions.
    return structs.replace(shifted, dialect="", raw=b"") if citation.raw else shifted


async def drop_interim_texts(steps: AsyncIterator[Step], *, is_stream: bool) -> AsyncIterator[Step]:
    """Yield the steps of a run without the texts before server-side calls.

    In a stream, a text that begins as a JSON value is sent as the answer; any other waits for the end of its turn.
    """
    buffer: list[Step] = []
    is_answer = has_call = False
    async for step in steps:
        released: Iterator[Step] = iter(())
        match step:
            case TurnEnded() | RunEnded():
                is_interim = isinstance(step, TurnEnded) and _continues_after(step)
                released = _drop_texts(buffer) if is_interim else iter(buffer)
                is_answer = has_call = False
            case PartDelta(text=text) if is_stream and not has_call and _begins_json(buffer, text):
                released, is_answer = iter(buffer), True
            case _ if buffer or (not is_answer and isinstance(step, PartStarted) and isinstance(step.part, Text)):
                buffer.append(step)  # what follows a buffered text waits too, to keep the order
                continue
            case _:
                has_call = has_call or (isinstance(step, PartStarted) and isinstance(step.part, ToolCall))
        for buffered in released:
            yield buffered
        buffer.clear()
        yield step


def _begins_json(buffer: Sequence[Step], text: str) -> bool:
    """Return whether a piece is the first of a buffered text that is not blank, and begins an object or array."""
    blank = all(isinstance(step, PartDelta) and not step.text.strip() for step in buffer[1:])
    return bool(buffer) and text.lstrip().startswith(("{", "[")) and blank


def _continues_after(turn: TurnEnded) -> bool:
    """Return whether the model is called again after a turn: all its calls were server-side, or one was malformed."""
    results = [part for message in turn.messages for part in message.parts if isinstance(part, ToolResult)]
    calls = calls_of(turn.response.parts)
    return turn.response.finish.reason == "malformed_call" or bool(calls and len(results) >= len(calls))


def _drop_texts(steps: Iterable[Step]) -> Iterator[Step]:
    texts: set[int] = set()
    for step in steps:
        match step:
            case PartStarted(index, Text()):
                texts.add(index)
            case PartDelta() | PartSigned() | PartCited() | PartNative() | PartEnded() if step.index in texts:
                pass
            case _:
                yield step
