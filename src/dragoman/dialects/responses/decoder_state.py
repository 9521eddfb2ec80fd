"""What a stream has told of its items and parts so far, and what is still to be told of them.

Rules: deltas are told as they come. When the whole part is known, only what the deltas left out is told; where
they said something else, they have been heard already and stand.
"""

from msgspec import structs

from dragoman.core.events import Event, PartCited, PartDelta, PartEnded, PartNative, PartSigned, PartStarted
from dragoman.core.parts import AnyPart, Reasoning, Refusal, Text, ToolCall
from dragoman.core.stream import replay_part
from dragoman.dialects.responses.output import NO_ARGUMENTS, is_complete
from dragoman.dialects.responses.parts import read_citation
from dragoman.dialects.responses.wire import NAME, StreamEvent, WireItem
from dragoman.wire.json import Malformed

_MAX_PIECES = 100_000
"""Whoever holds the texts of a thought makes room for all before the last."""


class OpenPart:
    """What has been told of one part."""

    __slots__ = ("citations", "ended", "fields", "index", "part", "pieces", "sizes")

    def __init__(self, index: int, part: AnyPart) -> None:
        self.index = index
        self.part = part
        self.pieces: dict[int, list[str]] = {}
        self.sizes: dict[int, int] = {}
        self.citations = 0
        self.fields = dict(part.extras.fields) if part.extras else {}
        self.ended = False

    def append_delta(self, text: str, piece: int) -> None:
        """Note more of a text."""
        if not 0 <= piece < _MAX_PIECES:
            raise Malformed(f"a thought has no text number {piece}")
        self.pieces.setdefault(piece, []).append(text)
        self.sizes[piece] = self.sizes.get(piece, 0) + len(text)

    def get_text(self, piece: int = 0) -> str:
        """Return the text told so far."""
        return "".join(self.pieces.get(piece, ()))


class OpenItem:
    """An output item and its parts by content index."""

    __slots__ = ("begun", "done", "held", "item", "order", "parts", "where")

    def __init__(self, item: WireItem | None, index: int) -> None:
        self.item = item
        self.order = 0
        self.where = f"/output/{index}"
        """Its place in the whole reply."""
        self.held: list[AnyPart] = []
        self.parts: dict[int, OpenPart] = {}
        self.begun = False
        self.done = False


class OpenItems:
    """The items of a stream, found by id, else by output index: some servers' ids change from event to event."""

    def __init__(self) -> None:
        self._order: list[OpenItem] = []
        self._released_count = 0
        """How many items at the head wait for none."""
        self._by_id: dict[str, OpenItem] = {}
        self._by_index: dict[int, OpenItem] = {}

    def add(self, event: StreamEvent, item: WireItem | None) -> OpenItem:
        """Note an item that an event speaks of first."""
        known = OpenItem(item, len(self._order) if event.output_index is None else event.output_index)
        self.append(known)
        item_id = (item.id if item is not None else None) or event.item_id
        if item_id:
            self._by_id[item_id] = known
        if event.output_index is not None:
            self._by_index[event.output_index] = known
        return known

    def append(self, item: OpenItem) -> OpenItem:
        """Note an item at the end, such as one that only the terminal object has."""
        item.order = len(self._order)
        self._order.append(item)
        return item

    def find(self, event: StreamEvent) -> OpenItem | None:
        """Find the item an event is about; an event that names none is about the last."""
        known = self._by_id.get(event.item_id) if event.item_id else None
        if known is not None:
            return known
        if event.output_index is not None:
            return self._by_index.get(event.output_index)
        return self.get_last() if event.item_id is None else None

    def find_by_id(self, item: WireItem | None) -> OpenItem | None:
        """Find an item by its own id."""
        return self._by_id.get(item.id) if item is not None and item.id else None

    def find_at(self, index: int, seen: int) -> OpenItem | None:
        """Find the item at a place of the terminal object, among the first `told` in order of appearance if need be."""
        return self._by_index.get(index) or (self._order[index] if index < seen else None)

    def get_last(self) -> OpenItem | None:
        """Return the item noted last."""
        return self._order[-1] if self._order else None

    def count(self) -> int:
        """Count the items."""
        return len(self._order)

    def pop_released(self, done: OpenItem) -> list[OpenItem]:
        """Return the items that can be told now that one is done: those behind an unknown one wait until it is."""
        first = self._released_count
        while self._released_count < len(self._order) and (
            self._order[self._released_count].done or self._order[self._released_count].item
        ):
            self._released_count += 1
        released = self._order[first : self._released_count]
        return [done, *released] if done.order < first else released

    def list_all(self) -> list[OpenItem]:
        """Return the items in order of appearance."""
        return self._order


class EventWriter:
    """Parts in, events out."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.parts: list[AnyPart] = []

    def start_part(self, part: AnyPart) -> OpenPart:
        """Start an empty part."""
        opened = OpenPart(len(self.parts), part)
        self.parts.append(part)
        self.events.append(PartStarted(opened.index, part))
        return opened

    def write_part(self, part: AnyPart) -> None:
        """Tell a whole part."""
        index = len(self.parts)
        self.parts.append(part)
        self.events.extend(replay_part(index, part))

    def append_delta(self, part: OpenPart | None, text: str, piece: int = 0) -> None:
        """Tell the next piece of a text."""
        if part is None or not text:
            return
        part.append_delta(text, piece)
        self.events.append(PartDelta(part.index, text, piece))

    def append_missing(self, part: OpenPart, text: str, piece: int = 0) -> None:
        """Tell what is missing of a text."""
        size = part.sizes.get(piece, 0)
        # What is no longer than that is not compared: some servers tell an end again and again.
        if len(text) > size and text.startswith(part.get_text(piece)):
            self.append_delta(part, text[size:], piece)

    def write_citation(self, part: OpenPart, annotation: bytes) -> None:
        """Tell a source of a text."""
        if not isinstance(part.part, Text):
            return
        part.citations += 1
        self.events.append(PartCited(part.index, read_citation(annotation)))

    def reconcile(self, part: OpenPart, whole: AnyPart) -> None:
        """Tell what the deltas left out of a part; one that turns out to be of another kind stands as it was told."""
        if type(whole) is not type(part.part):
            return
        match whole:
            case Text(text=text, citations=citations):
                self.append_missing(part, text)
                for citation in citations[part.citations :]:
                    self.events.append(PartCited(part.index, citation))
                part.citations = max(part.citations, len(citations))
            case Refusal(text=text):
                self.append_missing(part, text)
            case ToolCall(arguments=arguments):
                self.append_missing(part, arguments)
            case Reasoning(texts=texts):
                for piece, text in enumerate(texts):
                    if piece not in part.pieces:
                        part.append_delta(text, piece)
                        self.events.append(PartDelta(part.index, text, piece))
                    else:
                        self.append_missing(part, text, piece)
            case _:
                return
        if whole.signature is not None:
            self.events.append(PartSigned(part.index, whole.signature))
        for name, raw in (whole.extras.fields if whole.extras else {}).items():
            if part.fields.get(name) != raw:
                part.fields[name] = raw
                self.events.append(PartNative(part.index, NAME, name, raw))

    def end_part(self, part: OpenPart, status: str | None = None) -> None:
        """End a part, once; a call without arguments has none, and one whose arguments broke off is not complete."""
        if part.ended:
            return
        part.ended = True
        complete = True
        if isinstance(part.part, ToolCall):
            if part.part.form == "json" and not part.pieces:
                self.append_delta(part, NO_ARGUMENTS)
            complete = is_complete(structs.replace(part.part, arguments=part.get_text()), status)
        self.events.append(PartEnded(part.index, complete))
