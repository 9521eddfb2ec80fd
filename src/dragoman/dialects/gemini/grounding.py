"""Sources of a reply: Google's metadata beside the answer, and citations on its texts.

Rules: Google counts bytes of UTF-8, the core counts characters of the text a citation stands on. The metadata itself
is kept whole beside the reply and comes home as it was, so citations of Gemini's own are read from it and never
written. A source without an address is told nowhere but in the metadata. What is cited must still be open: metadata
that names a text which is over says so only at home.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from msgspec import Struct, structs

from dragoman.core.parts import AnyPart, Citation, Text
from dragoman.dialects.gemini.wire import CITATIONS, GROUNDING, NAME, GroundingChunk, Segment, Source
from dragoman.wire import json

GROUNDING_FIELD = "/candidates/0/groundingMetadata"
CITATION_FIELD = "/candidates/0/citationMetadata"
_LISTS = ("citations", "citationSources")


class _Mention(Struct, frozen=True):
    """A source named for bytes `start` to `end` of a part, or of all that is said; None was not told."""

    url: str
    title: str
    places: tuple[str, ...]
    quote: str = ""
    part: int = 0
    start: int | None = None
    end: int | None = None


class SourceReader:
    """What a reply says and the sources it names, as they come; asked for its citations when a text ends."""

    __slots__ = ("_begins", "_fields", "_mentions", "layout", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        """All that is said, thoughts not counted."""
        self.layout: list[int] = []
        """Where in `pieces` each part of the first chunk begins."""
        self._begins: dict[int, int] = {}
        self._fields: dict[str, bytes] = {}
        self._mentions: list[_Mention] | None = None

    def begin(self, index: int) -> None:
        """A text begins, part `index` of the reply."""
        self._begins[index] = len(self.pieces)

    def take(self, field: str, raw: bytes) -> bytes:
        """Take metadata that stands at `field`; return it together with what came before."""
        known = self._fields.get(field)
        merged = self._fields[field] = raw if known is None else _merged(known, raw)
        self._mentions = None
        return merged

    def cited(self, index: int, *, last: bool) -> list[Citation]:
        """Return the citations of text `index`, which ends now; after the `last` one nothing more is said."""
        if not self._fields:
            return []
        begin = self._begins[index]
        text = "".join(self.pieces[begin:])
        sizes = [0, *accumulate(len(piece.encode()) for piece in self.pieces)]
        offsets = _offsets(text)
        found: dict[Citation, list[str]] = {}
        for mention in self._named():
            base = self._base(mention.part, last=last)
            if base is None:
                continue
            start = sizes[base] + (mention.start or 0) - sizes[begin]
            if start >= 0 and (start < offsets[-1] or last):
                citation = _cited(mention, text, offsets, start)
                found.setdefault(citation, []).extend(mention.places)
        return [structs.replace(citation, places=tuple(places)) for citation, places in found.items()]

    def _base(self, part: int, *, last: bool) -> int | None:
        """Return where in `pieces` a part begins; None if it has not begun."""
        if not part:
            # Most replies name no part, whatever stands before their text.
            return 0
        if 0 < part < len(self.layout):
            return self.layout[part]
        # A stream does not say where its parts end, so they are counted as they are put together.
        return self._begins.get(part, 0 if last else None)

    def _named(self) -> list[_Mention]:
        if self._mentions is None:
            self._mentions = []
            for field, read in ((GROUNDING_FIELD, _read_grounding), (CITATION_FIELD, _read_citations)):
                raw = self._fields.get(field)
                if raw is not None:
                    self._mentions.extend(_readable(read(raw), raw, field))
        return self._mentions


def _merged(known: bytes, raw: bytes) -> bytes:
    """Put metadata of several chunks together: later members win, but lists of citations go on."""
    if json.first_byte(known) != b"{" or json.first_byte(raw) != b"{":
        return raw
    old = {name: bytes(value) for name, value in json.decode_object(known).items()}
    new = {name: bytes(value) for name, value in json.decode_object(raw).items()}
    for name in _LISTS:
        lists = [json.decode_array(found[name]) for found in (old, new) if _is_list(found.get(name))]
        if len(lists) == 2:
            before, after = lists
            new[name] = json.encode(after if after[: len(before)] == before else before + after)
    return json.with_members(b"{}", {**old, **new})


def _is_list(raw: bytes | None) -> bool:
    return raw is not None and json.first_byte(raw) == b"["


def _readable(mentions: Iterator[_Mention], raw: bytes, field: str) -> Iterator[_Mention]:
    """Iterate mentions with the places that are there; metadata that is not what Google sends names nothing."""
    leaves = frozenset(json.leaves(raw, field))
    try:
        for mention in mentions:
            places = tuple([place for place in mention.places if place in leaves])
            yield structs.replace(mention, places=places)
    except json.Malformed:
        return


def _read_grounding(raw: bytes) -> Iterator[_Mention]:
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
            yield _Mention(
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


def _read_citations(raw: bytes) -> Iterator[_Mention]:
    metadata, _ = CITATIONS.read(raw)
    for name, sources in zip(_LISTS, (metadata.citations, metadata.citation_sources), strict=True):
        for number, source in enumerate(sources or ()):
            if source.uri:
                where = f"{CITATION_FIELD}/{name}/{number}"
                places = tuple([f"{where}/{member}" for member in ("uri", "title", "startIndex", "endIndex")])
                yield _Mention(source.uri, source.title or "", places, start=source.start_index, end=source.end_index)


def _cited(mention: _Mention, text: str, offsets: list[int], start: int) -> Citation:
    """Return the citation for `text`, in which the mention begins at byte `start`."""
    if mention.start is None and mention.end is None:
        return Citation(NAME, b"", mention.url, mention.title, mention.quote)
    length = max((mention.end or 0) - (mention.start or 0), 0)
    first, last = _character(offsets, start), _character(offsets, start + length)
    quote = mention.quote
    if quote and text[first:last] != quote:
        # With some tools Google's numbers are one off; its words are right.
        found = _nearest(text, quote, first)
        if found >= 0:
            first, last = found, found + len(quote)
    return Citation(NAME, b"", mention.url, mention.title, quote or text[first:last], first, last)


def _nearest(text: str, words: str, place: int) -> int:
    before, after = text.rfind(words, 0, place + len(words)), text.find(words, place)
    if before < 0 or after < 0:
        return max(before, after)
    return before if place - before <= after - place else after


def _offsets(text: str) -> list[int]:
    """Return the byte at which each character begins, and the size of the whole."""
    if text.isascii():
        return list(range(len(text) + 1))
    return [0, *accumulate(len(character.encode()) for character in text)]


def _character(offsets: list[int], byte: int) -> int:
    """Return the character that holds a byte, or the end."""
    return min(bisect_right(offsets, byte) - 1, len(offsets) - 1)


def is_cited(part: AnyPart) -> bool:
    """Tell whether a part names a source that Gemini's metadata has yet to name."""
    return isinstance(part, Text) and any(citation.url and citation.dialect != NAME for citation in part.citations)


def joined(parts: Iterable[AnyPart]) -> list[AnyPart]:
    """Put texts that follow each other into one: most clients count from where all text begins."""
    kept: list[AnyPart] = []
    for part in parts:
        before = kept[-1] if kept else None
        if not isinstance(part, Text):
            kept.append(part)
        elif isinstance(before, Text) and before.signature is None and before.extras is None and part.extras is None:
            citations = before.citations + _spanned(part, len(before.text))
            kept[-1] = structs.replace(part, text=before.text + part.text, citations=citations)
        else:
            kept.append(structs.replace(part, citations=_spanned(part, 0)))
    return kept


def _spanned(text: Text, begin: int) -> tuple[Citation, ...]:
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
    supports: dict[tuple[int, int, int], dict[str, Any]] = {}
    for position, part in enumerate(parts):
        if not isinstance(part, Text) or not is_cited(part):
            continue
        offsets = _offsets(part.text)
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
            support = {"segment": segment, "groundingChunkIndices": list[int]()}
            indices = supports.setdefault((position, first, last), support)["groundingChunkIndices"]
            if number not in indices:
                indices.append(number)
    chunks = [{"web": page} for page in pages.values()]
    return {GROUNDING_FIELD: json.encode({"groundingChunks": chunks, "groundingSupports": list(supports.values())})}
