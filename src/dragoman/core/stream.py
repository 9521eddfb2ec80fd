"""Collect stream events into a reply, and replay a reply as events."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from msgspec import structs

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
from dragoman.core.parts import AnyPart, Citation, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.value import Extras

STREAMED_PARTS = (Text, Reasoning, ToolCall, Refusal)


class _OpenPart:
    """A part that still receives deltas."""

    __slots__ = ("citations", "complete", "dialect", "fields", "is_over", "part", "pieces", "signature")

    def __init__(self, part: AnyPart) -> None:
        self.part = part
        self.pieces: list[list[str]] = []
        self.signature: Signature | None = part.signature
        self.citations: list[Citation] = []
        self.fields: dict[str, bytes] = {}
        self.dialect = ""
        self.complete = True
        self.is_over = False

    def append_delta(self, text: str, piece: int) -> None:
        while len(self.pieces) <= piece:
            self.pieces.append([])
        self.pieces[piece].append(text)

    def add_field(self, event: PartNative) -> None:
        self.fields[event.field] = event.raw
        self.dialect = event.dialect

    def _build_extras(self) -> Extras | None:
        if not self.fields:
            return self.part.extras
        known = self.part.extras.fields if self.part.extras else {}
        return Extras(self.dialect, {**known, **self.fields})

    def close(self) -> AnyPart:
        texts = tuple("".join(piece) for piece in self.pieces)
        changes: dict[str, object] = {"signature": self.signature, "extras": self._build_extras()}
        match self.part:
            case Text(text=text, citations=citations):
                changes["text"] = text + "".join(texts)
                changes["citations"] = citations + tuple(self.citations)
            case Refusal(text=text):
                changes["text"] = text + "".join(texts)
            case Reasoning(texts=known):
                changes["texts"] = known + texts
            case ToolCall(arguments=arguments):
                changes["arguments"] = arguments + "".join(texts)
                changes["complete"] = self.complete
            case _:
                pass
        return structs.replace(self.part, **changes)


class Collector:
    """Collects events into a `Response`; `response()` raises the stream's `Problem` if it failed."""

    def __init__(self) -> None:
        self._started = Started("", "")
        self._parts: list[_OpenPart] = []
        self._usage: Usage | None = None
        self._finish: Finish | None = None
        self._native: dict[str, bytes] = {}
        self._dialect = ""
        self._problem: Problem | None = None

    def feed(self, event: Event) -> None:
        """Add one event to the response."""
        match event:
            case PartDelta(index, text, piece):
                self._parts[index].append_delta(text, piece)
            case PartStarted(_, part):
                self._parts.append(_OpenPart(part))
            case PartSigned(index, signature):
                self._parts[index].signature = signature
            case PartCited(index, citation):
                self._parts[index].citations.append(citation)
            case PartNative(index):
                self._parts[index].add_field(event)
            case PartEnded(index, complete):
                self._parts[index].complete, self._parts[index].is_over = complete, True
            case UsageSeen(usage):
                self._usage = usage
            case Native(dialect, field, raw):
                self._native[field] = raw
                self._dialect = dialect
            case Started():
                self._started = event
            case Finished(finish):
                self._finish = finish
            case Failed(problem):
                self._problem = problem
            case _:
                assert_never(event)

    @property
    def reply_id(self) -> str:
        """The id of the reply."""
        return self._started.id

    @property
    def parts(self) -> tuple[AnyPart, ...]:
        """The parts seen so far."""
        return tuple(part.close() for part in self._parts)

    @property
    def open_parts(self) -> frozenset[int]:
        """The parts that have not ended."""
        return frozenset(index for index, part in enumerate(self._parts) if not part.is_over)

    def response(self) -> Response:
        """Return the complete reply; raise `Problem` if the stream failed or never finished."""
        if self._problem is not None:
            raise self._problem
        if self._finish is None:
            raise Problem("malformed_reply", "the stream ended before the reply was finished")
        return Response(
            id=self._started.id,
            model=self._started.model,
            created=self._started.created,
            parts=self.parts,
            finish=self._finish,
            usage=self._usage,
            extras=Extras(self._dialect, dict(self._native)) if self._native else None,
        )


def collect(events: Iterable[Event]) -> Response:
    """Collect a stream into a reply; raise its `Problem` if it failed."""
    collector = Collector()
    for event in events:
        collector.feed(event)
    return collector.response()


def replay(response: Response) -> Iterator[Event]:
    """Return a complete reply as a stream of events: `collect(replay(r)) == r`."""
    yield Started(response.id, response.model, response.created)
    for index, part in enumerate(response.parts):
        yield from replay_part(index, part)
    if response.extras is not None:
        for field, raw in response.extras.fields.items():
            yield Native(response.extras.dialect, field, raw)
    if response.usage is not None:
        yield UsageSeen(response.usage)
    yield Finished(response.finish)


def replay_part(index: int, part: AnyPart) -> Iterator[Event]:
    """Return one complete part as events."""
    match part:
        case Text(text=text, citations=citations):
            yield PartStarted(index, structs.replace(part, text="", citations=(), signature=None))
            if text:
                yield PartDelta(index, text)
            for citation in citations:
                yield PartCited(index, citation)
        case Refusal(text=text):
            yield PartStarted(index, structs.replace(part, text="", signature=None))
            if text:
                yield PartDelta(index, text)
        case Reasoning(texts=texts) if not part.redacted:
            yield PartStarted(index, structs.replace(part, texts=(), signature=None))
            for piece, text in enumerate(texts):
                yield PartDelta(index, text, piece)
        case ToolCall(arguments=arguments):
            yield PartStarted(index, structs.replace(part, arguments="", signature=None, complete=True))
            # Before the arguments, as in vendors' streams: some clients need the signature of a call first.
            if part.signature is not None:
                yield PartSigned(index, part.signature)
            if arguments:
                yield PartDelta(index, arguments)
        case _:
            yield PartStarted(index, structs.replace(part, signature=None))
    if part.signature is not None and not isinstance(part, ToolCall):
        yield PartSigned(index, part.signature)
    yield PartEnded(index, not isinstance(part, ToolCall) or part.complete)
