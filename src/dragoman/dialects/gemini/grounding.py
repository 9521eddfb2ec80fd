"""Reads Google's grounding and citation metadata: citations of text parts, and the web search that was run.

Rules: Google counts UTF-8 bytes, the core counts characters of the cited text. The metadata itself is kept whole as an
extra field of the reply and is rendered unchanged for Gemini clients, so citations from Gemini are read from it and
never written. A source without a URL gets no citation. Only a text that is still open can get one: metadata that
arrives after its text has ended reaches only Gemini clients. In a stream, later members replace earlier ones, but lists
of citations are appended. Metadata is read once, and a mention is processed when its text ends, so the time is linear
in the length of the reply and the number of sources.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from heapq import heappop, heappush
from itertools import accumulate, islice

from msgspec import Raw, Struct, structs

from dragoman.core.parts import Citation, FoundPage, Opaque, Search
from dragoman.core.value import Extras
from dragoman.dialects.gemini.wire import CITATIONS, GROUNDING, NAME, GroundingChunk, Segment, Source
from dragoman.wire import json
from dragoman.wire.lookup import find_leaves
from dragoman.wire.pointer import fold_case

GROUNDING_FIELD = "/candidates/0/groundingMetadata"
CITATION_FIELD = "/candidates/0/citationMetadata"
_LISTS = ("citations", "citationSources", "citation_sources")
_SOURCE_MEMBERS = frozenset({"groundingChunks", "groundingSupports", "grounding_chunks", "grounding_supports"})
_SEARCH_LEAF = re.compile(r"/websearchqueries/\d+$|/groundingchunks/\d+/web/(?:uri|title)$")
_SEARCH_CALL = b"GOOGLE_SEARCH_WEB"
_SEARCH_DISTANCE = 4096
"""The quoted text is searched at most this many characters from Google's offsets, which may be wrong."""


class Mention(Struct, frozen=True):
    """A source of bytes `start` to `end` of a part, or of the whole answer. None means not given.

    `places` are the JSON pointers of its members in the metadata.
    """

    url: str
    title: str
    places: tuple[str, ...]
    quote: str = ""
    part: int = 0
    start: int | None = None
    end: int | None = None


class Mentions:
    """A queue of mentions by start byte. A mention of a part that has not started waits for it."""

    def __init__(self) -> None:
        self._count = 0
        self._new: list[tuple[int, Mention]] = []
        self._unplaced: dict[int, list[tuple[int, Mention]]] = {}
        self._placed: list[tuple[int, int, Mention]] = []

    def add(self, mention: Mention) -> None:
        """Add a mention."""
        self._new.append((self._count, mention))
        self._count += 1

    def locate(self, started: list[int] | None, find_start: Callable[[int], int | None]) -> None:
        """Compute the start bytes of new mentions and of those waiting for the `started` parts (None: for any part).

        `find_start` returns the start byte of a part in the answer, None if the part has not started.
        """
        waiting, self._new = self._new, []
        for part in list(self._unplaced) if started is None else started:
            waiting.extend(self._unplaced.pop(part, ()))
        for order, mention in waiting:
            part_start = find_start(mention.part)
            if part_start is None:
                self._unplaced.setdefault(mention.part, []).append((order, mention))
            else:
                heappush(self._placed, (part_start + (mention.start or 0), order, mention))

    def pop_between(self, begin: int, end: int | None) -> list[tuple[int, Mention]]:
        """Remove and return the mentions that start in [`begin`, `end`), in arrival order; discard earlier ones."""
        found: list[tuple[int, int, Mention]] = []
        while self._placed and (end is None or self._placed[0][0] < end):
            start, order, mention = heappop(self._placed)
            if start >= begin:
                found.append((order, start, mention))
        return [(start, mention) for _, start, mention in sorted(found, key=lambda entry: entry[0])]


class Metadata:
    """The grounding or citation metadata of a reply, merged from its chunks."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._single: bytes | None = None
        """The metadata unchanged, if only one chunk has sent any."""
        self._members: dict[str, Raw] = {}
        self._lists: dict[str, list[Raw]] = {}
        self._read: dict[str, int] = {}
        self._changed = False
        self.mentions = Mentions()

    def add(self, raw: bytes) -> None:
        """Merge the metadata of another chunk."""
        first = not self._members and not self._lists
        self._single = raw if first or json.first_byte(raw) != b"{" else None
        if json.first_byte(raw) != b"{":
            self._members, self._lists, self._read = {}, {}, {}
            return
        members = json.decode_object(raw)
        for name in _LISTS:
            value = members.get(name)
            if value is None:
                continue
            if json.first_byte(value) == b"[":
                del members[name]
                self._members.pop(name, None)
                self._extend_list(name, json.decode_array(value))
            else:
                self._lists.pop(name, None)
        self._changed = self._changed or not _SOURCE_MEMBERS.isdisjoint(members)
        self._members.update(members)

    def _extend_list(self, name: str, items: list[Raw]) -> None:
        known = self._lists.setdefault(name, [])
        # Some chunks repeat all earlier items.
        new = items[len(known) :] if items[: len(known)] == known else items
        known.extend(new)

    def build(self) -> bytes:
        """Return the merged metadata as JSON."""
        if self._single is not None:
            return self._single
        lists = {name: json.encode(items) for name, items in self._lists.items()}
        return json.with_members(b"{}", {**{name: bytes(raw) for name, raw in self._members.items()}, **lists})

    def read_new(self) -> None:
        """Read the mentions of metadata that has arrived since the last call."""
        try:
            if self._field == GROUNDING_FIELD:
                self._read_grounding()
            else:
                self._read_citations()
        except json.Malformed:
            # Metadata that does not have Google's format has no mentions.
            return

    def _read_grounding(self) -> None:
        if not self._changed:
            return
        self._changed = False
        self.mentions = Mentions()
        members = {name: bytes(raw) for name, raw in self._members.items() if name in _SOURCE_MEMBERS}
        raw = json.with_members(b"{}", members)
        leaves = {fold_case(leaf): leaf for leaf in find_leaves(raw, GROUNDING_FIELD)}
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
                    leaves = {fold_case(leaf): leaf for leaf in find_leaves(item, where)}
                    self.mentions.add(_keep_existing_places(mention, leaves))


def _keep_existing_places(mention: Mention, leaves: dict[str, str]) -> Mention:
    """Return a mention with only those pointers that exist in the metadata, in camelCase or snake_case."""
    places = tuple([leaves[name] for place in mention.places if (name := fold_case(place)) in leaves])
    return Mention(mention.url, mention.title, places, mention.quote, mention.part, mention.start, mention.end)


def _read_supports(raw: bytes) -> Iterator[Mention]:
    metadata, _ = GROUNDING.read(raw)
    chunks = metadata.grounding_chunks or []
    for number, support in enumerate(metadata.grounding_supports or ()):
        segment = support.segment or Segment()
        for order, index in enumerate(support.grounding_chunk_indices or ()):
            source = find_page(chunks[index]) if 0 <= index < len(chunks) else None
            if source is None:
                continue
            member, page = source
            where = f"{GROUNDING_FIELD}/groundingSupports/{number}"
            chunk = f"{GROUNDING_FIELD}/groundingChunks/{index}/{member}"
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


def find_page(chunk: GroundingChunk) -> tuple[str, Source] | None:
    """Return the page of a chunk and the name of its member; None if no page has a URL."""
    pages = (("web", chunk.web), ("retrievedContext", chunk.retrieved_context), ("maps", chunk.maps))
    return next(((member, page) for member, page in pages if page is not None and page.uri), None)


def _read_citation(item: Raw, where: str) -> Mention | None:
    metadata, _ = CITATIONS.read(b'{"citations":[' + bytes(item) + b"]}")
    for source in metadata.citations or ():
        if source.uri:
            places = tuple([f"{where}/{member}" for member in ("uri", "title", "startIndex", "endIndex")])
            return Mention(source.uri, source.title or "", places, start=source.start_index, end=source.end_index)
    return None


class SourceReader:
    """Collects the source metadata of a reply, and returns the citations of a text when it ends.

    `pieces` are all texts so far; `text_starts` has for each text part the index of its first piece, and `layout` the
    same for each part of the first chunk. The owner fills all three.
    """

    __slots__ = ("_layout", "_located_parts", "_located_texts", "_metadata", "_offsets", "_pieces", "_text_starts")

    def __init__(self, pieces: list[str], text_starts: dict[int, int], layout: list[int]) -> None:
        self._pieces = pieces
        self._text_starts = text_starts
        self._layout = layout
        self._located_texts = 0
        self._located_parts = 0
        """How many entries of `text_starts` and `layout` mentions have been located in."""
        self._offsets = [0]
        """The start byte of each piece in the answer, and the total size."""
        self._metadata: dict[str, Metadata] = {}

    def add(self, field: str, raw: bytes) -> None:
        """Add metadata of a chunk; `field` is its pointer in the reply."""
        if field not in self._metadata:
            self._metadata[field] = Metadata(field)
        self._metadata[field].add(raw)

    def build_fields(self) -> dict[str, bytes]:
        """Return the merged metadata by pointer."""
        return {field: metadata.build() for field, metadata in self._metadata.items()}

    def build_search(self) -> Search | None:
        """Return the web search that the grounding metadata shows; None if there was none."""
        metadata = self._metadata.get(GROUNDING_FIELD)
        return None if metadata is None else read_search(metadata.build())

    def build_citations(self, index: int, *, last: bool) -> list[Citation]:
        """Return the citations of text part `index`, which ends now; `last` if the reply ends with it."""
        offsets = self._offsets
        new_pieces = self._pieces[len(offsets) - 1 :]
        offsets.extend(accumulate([offsets.pop(), *(len(piece.encode()) for piece in new_pieces)]))
        begin = self._text_starts[index]
        mentions = self._find_mentions(offsets[begin], None if last else offsets[-1], last=last)
        if not mentions:
            return []
        text = "".join(self._pieces[begin:])
        text_offsets = list_byte_offsets(text)
        citations: dict[Citation, list[str]] = {}
        for start, mention in mentions:
            citation = _build_citation(mention, text, text_offsets, start - offsets[begin])
            citations.setdefault(citation, []).extend(mention.places)
        return [structs.replace(citation, places=tuple(places)) for citation, places in citations.items()]

    def _find_mentions(self, begin: int, end: int | None, *, last: bool) -> list[tuple[int, Mention]]:
        new_parts = range(self._located_parts, len(self._layout))
        # From the end: to skip the texts located before would take longer with each text.
        new_texts = islice(reversed(self._text_starts), len(self._text_starts) - self._located_texts)
        started = [*new_parts, *new_texts]
        self._located_parts, self._located_texts = len(self._layout), len(self._text_starts)
        mentions: list[tuple[int, Mention]] = []
        for field in (GROUNDING_FIELD, CITATION_FIELD):
            metadata = self._metadata.get(field)
            if metadata is not None:
                metadata.read_new()
                metadata.mentions.locate(None if last else started, partial(self._find_start, last=last))
                mentions.extend(metadata.mentions.pop_between(begin, end))
        return mentions

    def _find_start(self, part: int, *, last: bool) -> int | None:
        """Return the start byte of a part in the answer; None if the part has not started."""
        if not part:
            # Most replies have no part index and count from the start of the answer, whatever parts come before it.
            return 0
        if 0 < part < len(self._layout):
            return self._offsets[self._layout[part]]
        # Chunks do not show where Google's parts end, so the index counts the parts that the decoder joined.
        first_piece = self._text_starts.get(part, 0 if last else None)
        return None if first_piece is None else self._offsets[first_piece]


def _build_citation(mention: Mention, text: str, offsets: list[int], start: int) -> Citation:
    """Return the citation of `text` for a mention that starts at its byte `start`."""
    if mention.start is None and mention.end is None:
        return Citation(NAME, b"", mention.url, mention.title, mention.quote)
    length = max((mention.end or 0) - (mention.start or 0), 0)
    first, last = _find_character(offsets, start), _find_character(offsets, start + length)
    quote = mention.quote
    if quote and text[first:last] != quote:
        # With some tools Google's offsets are off by one, but its quoted text is right.
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


def list_byte_offsets(text: str) -> list[int]:
    """Return the start byte of each character, and the total size in bytes."""
    if text.isascii():
        return list(range(len(text) + 1))
    return [0, *accumulate(len(character.encode()) for character in text)]


def _find_character(offsets: list[int], byte: int) -> int:
    """Return the index of the character that contains a byte, or the end of the text."""
    return min(bisect_right(offsets, byte) - 1, len(offsets) - 1)


def read_search_call(part: Opaque) -> Search | None:
    """Return the web search of a part with Google's own call of it; None for any other part.

    Google sends such parts if the request also has functions, and the grounding metadata only if a text follows.
    """
    if _SEARCH_CALL not in part.raw:
        return None
    match json.peek(part.raw):
        case {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": [*queries]}, **call}}:
            pass
        case _:
            return None
    leaves = find_leaves(part.raw, "")
    fields = {
        pointer: json.encode(value)
        for pointer, value in leaves.items()
        if pointer != "/toolCall/toolType" and not pointer.startswith("/toolCall/args/queries")
    }
    return Search(
        where=part.where,
        extras=Extras(NAME, fields) if fields else None,
        dialect=NAME,
        raw=part.raw,
        id=json.get_text(call, "id"),
        queries=tuple(query for query in queries if isinstance(query, str) and query),
    )


def read_search(raw: bytes) -> Search | None:
    """Return the web search of grounding metadata, with its queries and pages.

    Returns None if it has no queries: pages that the user named, and documents, are sources without a search.
    """
    try:
        metadata, _ = GROUNDING.read(raw)
    except json.Malformed:
        return None
    queries = tuple(query for query in metadata.web_search_queries or () if query)
    if not queries:
        return None
    chunks = enumerate(metadata.grounding_chunks or ())
    pages = [(at, chunk.web) for at, chunk in chunks if chunk.web is not None and chunk.web.uri]
    leaves = find_leaves(raw, GROUNDING_FIELD)
    return Search(
        where=GROUNDING_FIELD,
        dialect=NAME,
        queries=queries,
        pages=tuple(
            FoundPage(page.uri or "", page.title or "", where=f"{GROUNDING_FIELD}/groundingChunks/{at}/web")
            for at, page in pages
        ),
        places=tuple(leaf for leaf in leaves if _SEARCH_LEAF.search(fold_case(leaf))),
    )
