"""Adapt the web searches of a reply to the client's dialect.

Rules: a search gets an id by which it is recognised when the client sends it back. A dialect that does not report
searches (Chat) has run one if its answer cites pages. If the client asked for a search and its dialect puts citations
on whole blocks (Messages), the answer is arranged as its own vendor's would be: the search comes before the text, with
the pages that the text cites if it lists none, and the text is cut where its citations start and end. The citations
come last in other vendors' streams, so such a stream is held back from its first text until it is complete.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from msgspec import structs

from dragoman.core import events
from dragoman.core.parts import AnyPart, Citation, FoundPage, Reasoning, Search, Text
from dragoman.core.response import Usage
from dragoman.core.searches import GENERATED_MARK, SearchJoiner, list_cited_pages, split_cited_text
from dragoman.core.stream import Collector, replay_part
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply_adapter import ReplyAdapter
from dragoman.wire import json

_NO_TITLES = "searches in the client's dialect list only the addresses of pages"
_MAX_HELD = 8_000_000
"""A reply with more characters than this is no longer held back."""


def generate_search_id(*seeds: object) -> str:
    """Return an id that marks a search as one that is written for another dialect."""
    return GENERATED_MARK + sha256(repr(seeds).encode()).hexdigest()[:24]


class ReplySearches:
    """The web searches of one reply."""

    def __init__(self, adapter: ReplyAdapter) -> None:
        self._adapter = adapter
        self._ledger = adapter.ledger
        self._joiner = SearchJoiner()
        self._count = 0
        self._query_count = 0
        self._unsent_titles: list[FoundPage] = []

    def add(self, search: Search) -> Search | None:
        """Return a search for the client; None for one whose results are still to come."""
        self._adapter.mark_sent(search.places)
        if not self._adapter.capabilities.search_titles:
            self._unsent_titles += (page for page in search.pages if page.title and page.where)
        whole = self._joiner.add(search)
        return None if whole is None else self._name(whole)

    def finish(self) -> list[Search]:
        """Return the searches that are known only at the end: without results, or found by the pages it cites."""
        adapter, cited = self._adapter, self._adapter.cited_pages
        for page in self._unsent_titles:
            if cited.get(page.url) != page.title:
                self._ledger.report_dropped(f"{page.where}/title", _NO_TITLES, "informational")
        last = [self._name(search) for search in self._joiner.take_unfinished()]
        infers = adapter.options.searches and adapter.capabilities.searches and not adapter.source.capabilities.searches
        if infers and cited and not self._count:
            pages = tuple(FoundPage(url, title) for url, title in cited.items())
            last.append(self._name(Search(pages=pages)))
        return last

    def _name(self, search: Search) -> Search:
        self._count += 1
        self._query_count += max(len(search.queries), 1)
        search_id = generate_search_id(self._adapter.reply_id, self._adapter.options.salt, self._count)
        return structs.replace(
            search, id=search_id, step="whole", dialect="", raw=b"", places=(), extras=None, signature=None
        )

    def count(self, usage: Usage | None) -> Usage | None:
        """Return the usage with the number of searches, if the client's dialect counts them and the vendor does not."""
        if not self._query_count or "searches" not in self._adapter.capabilities.counts:
            return usage
        if usage is not None and usage.searches is not None:
            return usage
        return structs.replace(usage or Usage(), searches=self._query_count)


def place_searches(parts: Sequence[AnyPart]) -> list[AnyPart]:
    """Return the parts with the search that metadata shows (Gemini) where the model ran it.

    If the vendor also sent its searches as parts, the pages of the metadata are those of the last of them; else the
    search comes before the first part that is not reasoning.
    """
    known = [part for part in parts if isinstance(part, Search) and part.places]
    others = [part for part in parts if not (isinstance(part, Search) and part.places)]
    at = next((at for at in reversed(range(len(others))) if isinstance(others[at], Search)), -1)
    last = others[at] if at >= 0 else None
    if known and isinstance(last, Search):
        others[at] = structs.replace(last, pages=(*last.pages, *known[0].pages), places=known[0].places)
        return others
    first = next((at for at, part in enumerate(others) if not isinstance(part, Reasoning)), len(others))
    return [*others[:first], *known, *others[first:]]


def drop_search_fields(adapter: ReplyAdapter, search: Search, fields: dict[str, bytes]) -> None:
    """Report the fields of a search that are not sent; its id only joins it to its results, and is no loss."""
    search_id = json.encode(search.id)
    adapter.drop_fields(search.where, {pointer: raw for pointer, raw in fields.items() if raw != search_id})


def arrange_parts(parts: Sequence[AnyPart], ledger: Ledger, *, infers: bool) -> list[AnyPart]:
    """Return the parts of an answer with its searches first and its texts cut where their citations start and end.

    With `infers`, an answer that cites pages has run a search.
    """
    cited = list(list_cited_pages(parts))
    placed = place_searches(parts)
    if infers and cited and not any(isinstance(part, Search) for part in parts):
        first = next((at for at, part in enumerate(placed) if not isinstance(part, Reasoning)), len(placed))
        placed.insert(first, Search())
    arranged: list[AnyPart] = []
    for part in _complete_pages(placed, cited):
        if isinstance(part, Text) and part.citations:
            arranged += split_cited_text(_locate_citations(part, ledger))
        else:
            arranged.append(part)
    return arranged


def _complete_pages(parts: list[AnyPart], cited: list[Citation]) -> list[AnyPart]:
    """Return the parts with the cited pages in the last search, if no search lists pages, and with cited titles."""
    titles = {citation.url: citation.title for citation in cited}
    places = [at for at, part in enumerate(parts) if isinstance(part, Search)]
    has_pages = any(part.pages for part in parts if isinstance(part, Search))
    for at in places:
        search = parts[at]
        if not isinstance(search, Search):
            continue
        pages = search.pages
        if not has_pages and at == places[-1] and not search.error:
            pages = tuple(FoundPage(citation.url, citation.title) for citation in cited)
        named = [structs.replace(one, title=one.title or titles.get(one.url, "")) for one in pages]
        parts[at] = structs.replace(search, pages=tuple(named))
    return parts


def _locate_citations(text: Text, ledger: Ledger) -> Text:
    """Return the text with the pointer of each citation, which does not follow from its place in a cut text."""
    listed = ledger.find_pointer("part.citations", text)
    located = [
        one if one.places else structs.replace(one, places=(f"{listed}/{number}" if listed != text.where else listed,))
        for number, one in enumerate(text.citations)
    ]
    return structs.replace(text, citations=tuple(located))


class SearchBuffer:
    """Holds back a stream from the first part that is not reasoning, and arranges it when it is complete."""

    def __init__(self, ledger: Ledger, *, infers: bool) -> None:
        self._ledger = ledger
        self._infers = infers
        self._first = -1
        """The index of the first part that is held back."""
        self._held: list[events.Event] = []
        self._size = 0
        self._is_released = False

    def feed(self, arrived: Iterable[events.Event]) -> list[events.Event]:
        """Return the events that are sent now."""
        if self._is_released:
            return list(arrived)
        sent: list[events.Event] = []
        for event in arrived:
            sent += self._feed(event)
        return sent

    def _feed(self, event: events.Event) -> list[events.Event]:
        if isinstance(event, events.PartStarted) and self._first < 0 and not isinstance(event.part, Reasoning):
            self._first = event.index
        if self._first < 0 or self._is_released or getattr(event, "index", self._first) < self._first:
            return [event]
        if isinstance(event, events.Finished):
            return [*self.release(), event]
        if isinstance(event, events.PartDelta):
            self._size += len(event.text)
        if isinstance(event, events.Failed) or self._size > _MAX_HELD:
            return [*self.flush(), event]
        self._held.append(event)
        return []

    def flush(self) -> list[events.Event]:
        """Return what is held back, as it came; nothing is held back any more."""
        held, self._held, self._is_released = self._held, [], True
        return held

    def release(self) -> list[events.Event]:
        """Return what is held back, arranged; the part of the stream ends here."""
        collector = Collector()
        others: list[events.Event] = []
        for event in self.flush():
            index = getattr(event, "index", None)
            if index is None:
                others.append(event)
            else:
                collector.feed(structs.replace(event, index=index - self._first))  # pyright: ignore[reportArgumentType, reportCallIssue]
        parts = arrange_parts(collector.parts, self._ledger, infers=self._infers)
        return [*(one for at, part in enumerate(parts, self._first) for one in replay_part(at, part)), *others]


def join_texts(parts: Sequence[AnyPart], ledger: Ledger) -> list[AnyPart]:
    """Return the parts with texts that follow each other joined, for a client whose citations have spans.

    A vendor whose citations are on whole blocks cuts its answer into many of them after a search.
    """
    joined: list[AnyPart] = []
    is_active = False
    for part in parts:
        is_active = is_active or isinstance(part, Search)
        if not (is_active and isinstance(part, Text)):
            joined.append(part)
            continue
        before = joined[-1]
        start = len(before.text) if isinstance(before, Text) and _can_join(part) else 0
        located = tuple(_set_span(one, start, len(part.text)) for one in _locate_citations(part, ledger).citations)
        if isinstance(before, Text) and _can_join(part):
            citations = (*before.citations, *located)
            joined[-1] = structs.replace(before, text=before.text + part.text, citations=citations)
        else:
            joined.append(structs.replace(part, citations=located))
    return joined


def _can_join(text: Text) -> bool:
    return text.extras is None and text.signature is None


def _set_span(citation: Citation, start: int, size: int) -> Citation:
    return structs.replace(citation, start=start, end=start + size)


class TextJoiner:
    """Joins the texts of a stream as `join_texts` does; a text stays open until another part starts."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._is_active = False
        self._joined_count = 0
        self._indexes: dict[int, int] = {}
        self._ended: int | None = None
        """The index of the last text, which has ended but may be continued."""
        self._length = 0
        """The length of the texts before the open one that are joined to it."""
        self._text: Text | None = None
        """The open text, with its citations so far."""
        self._size = 0

    def feed(self, arrived: list[events.Event]) -> list[events.Event]:
        """Return the events with texts joined after the first search."""
        if not self._is_active and not any(map(_starts_search, arrived)):
            return arrived
        return [adapted for event in arrived for adapted in self._feed(event)]

    def _feed(self, event: events.Event) -> list[events.Event]:
        match event:
            case events.PartStarted(index, part):
                return self._start(index, part)
            case events.PartCited(_, citation) if self._text is not None:
                self._text = structs.replace(self._text, citations=(*self._text.citations, citation))
                return []
            case events.PartEnded(index) if self._text is not None:
                return self._end_text(self._indexes.get(index, index), self._text)
            case events.Finished() | events.Failed():
                return [*self.release(), event]
            case events.PartDelta(index, text, piece):
                self._size += len(text)
                return [events.PartDelta(self._indexes.get(index, index), text, piece)]
            case events.PartCited() | events.PartEnded() | events.PartSigned() | events.PartNative():
                return [structs.replace(event, index=self._indexes.get(event.index, event.index))]
            case _:
                return [event]

    def _start(self, index: int, part: AnyPart) -> list[events.Event]:
        self._is_active = self._is_active or isinstance(part, Search)
        is_text = self._is_active and isinstance(part, Text)
        self._text, self._size = part if is_text else None, 0  # pyright: ignore[reportAttributeAccessIssue]
        if is_text and self._ended is not None and _can_join(part):  # pyright: ignore[reportArgumentType]
            self._joined_count += 1
            self._indexes[index], self._ended = self._ended, None
            return []
        released = self.release()
        self._length = 0
        self._indexes[index] = index - self._joined_count
        return [*released, events.PartStarted(self._indexes[index], part)]

    def _end_text(self, index: int, text: Text) -> list[events.Event]:
        citations = _locate_citations(text, self._ledger).citations
        spans = [events.PartCited(index, _set_span(citation, self._length, self._size)) for citation in citations]
        self._length += self._size
        self._ended, self._text = index, None
        return [*spans]

    def release(self) -> list[events.Event]:
        """Return the end of a text that might have been continued."""
        ended, self._ended = self._ended, None
        return [] if ended is None else [events.PartEnded(ended)]

    flush = release


def _starts_search(event: events.Event) -> bool:
    return type(event) is events.PartStarted and type(event.part) is Search


SearchArranger = SearchBuffer | TextJoiner


def build_arranger(adapter: ReplyAdapter) -> SearchArranger | None:
    """Return what arranges the events of the upstream before they are adapted; None if they stay as they are."""
    if adapter.options.searches and adapter.capabilities.block_citations:
        return SearchBuffer(adapter.ledger, infers=not adapter.source.capabilities.searches)
    return TextJoiner(adapter.ledger) if adapter.joins_texts else None
