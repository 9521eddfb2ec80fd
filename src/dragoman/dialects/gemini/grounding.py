"""Sources of a reply: Google's metadata beside the answer, and citations on its texts.

Rules: Google counts bytes of UTF-8, the core counts characters of the text a citation stands on. The metadata itself
is kept whole beside the reply and comes home as it was, so citations of Gemini's own are read from it and never
written. A source without an address is told nowhere but in the metadata. What is cited must still be open: metadata
that names a text which is over says so only at home.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import accumulate, islice
from typing import Any

from msgspec import structs

from dragoman.core.parts import AnyPart, Citation, Text
from dragoman.dialects.gemini.sources import CITATION_FIELD, GROUNDING_FIELD, Mention, Metadata
from dragoman.dialects.gemini.wire import NAME
from dragoman.wire import json

_NEAR = 4096
"""How many characters off Google's numbers may be; its words are looked for no further."""


class SourceReader:
    """What a reply says and the sources it names, as they come; asked for its citations when a text ends."""

    __slots__ = ("_begins", "_begun", "_laid", "_metadata", "_sizes", "layout", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        """All that is said, thoughts not counted."""
        self.layout: list[int] = []
        """Where in `pieces` each part of the first chunk begins."""
        self._laid = 0
        self._begins: dict[int, int] = {}
        self._begun: list[int] = []
        self._sizes = [0]
        self._metadata: dict[str, Metadata] = {}

    def lay_out(self) -> list[int]:
        """Return the layout of the first chunk that says something, to be filled."""
        self.layout = []
        self._laid = 0
        return self.layout

    def begin(self, index: int) -> None:
        """A text begins, part `index` of the reply."""
        self._begins[index] = len(self.pieces)
        self._begun.append(index)

    def take(self, field: str, raw: bytes) -> None:
        """Take metadata that stands at `field`."""
        if field not in self._metadata:
            self._metadata[field] = Metadata(field)
        self._metadata[field].take(raw)

    def fields(self) -> dict[str, bytes]:
        """Return all metadata, each kind put together."""
        return {field: metadata.whole() for field, metadata in self._metadata.items()}

    def cited(self, index: int, *, last: bool) -> list[Citation]:
        """Return the citations of text `index`, which ends now; after the `last` one nothing more is said."""
        if not self._metadata:
            return []
        sizes = self._sizes
        sizes.extend(islice(accumulate((len(piece.encode()) for piece in self._new()), initial=sizes[-1]), 1, None))
        begin = self._begins[index]
        named = self._named(sizes[begin], None if last else sizes[-1], last=last)
        if not named:
            return []
        text = "".join(self.pieces[begin:])
        offsets = _offsets(text)
        found: dict[Citation, list[str]] = {}
        for start, mention in named:
            citation = _cited(mention, text, offsets, start - sizes[begin])
            found.setdefault(citation, []).extend(mention.places)
        return [structs.replace(citation, places=tuple(places)) for citation, places in found.items()]

    def _new(self) -> Iterator[str]:
        return islice(self.pieces, len(self._sizes) - 1, None)

    def _named(self, begin: int, end: int | None, *, last: bool) -> list[tuple[int, Mention]]:
        begun = [*range(self._laid, len(self.layout)), *self._begun]
        self._laid = len(self.layout)
        self._begun = []
        named: list[tuple[int, Mention]] = []
        for field in (GROUNDING_FIELD, CITATION_FIELD):
            metadata = self._metadata.get(field)
            if metadata is not None:
                metadata.read_new()
                metadata.mentions.place(None if last else begun, partial(self._base, last=last))
                named.extend(metadata.mentions.between(begin, end))
        return named

    def _base(self, part: int, *, last: bool) -> int | None:
        """Return the byte of all that is said where a part begins; None if it has not begun."""
        if not part:
            # Most replies name no part, whatever stands before their text.
            return 0
        if 0 < part < len(self.layout):
            return self._sizes[self.layout[part]]
        # A stream does not say where its parts end, so they are counted as they are put together.
        begins = self._begins.get(part, 0 if last else None)
        return None if begins is None else self._sizes[begins]


def _cited(mention: Mention, text: str, offsets: list[int], start: int) -> Citation:
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
    end = place + len(words)
    before, after = text.rfind(words, max(place - _NEAR, 0), end), text.find(words, place, end + _NEAR)
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
    if type(part) is not Text or not part.citations:
        return False
    return any(citation.url and citation.dialect != NAME for citation in part.citations)


def joined(parts: Iterable[AnyPart]) -> list[AnyPart]:
    """Put texts that follow each other into one: most clients count from where all text begins."""
    kept: list[AnyPart] = []
    run: list[Text] = []
    for part in parts:
        if run and not _goes_on(run[-1], part):
            kept.append(_one(run))
            run = []
        if isinstance(part, Text):
            run.append(part)
        else:
            kept.append(part)
    return [*kept, _one(run)] if run else kept


def _goes_on(before: Text, part: AnyPart) -> bool:
    return isinstance(part, Text) and before.signature is None and before.extras is None and part.extras is None


def _one(run: list[Text]) -> Text:
    """Return the texts of a run as one, signed as the last is."""
    citations: list[Citation] = []
    size = 0
    for text in run:
        citations.extend(_spanned(text, size))
        size += len(text.text)
    return structs.replace(run[-1], text="".join(text.text for text in run), citations=tuple(citations))


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
    supports: dict[tuple[int, int, int], tuple[dict[str, Any], dict[int, None]]] = {}
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
            _, indices = supports.setdefault((position, first, last), (segment, {}))
            indices[number] = None
    chunks = [{"web": page} for page in pages.values()]
    told = [{"segment": segment, "groundingChunkIndices": list(indices)} for segment, indices in supports.values()]
    return {GROUNDING_FIELD: json.encode({"groundingChunks": chunks, "groundingSupports": told})}
