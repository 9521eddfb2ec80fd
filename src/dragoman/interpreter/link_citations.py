"""Cite the pages of a search that the gateway ran: the model links them in its text, and a link becomes a citation."""

import re
from collections.abc import Iterator

from dragoman.core.events import Event, PartCited, PartDelta, PartEnded, PartStarted
from dragoman.core.parts import Citation, FoundPage, Search, Text

_LINK = re.compile(r"\[[^\[\]\n]{0,500}\]\((https?://[^\s()<>]{1,2000}(?:\([^\s()<>]{0,200}\)[^\s()<>]{0,2000})?)\)")
"""A Markdown link; the URL may contain one pair of parentheses."""
_MAX_LINK = 5000
"""Characters before the end of a text in which a link may have begun."""
_MAX_QUOTE = 150


class LinkCitations:
    """Adds citations to the texts of a reply, each over a link to a page that a search of the reply has found."""

    def __init__(self) -> None:
        self._pages: dict[str, FoundPage] = {}
        self._tails: dict[int, str] = {}
        """The end of each open text, in which a link may have begun."""
        self._starts: dict[int, int] = {}
        """The position of that end in its text."""

    def feed(self, event: Event) -> Iterator[Event]:
        """Yield an event of the reply, and the citations that follow it."""
        yield event
        match event:
            case PartStarted(_, Search(pages=pages)):
                self._pages.update((page.url, page) for page in pages)
            case PartStarted(index, Text()) if self._pages:
                self._tails[index], self._starts[index] = "", 0
            case PartDelta(index, text) if index in self._tails:
                yield from self._find_links(index, text)
            case PartEnded(index):
                self._tails.pop(index, None)
            case _:
                pass

    def _find_links(self, index: int, text: str) -> Iterator[PartCited]:
        tail, start = self._tails[index] + text, self._starts[index]
        end = 0
        if ")" in text:
            for link in _LINK.finditer(tail):
                end = link.end()
                page = self._pages.get(link[1])
                if page is not None:
                    yield PartCited(index, _build_citation(page, start + link.start(), start + end))
        # A link that has not ended begins at the last bracket, or later.
        keep = max(end, len(tail) - _MAX_LINK)
        opened = tail.find("[", keep)
        keep = len(tail) if opened < 0 else opened
        self._tails[index], self._starts[index] = tail[keep:], start + keep


def _build_citation(page: FoundPage, start: int, end: int) -> Citation:
    return Citation("", b"", page.url, page.title, page.excerpt[:_MAX_QUOTE], start, end)
