"""Web searches in a reply: searches of two parts joined to one, and texts cut where their citations are."""

from collections.abc import Iterable, Iterator

from msgspec import structs

from dragoman.core.parts import AnyPart, Citation, Search, Text

GENERATED_MARK = "ZHJhZ29tYW4x"
"""Base64 of "dragoman1", which starts the id of every search that is written for another dialect.

The client sends the search back in its history, and no vendor has the encrypted data that its own searches have.
"""


def is_generated(search_id: str) -> bool:
    """Return whether a search was written for a dialect other than that of the upstream that ran it."""
    return GENERATED_MARK in search_id


class SearchJoiner:
    """Joins a search that comes as two parts, one with the query and one with the results."""

    def __init__(self) -> None:
        self._calls: dict[str, Search] = {}

    def add(self, search: Search) -> Search | None:
        """Return the whole search; None for a call whose results have not come."""
        if search.step == "call":
            self._calls[search.id] = search
            return None
        call = self._calls.pop(search.id, None) if search.step == "results" else None
        return search if call is None else structs.replace(search, queries=call.queries, step="whole")

    def take_unfinished(self) -> list[Search]:
        """Return the searches without results: the reply ended, or paused, before they came."""
        calls, self._calls = self._calls, {}
        return list(calls.values())


def split_cited_text(text: Text) -> list[Text]:
    """Cut a text where its citations start and end, for a dialect whose citations are about a whole block.

    Each citation is on the block that ends where its span ends, and keeps its span in the whole text. Blank space gets
    no block of its own.
    """
    size = len(text.text)
    whole = tuple(citation for citation in text.citations if _covers_all(citation, size))
    spans = [citation for citation in text.citations if not _covers_all(citation, size)]
    if not spans:
        return [text]
    cited: dict[tuple[int, int], list[Citation]] = {}
    for citation in sorted(spans, key=_find_span):
        cited.setdefault(_find_span(citation), []).append(citation)
    pieces: list[tuple[str, list[Citation]]] = []
    position = 0
    for (start, end), citations in cited.items():
        first, last = max(min(start, size), position), min(end, size)
        if last <= first:
            # It is inside a span before it.
            if pieces:
                pieces[-1][1].extend(citations)
                continue
            first, last = 0, size
        _add_piece(pieces, text.text[position:first], [])
        _add_piece(pieces, text.text[first:last], citations)
        position = last
    _add_piece(pieces, text.text[position:], [])
    last_piece = len(pieces) - 1
    return [
        structs.replace(
            text,
            text=piece,
            citations=(*citations, *whole),
            extras=text.extras if index == 0 else None,
            signature=text.signature if index == last_piece else None,
        )
        for index, (piece, citations) in enumerate(pieces)
    ]


def _find_span(citation: Citation) -> tuple[int, int]:
    return max(citation.start or 0, 0), max(citation.end or 0, 0)


def _covers_all(citation: Citation, size: int) -> bool:
    """Return whether a citation is about the whole text: it has no span, an empty one or one as long as the text."""
    start, end = citation.start or 0, size if citation.end is None else citation.end
    return start >= end or (start <= 0 and end >= size)


def _add_piece(pieces: list[tuple[str, list[Citation]]], text: str, citations: list[Citation]) -> None:
    if pieces and not text.strip() and not citations:
        pieces[-1] = (pieces[-1][0] + text, pieces[-1][1])
    elif text:
        pieces.append((text, citations))


def list_cited_pages(parts: Iterable[AnyPart]) -> Iterator[Citation]:
    """Yield the first citation of each page that the texts cite."""
    seen: set[str] = set()
    for part in parts:
        for citation in part.citations if isinstance(part, Text) else ():
            if citation.url and citation.url not in seen:
                seen.add(citation.url)
                yield citation
