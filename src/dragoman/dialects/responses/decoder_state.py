"""State of a streamed reply while it is decoded: which items and parts are open, and what was emitted for them.

Rules: deltas are emitted as they arrive. When the whole part is known, only what the deltas left out is emitted. If the
deltas differ from it, they win, because the client has received them already.
"""

from collections.abc import Iterable

from msgspec import structs

from dragoman.core.events import Event, PartCited, PartDelta, PartEnded, PartNative, PartSigned, PartStarted
from dragoman.core.parts import AnyPart, Reasoning, Refusal, Text, ToolCall
from dragoman.core.stream import replay_part
from dragoman.dialects.responses.output import NO_ARGUMENTS, is_complete
from dragoman.dialects.responses.parts import read_citation
from dragoman.dialects.responses.wire import NAME, StreamEvent, WireItem
from dragoman.wire.json import Malformed

_MAX_PIECES = 100_000
"""Limit of text indexes in a reasoning part: a list of its texts has an entry for every index below the highest."""


class OpenPart:
    """A part that has started, and what was emitted for it."""

    __slots__ = ("citation_count", "ended", "fields", "index", "part", "pieces", "sizes")

    def __init__(self, index: int, part: AnyPart) -> None:
        self.index = index
        self.part = part
        self.pieces: dict[int, list[str]] = {}
        self.sizes: dict[int, int] = {}
        self.citation_count = 0
        self.fields = dict(part.extras.fields) if part.extras else {}
        self.ended = False

    def append_delta(self, text: str, piece: int) -> None:
        """Record a delta of text number `piece`."""
        if not 0 <= piece < _MAX_PIECES:
            raise Malformed(f"the text index {piece} of a reasoning item is out of range")
        self.pieces.setdefault(piece, []).append(text)
        self.sizes[piece] = self.sizes.get(piece, 0) + len(text)

    def get_text(self, piece: int = 0) -> str:
        """Return the text emitted so far."""
        return "".join(self.pieces.get(piece, ()))


class OpenItem:
    """An output item and its parts, by content index."""

    __slots__ = ("done", "item", "order", "parts", "pending_parts", "started", "where")

    def __init__(self, item: WireItem | None, index: int) -> None:
        self.item = item
        self.order = 0
        self.where = f"/output/{index}"
        """Its pointer in the whole reply."""
        self.pending_parts: list[AnyPart] = []
        """Parts of a finished item that are emitted once the items before it are done."""
        self.parts: dict[int, OpenPart] = {}
        self.started = False
        self.done = False

    def match_parts(self, count: int) -> list[OpenPart | None]:
        """Return the open part, or None, for each of the `count` content parts of the finished item."""
        return [self.parts.get(index) for index in align(self.parts, count)]


def align(indexes: Iterable[int], count: int) -> list[int]:
    """Return the streamed index of each of `count` finished texts.

    It is the same index, unless one is not below `count`: some servers skip indexes or count from 1, so then the
    streamed ones are taken in order.
    """
    streamed = list(indexes)
    if all(index < count for index in streamed):
        return list(range(count))
    return [*streamed, *range(max(streamed) + 1, max(streamed) + 1 + count)][:count]


class OpenItems:
    """The items of a stream, found by id or by output index: some servers' ids change from event to event."""

    def __init__(self) -> None:
        self._order: list[OpenItem] = []
        self._released_count = 0
        """Number of leading items that do not wait for another item."""
        self._by_id: dict[str, OpenItem] = {}
        self._by_index: dict[int, OpenItem] = {}

    def add(self, event: StreamEvent, item: WireItem | None) -> OpenItem:
        """Add the item of the first event that refers to it."""
        known = OpenItem(item, len(self._order) if event.output_index is None else event.output_index)
        self.append(known)
        item_id = (item.id if item is not None else None) or event.item_id
        if item_id:
            self._by_id[item_id] = known
        if event.output_index is not None:
            self._by_index[event.output_index] = known
        return known

    def append(self, item: OpenItem) -> OpenItem:
        """Append an item, such as one that is only in the terminal event."""
        item.order = len(self._order)
        self._order.append(item)
        return item

    def find(self, event: StreamEvent) -> OpenItem | None:
        """Find the item that an event refers to; an event without id and index refers to the last item."""
        known = self._by_id.get(event.item_id) if event.item_id else None
        if known is not None:
            return known
        if event.output_index is not None:
            return self._by_index.get(event.output_index)
        return self.get_last() if event.item_id is None else None

    def find_by_id(self, item: WireItem | None) -> OpenItem | None:
        """Find an item by its id."""
        return self._by_id.get(item.id) if item is not None and item.id else None

    def find_at(self, index: int, seen: int) -> OpenItem | None:
        """Find the item at an index of the terminal event: by output index, else in order among the first `seen`."""
        return self._by_index.get(index) or (self._order[index] if index < seen else None)

    def get_last(self) -> OpenItem | None:
        """Return the item that was added last."""
        return self._order[-1] if self._order else None

    def count(self) -> int:
        """Return the number of items."""
        return len(self._order)

    def pop_released(self, done: OpenItem) -> list[OpenItem]:
        """Return the items that can be emitted now that `done` is done.

        Items after one of unknown type wait until that one is done.
        """
        first = self._released_count
        while self._released_count < len(self._order) and (
            self._order[self._released_count].done or self._order[self._released_count].item
        ):
            self._released_count += 1
        released = self._order[first : self._released_count]
        return [done, *released] if done.order < first else released

    def list_all(self) -> list[OpenItem]:
        """Return all items in order of arrival."""
        return self._order


class EventWriter:
    """Emits core events for parts."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.parts: list[AnyPart] = []

    def start_part(self, part: AnyPart) -> OpenPart:
        """Emit the start of a part."""
        opened = OpenPart(len(self.parts), part)
        self.parts.append(part)
        self.events.append(PartStarted(opened.index, part))
        return opened

    def write_part(self, part: AnyPart) -> None:
        """Emit all events of a whole part."""
        index = len(self.parts)
        self.parts.append(part)
        self.events.extend(replay_part(index, part))

    def append_delta(self, part: OpenPart | None, text: str, piece: int = 0) -> None:
        """Emit the next delta of a text."""
        if part is None or not text:
            return
        part.append_delta(text, piece)
        self.events.append(PartDelta(part.index, text, piece))

    def append_missing(self, part: OpenPart, text: str, piece: int = 0) -> None:
        """Emit the rest of a text if the deltas sent only its start."""
        size = part.sizes.get(piece, 0)
        # The texts are compared only if there is something to add: some servers repeat `done` events many times.
        if len(text) > size and text.startswith(part.get_text(piece)):
            self.append_delta(part, text[size:], piece)

    def write_citation(self, part: OpenPart, annotation: bytes) -> None:
        """Emit a citation of a text."""
        if not isinstance(part.part, Text):
            return
        part.citation_count += 1
        self.events.append(PartCited(part.index, read_citation(annotation)))

    def reconcile(self, part: OpenPart, whole: AnyPart) -> None:
        """Emit what the deltas left out of a part; ignore `whole` if it is of another type."""
        if type(whole) is not type(part.part):
            return
        match whole:
            case Text(text=text, citations=citations):
                self.append_missing(part, text)
                for citation in citations[part.citation_count :]:
                    self.events.append(PartCited(part.index, citation))
                part.citation_count = max(part.citation_count, len(citations))
            case Refusal(text=text):
                self.append_missing(part, text)
            case ToolCall(arguments=arguments):
                self.append_missing(part, arguments)
            case Reasoning(texts=texts):
                for piece, text in zip(align(sorted(part.pieces), len(texts)), texts, strict=True):
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
        """Emit the end of a part, once; empty arguments become `{}`, and a call that was cut off is not complete."""
        if part.ended:
            return
        part.ended = True
        complete = True
        if isinstance(part.part, ToolCall):
            if part.part.form == "json" and not part.pieces:
                self.append_delta(part, NO_ARGUMENTS)
            complete = is_complete(structs.replace(part.part, arguments=part.get_text()), status)
            if not complete:
                self.parts[part.index] = structs.replace(part.part, complete=False)
        self.events.append(PartEnded(part.index, complete))
