"""Writes the sources of an answer from another dialect as Google's grounding metadata.

Rules: the core counts characters of the cited text, Google counts UTF-8 bytes. Citations and searches that come from
Gemini are not written: the metadata they were read from is kept whole as an extra field of the reply.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import structs

from dragoman.core.parts import AnyPart, Citation, Search, Text
from dragoman.dialects.gemini.grounding import GROUNDING_FIELD, list_byte_offsets
from dragoman.dialects.gemini.wire import NAME
from dragoman.wire import json


def needs_grounding(part: AnyPart) -> bool:
    """Return whether a part is a search, or has citations, from another dialect."""
    if type(part) is Search:
        return part.dialect != NAME
    if type(part) is not Text or not part.citations:
        return False
    return any(citation.url and citation.dialect != NAME for citation in part.citations)


def is_own_part(search: Search) -> bool:
    """Return whether a search is a part of its own that Google sent, which is written as it came."""
    return search.dialect == NAME and bool(search.raw)


def join_texts(parts: Iterable[AnyPart]) -> list[AnyPart]:
    """Join adjacent texts, because most clients count offsets from the start of the whole text."""
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
    """Join adjacent texts into one, with the signature of the last."""
    citations: list[Citation] = []
    size = 0
    for text in run:
        citations.extend(_shift_citations(text, size))
        size += len(text.text)
    return structs.replace(run[-1], text="".join(text.text for text in run), citations=tuple(citations))


def _shift_citations(text: Text, begin: int) -> tuple[Citation, ...]:
    """Return the citations of a text at offset `begin` of a joined text; one without a span covers the whole text."""
    size = len(text.text)
    shifted: list[Citation] = []
    for citation in text.citations:
        start = min(max(citation.start or 0, 0), size)
        end = size if citation.end is None else min(max(citation.end, 0), size)
        if start >= end:
            start, end = 0, size
        shifted.append(structs.replace(citation, start=begin + start, end=begin + end))
    return tuple(shifted)


def write_grounding(parts: Iterable[AnyPart], searches: Iterable[Search] = ()) -> dict[str, bytes]:
    """Return the groundingMetadata field for parts whose adjacent texts have been joined, as clients number them.

    The sources are the pages that are cited, and then the other pages that the searches found.
    """
    pages: dict[str, dict[str, str]] = {}
    numbers: dict[str, int] = {}
    supports: dict[tuple[int, int, int], tuple[dict[str, Any], dict[int, None]]] = {}
    for position, part in enumerate(parts):
        if not isinstance(part, Text) or not needs_grounding(part):
            continue
        offsets = list_byte_offsets(part.text)
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
    queries: list[str] = []
    others: list[dict[str, str]] = []
    """Pages whose title is not that of the citation."""
    for search in searches:
        queries += search.queries
        for found in search.pages:
            page = pages.setdefault(found.url, {"uri": found.url})
            if found.title and page.setdefault("title", found.title) != found.title:
                others.append({"uri": found.url, "title": found.title})
    metadata: dict[str, Any] = {"webSearchQueries": queries} if queries else {}
    metadata["groundingChunks"] = [{"web": page} for page in (*pages.values(), *others)]
    rows = [{"segment": segment, "groundingChunkIndices": list(indices)} for segment, indices in supports.values()]
    return {GROUNDING_FIELD: json.encode({**metadata, "groundingSupports": rows})}
