"""The sources that Google's metadata names, as chunks of a reply tell them.

Rules: later members win, but lists of citations go on. What has been read is not read again, and a mention is looked at
when the text it stands in ends: a long reply with many sources takes time in proportion to its length.
"""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from msgspec import Raw, Struct

from dragoman.dialects.gemini.wire import CITATIONS, GROUNDING, GroundingChunk, Segment, Source
from dragoman.wire import json

GROUNDING_FIELD = "/candidates/0/groundingMetadata"
CITATION_FIELD = "/candidates/0/citationMetadata"
_LISTS = ("citations", "citationSources", "citation_sources")
_GROUNDS = frozenset({"groundingChunks", "groundingSupports", "grounding_chunks", "grounding_supports"})


class Mention(Struct, frozen=True):
    """A source named for bytes `start` to `end` of a part, or of all that is said; None was not told."""

    url: str
    title: str
    places: tuple[str, ...]
    quote: str = ""
    part: int = 0
    start: int | None = None
    end: int | None = None


class Mentions:
    """Mentions by where they begin. One of a part that has not begun has no place yet."""

    def __init__(self) -> None:
        self._count = 0
        self._new: list[tuple[int, Mention]] = []
        self._unplaced: dict[int, list[tuple[int, Mention]]] = {}
        self._placed: list[tuple[int, int, Mention]] = []

    def add(self, mention: Mention) -> None:
        """Note a mention."""
        self._new.append((self._count, mention))
        self._count += 1

    def place(self, begun: list[int] | None, base: Callable[[int], int | None]) -> None:
        """Find the places of new mentions and of those in parts that have `begun` (None: in any part).

        `base` tells the byte where a part begins, None if it has not begun.
        """
        waiting, self._new = self._new, []
        for part in list(self._unplaced) if begun is None else begun:
            waiting.extend(self._unplaced.pop(part, ()))
        for order, mention in waiting:
            begins = base(mention.part)
            if begins is None:
                self._unplaced.setdefault(mention.part, []).append((order, mention))
            else:
                heappush(self._placed, (begins + (mention.start or 0), order, mention))

    def between(self, begin: int, end: int | None) -> list[tuple[int, Mention]]:
        """Return the mentions that begin from `begin` to before `end`, in their order; those before are over."""
        found: list[tuple[int, int, Mention]] = []
        while self._placed and (end is None or self._placed[0][0] < end):
            start, order, mention = heappop(self._placed)
            if start >= begin:
                found.append((order, start, mention))
        return [(start, mention) for _, start, mention in sorted(found, key=lambda one: one[0])]


class Metadata:
    """Metadata of one kind."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._only: bytes | None = None
        """All there is, as it came."""
        self._members: dict[str, Raw] = {}
        self._lists: dict[str, list[Raw]] = {}
        self._read: dict[str, int] = {}
        self._changed = False
        self.mentions = Mentions()

    def take(self, raw: bytes) -> None:
        """Take what another chunk says."""
        first = not self._members and not self._lists
        self._only = raw if first or json.first_byte(raw) != b"{" else None
        if json.first_byte(raw) != b"{":
            self._members, self._lists, self._read = {}, {}, {}
            return
        members = json.decode_object(raw)
        for name in _LISTS:
            listed = members.get(name)
            if listed is None:
                continue
            if json.first_byte(listed) == b"[":
                del members[name]
                self._members.pop(name, None)
                self._go_on(name, json.decode_array(listed))
            else:
                self._lists.pop(name, None)
        self._changed = self._changed or not _GROUNDS.isdisjoint(members)
        self._members.update(members)

    def _go_on(self, name: str, items: list[Raw]) -> None:
        known = self._lists.setdefault(name, [])
        # Some chunks tell all that was told before again.
        more = items[len(known) :] if items[: len(known)] == known else items
        known.extend(more)

    def whole(self) -> bytes:
        """Return it put together."""
        if self._only is not None:
            return self._only
        lists = {name: json.encode(items) for name, items in self._lists.items()}
        return json.with_members(b"{}", {**{name: bytes(raw) for name, raw in self._members.items()}, **lists})

    def read_new(self) -> None:
        """Read what it names and has not been read."""
        try:
            if self._field == GROUNDING_FIELD:
                self._read_grounding()
            else:
                self._read_citations()
        except json.Malformed:
            # Metadata that is not what Google sends names nothing.
            return

    def _read_grounding(self) -> None:
        if not self._changed:
            return
        self._changed = False
        self.mentions = Mentions()
        grounds = {name: bytes(raw) for name, raw in self._members.items() if name in _GROUNDS}
        raw = json.with_members(b"{}", grounds)
        leaves = frozenset(json.leaves(raw, GROUNDING_FIELD))
        for mention in _grounding(raw):
            self.mentions.add(_standing(mention, leaves))

    def _read_citations(self) -> None:
        for name, items in self._lists.items():
            begin = self._read.get(name, 0)
            self._read[name] = len(items)
            for number, item in enumerate(items[begin:], begin):
                where = f"{CITATION_FIELD}/{name}/{number}"
                mention = _citation(item, where)
                if mention is not None:
                    self.mentions.add(_standing(mention, frozenset(json.leaves(item, where))))


def _standing(mention: Mention, leaves: frozenset[str]) -> Mention:
    """Return a mention with those of its places that are there."""
    places = tuple([place for place in mention.places if place in leaves])
    return Mention(mention.url, mention.title, places, mention.quote, mention.part, mention.start, mention.end)


def _grounding(raw: bytes) -> Iterator[Mention]:
    metadata, _ = GROUNDING.read(raw)
    chunks = metadata.grounding_chunks or []
    for number, support in enumerate(metadata.grounding_supports or ()):
        segment = support.segment or Segment()
        for order, index in enumerate(support.grounding_chunk_indices or ()):
            source = _source(chunks[index]) if 0 <= index < len(chunks) else None
            if source is None:
                continue
            word, page = source
            where = f"{GROUNDING_FIELD}/groundingSupports/{number}"
            chunk = f"{GROUNDING_FIELD}/groundingChunks/{index}/{word}"
            spans = [f"{where}/segment/{name}" for name in ("partIndex", "startIndex", "endIndex", "text")]
            yield Mention(
                url=page.uri or "",
                title=page.title or "",
                places=(*spans, f"{where}/groundingChunkIndices/{order}", f"{chunk}/uri", f"{chunk}/title"),
                quote=segment.text or "",
                part=segment.part_index or 0,
                start=segment.start_index,
                end=segment.end_index,
            )


def _source(chunk: GroundingChunk) -> tuple[str, Source] | None:
    """Return the page a chunk is from and the member that names it; None for one without an address."""
    pages = (("web", chunk.web), ("retrievedContext", chunk.retrieved_context), ("maps", chunk.maps))
    return next(((word, page) for word, page in pages if page is not None and page.uri), None)


def _citation(item: Raw, where: str) -> Mention | None:
    metadata, _ = CITATIONS.read(b'{"citations":[' + bytes(item) + b"]}")
    for source in metadata.citations or ():
        if source.uri:
            places = tuple([f"{where}/{member}" for member in ("uri", "title", "startIndex", "endIndex")])
            return Mention(source.uri, source.title or "", places, start=source.start_index, end=source.end_index)
    return None
