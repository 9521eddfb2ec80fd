"""Sources of a reply: Google's metadata beside the answer, and citations on its texts.

Rules: Google counts bytes of UTF-8, the core counts characters of the text a citation stands on. The metadata itself
is kept whole beside the reply and comes home as it was, so citations of Gemini's own are read from it and never
written. A source without an address is told nowhere but in the metadata. What is cited must still be open: metadata
that names a text which is over says so only at home. In a stream later members win, but lists of citations go on. What
has been read is not read again, and a mention is looked at when the text it stands in ends: a long reply with many
sources takes time in proportion to its length.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import heappop, heappush
from itertools import accumulate, islice
from typing import Any

from msgspec import Raw, Struct, structs

from dragoman.core.parts import AnyPart, Citation, Text
from dragoman.dialects.gemini.wire import CITATIONS, GROUNDING, NAME, GroundingChunk, Segment, Source
from dragoman.wire import json

GROUNDING_FIELD = "/candidates/0/groundingMetadata"
CITATION_FIELD = "/candidates/0/citationMetadata"
_LISTS = ("citations", "citationSources", "citation_sources")
_SOURCE_MEMBERS = frozenset({"groundingChunks", "groundingSupports", "grounding_chunks", "grounding_supports"})
_SEARCH_DISTANCE = 4096
"""How many characters off Google's numbers may be; its words are looked for no further."""


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

    def locate(self, started: list[int] | None, find_start: Callable[[int], int | None]) -> None:
        """Find the places of new mentions and of those in parts that have `begun` (None: in any part).

        `base` tells the byte where a part begins, None if it has not begun.
        """
        waiting, self._new = self._new, []
        for part in list(self._unplaced) if started is None else started:
            waiting.extend(self._unplaced.pop(part, ()))
        for order, mention in waiting:
            begins = find_start(mention.part)
            if begins is None:
                self._unplaced.setdefault(mention.part, []).append((order, mention))
            else:
                heappush(self._placed, (begins + (mention.start or 0), order, mention))

    def pop_between(self, begin: int, end: int | None) -> list[tuple[int, Mention]]:
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
        self._single: bytes | None = None
        """All there is, as it came."""
        self._members: dict[str, Raw] = {}
        self._lists: dict[str, list[Raw]] = {}
        self._read: dict[str, int] = {}
        self._changed = False
        self.mentions = Mentions()

    def add(self, raw: bytes) -> None:
        """Take what another chunk says."""
        first = not self._members and not self._lists
        self._single = raw if first or json.first_byte(raw) != b"{" else None
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
                self._extend_list(name, json.decode_array(listed))
            else:
                self._lists.pop(name, None)
        self._changed = self._changed or not _SOURCE_MEMBERS.isdisjoint(members)
        self._members.update(members)

    def _extend_list(self, name: str, items: list[Raw]) -> None:
        known = self._lists.setdefault(name, [])
        # Some chunks tell all that was told before again.
        more = items[len(known) :] if items[: len(known)] == known else items
        known.extend(more)

    def build(self) -> bytes:
        """Return it put together."""
        if self._single is not None:
            return self._single
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
        grounds = {name: bytes(raw) for name, raw in self._members.items() if name in _SOURCE_MEMBERS}
        raw = json.with_members(b"{}", grounds)
        leaves = frozenset(json.find_leaves(raw, GROUNDING_FIELD))
        for mention in _read_supports(raw):
            self.mentions.add(_keep_existing_places(mention, leaves))

    def _read_citations(self) -> None:
        for name, items in self._lists.items():
            begin = self._read.get(name, 0)
            self._read[name] = len(items)
            for number, item in enumerate(items[begin:], begin):
                where = f"{CITATION_FIELD}/{name}/{number}"
                mention = _read_citation(item, where)
                if mention is not None:
                    self.mentions.add(_keep_existing_places(mention, frozenset(json.find_leaves(item, where))))


def _keep_existing_places(mention: Mention, leaves: frozenset[str]) -> Mention:
    """Return a mention with those of its places that are there."""
    places = tuple([place for place in mention.places if place in leaves])
    return Mention(mention.url, mention.title, places, mention.quote, mention.part, mention.start, mention.end)


def _read_supports(raw: bytes) -> Iterator[Mention]:
    metadata, _ = GROUNDING.read(raw)
    chunks = metadata.grounding_chunks or []
    for number, support in enumerate(metadata.grounding_supports or ()):
        segment = support.segment or Segment()
        for order, index in enumerate(support.grounding_chunk_indices or ()):
            source = _find_page(chunks[index]) if 0 <= index < len(chunks) else None
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


def _find_page(chunk: GroundingChunk) -> tuple[str, Source] | None:
    """Return the page a chunk is from and the member that names it; None for one without an address."""
    pages = (("web", chunk.web), ("retrievedContext", chunk.retrieved_context), ("maps", chunk.maps))
    return next(((word, page) for word, page in pages if page is not None and page.uri), None)


def _read_citation(item: Raw, where: str) -> Mention | None:
    metadata, _ = CITATIONS.read(b'{"citations":[' + bytes(item) + b"]}")
    for source in metadata.citations or ():
        if source.uri:
            places = tuple([f"{where}/{member}" for member in ("uri", "title", "startIndex", "endIndex")])
            return Mention(source.uri, source.title or "", places, start=source.start_index, end=source.end_index)
    return None


class SourceReader:
    """The sources that a reply names, as they come; asked for its citations when a text ends.

    `pieces` are all its texts so far, `begins` says where in them each text part begins, and `layout` where each part
    of the first chunk does; their owner fills them.
    """

    __slots__ = ("_begins", "_layout", "_metadata", "_pieces", "_placed", "_sizes", "_texts")

    def __init__(self, pieces: list[str], begins: dict[int, int], layout: list[int]) -> None:
        self._pieces = pieces
        self._begins = begins
        self._layout = layout
        self._texts = 0
        self._placed = 0
        """How many texts of `begins`, and parts of `layout`, the mentions have been placed in."""
        self._sizes = [0]
        self._metadata: dict[str, Metadata] = {}

    def add(self, field: str, raw: bytes) -> None:
        """Take metadata that stands at `field`."""
        if field not in self._metadata:
            self._metadata[field] = Metadata(field)
        self._metadata[field].add(raw)

    def build_fields(self) -> dict[str, bytes]:
        """Return all metadata, each kind put together."""
        return {field: metadata.build() for field, metadata in self._metadata.items()}

    def build_citations(self, index: int, *, last: bool) -> list[Citation]:
        """Return the citations of text `index`, which ends now; after the `last` one nothing more is said."""
        sizes = self._sizes
        sizes.extend(
            islice(accumulate((len(piece.encode()) for piece in self._new_pieces()), initial=sizes[-1]), 1, None)
        )
        begin = self._begins[index]
        named = self._find_mentions(sizes[begin], None if last else sizes[-1], last=last)
        if not named:
            return []
        text = "".join(self._pieces[begin:])
        offsets = _list_byte_offsets(text)
        found: dict[Citation, list[str]] = {}
        for start, mention in named:
            citation = _build_citation(mention, text, offsets, start - sizes[begin])
            found.setdefault(citation, []).extend(mention.places)
        return [structs.replace(citation, places=tuple(places)) for citation, places in found.items()]

    def _new_pieces(self) -> Iterator[str]:
        return islice(self._pieces, len(self._sizes) - 1, None)

    def _find_mentions(self, begin: int, end: int | None, *, last: bool) -> list[tuple[int, Mention]]:
        begun = [*range(self._placed, len(self._layout)), *islice(self._begins, self._texts, None)]
        self._placed, self._texts = len(self._layout), len(self._begins)
        named: list[tuple[int, Mention]] = []
        for field in (GROUNDING_FIELD, CITATION_FIELD):
            metadata = self._metadata.get(field)
            if metadata is not None:
                metadata.read_new()
                metadata.mentions.locate(None if last else begun, partial(self._find_start, last=last))
                named.extend(metadata.mentions.pop_between(begin, end))
        return named

    def _find_start(self, part: int, *, last: bool) -> int | None:
        """Return the byte of all that is said where a part begins; None if it has not begun."""
        if not part:
            # Most replies name no part, whatever stands before their text.
            return 0
        if 0 < part < len(self._layout):
            return self._sizes[self._layout[part]]
        # A stream does not say where its parts end, so they are counted as they are put together.
        begins = self._begins.get(part, 0 if last else None)
        return None if begins is None else self._sizes[begins]


def _build_citation(mention: Mention, text: str, offsets: list[int], start: int) -> Citation:
    """Return the citation for `text`, in which the mention begins at byte `start`."""
    if mention.start is None and mention.end is None:
        return Citation(NAME, b"", mention.url, mention.title, mention.quote)
    length = max((mention.end or 0) - (mention.start or 0), 0)
    first, last = _find_character(offsets, start), _find_character(offsets, start + length)
    quote = mention.quote
    if quote and text[first:last] != quote:
        # With some tools Google's numbers are one off; its words are right.
        found = _find_nearest(text, quote, first)
        if found >= 0:
            first, last = found, found + len(quote)
    return Citation(NAME, b"", mention.url, mention.title, quote or text[first:last], first, last)


def _find_nearest(text: str, quote: str, near: int) -> int:
    end = near + len(quote)
    before, after = (
        text.rfind(quote, max(near - _SEARCH_DISTANCE, 0), end),
        text.find(quote, near, end + _SEARCH_DISTANCE),
    )
    if before < 0 or after < 0:
        return max(before, after)
    return before if near - before <= after - near else after


def _list_byte_offsets(text: str) -> list[int]:
    """Return the byte at which each character begins, and the size of the whole."""
    if text.isascii():
        return list(range(len(text) + 1))
    return [0, *accumulate(len(character.encode()) for character in text)]


def _find_character(offsets: list[int], byte: int) -> int:
    """Return the character that holds a byte, or the end."""
    return min(bisect_right(offsets, byte) - 1, len(offsets) - 1)


def is_cited(part: AnyPart) -> bool:
    """Tell whether a part names a source that Gemini's metadata has yet to name."""
    if type(part) is not Text or not part.citations:
        return False
    return any(citation.url and citation.dialect != NAME for citation in part.citations)


def join_texts(parts: Iterable[AnyPart]) -> list[AnyPart]:
    """Put texts that follow each other into one: most clients count from where all text begins."""
    kept: list[AnyPart] = []
    run: list[Text] = []
    for part in parts:
        if run and not _can_join(run[-1], part):
            kept.append(_join_run(run))
            run = []
        if isinstance(part, Text):
            run.append(part)
        else:
            kept.append(part)
    return [*kept, _join_run(run)] if run else kept


def _can_join(previous: Text, part: AnyPart) -> bool:
    return isinstance(part, Text) and previous.signature is None and previous.extras is None and part.extras is None


def _join_run(run: list[Text]) -> Text:
    """Return the texts of a run as one, signed as the last is."""
    citations: list[Citation] = []
    size = 0
    for text in run:
        citations.extend(_shift_citations(text, size))
        size += len(text.text)
    return structs.replace(run[-1], text="".join(text.text for text in run), citations=tuple(citations))


def _shift_citations(text: Text, begin: int) -> tuple[Citation, ...]:
    """Return the citations of a text that begins at `begin`, each with its span; without one it is about all of it."""
    size = len(text.text)
    spanned: list[Citation] = []
    for citation in text.citations:
        start = min(max(citation.start or 0, 0), size)
        end = size if citation.end is None else min(max(citation.end, 0), size)
        if start >= end:
            start, end = 0, size
        spanned.append(structs.replace(citation, start=begin + start, end=begin + end))
    return tuple(spanned)


def write_grounding(parts: Iterable[AnyPart]) -> dict[str, bytes]:
    """Return the field that names the sources of parts as a client counts them, their texts joined."""
    pages: dict[str, dict[str, str]] = {}
    numbers: dict[str, int] = {}
    supports: dict[tuple[int, int, int], tuple[dict[str, Any], dict[int, None]]] = {}
    for position, part in enumerate(parts):
        if not isinstance(part, Text) or not is_cited(part):
            continue
        offsets = _list_byte_offsets(part.text)
        for citation in part.citations:
            if not citation.url or citation.dialect == NAME:
                continue
            number = numbers.setdefault(citation.url, len(numbers))
            page = pages.setdefault(citation.url, {"uri": citation.url})
            if citation.title:
                page.setdefault("title", citation.title)
            first, last = citation.start or 0, citation.end or 0
            segment: dict[str, Any] = {"partIndex": position} if position else {}
            segment |= {"startIndex": offsets[first], "endIndex": offsets[last], "text": part.text[first:last]}
            _, indices = supports.setdefault((position, first, last), (segment, {}))
            indices[number] = None
    chunks = [{"web": page} for page in pages.values()]
    told = [{"segment": segment, "groundingChunkIndices": list(indices)} for segment, indices in supports.values()]
    return {GROUNDING_FIELD: json.encode({"groundingChunks": chunks, "groundingSupports": told})}
