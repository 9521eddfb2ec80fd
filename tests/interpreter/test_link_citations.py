"""Links in a text to pages that a search has found are citations of these pages."""

import pytest

from dragoman.core.events import Finished, PartCited, PartDelta, PartEnded, PartStarted
from dragoman.core.parts import FoundPage, Reasoning, Search, Text
from dragoman.core.response import Finish
from dragoman.interpreter.link_citations import LinkCitations

PAGES = (
    FoundPage("https://a.example/x", "A", "", "What A says. " * 50),
    FoundPage("https://b.example/wiki/B_(letter)", "B"),
)


def cite(*deltas, pages=PAGES, part=None):
    """Return the citations that follow each delta of one text."""
    citations = LinkCitations()
    before = [PartStarted(0, Search(id="s", queries=("q",), pages=pages)), PartEnded(0)]
    events = [*before, PartStarted(1, part or Text(text="")), *(PartDelta(1, text) for text in deltas), PartEnded(1)]
    found = [list(citations.feed(event)) for event in [*events, Finished(Finish("stop"))]]
    assert [each[0] for each in found] == [*events, Finished(Finish("stop"))]
    return [[event.citation for event in each[1:]] for each in found[3:-2]]


def spans(found, text):
    return [(citation.url, text[citation.start : citation.end]) for each in found for citation in each]


def test_a_link_is_cited_over_its_own_span_with_title_and_quote():
    text = "Ünlike 🏔 this: [A, the first](https://a.example/x)."
    ((citation,),) = cite(text)
    assert text[citation.start : citation.end] == "[A, the first](https://a.example/x)"
    assert (citation.title, len(citation.quote)) == ("A", 150)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_links_are_found_however_the_text_is_cut(size):
    text = "One [A](https://a.example/x), [no [nested] B](https://b.example/wiki/B_(letter)) and [B](https://b.example/wiki/B_(letter))!"
    found = cite(*(text[at : at + size] for at in range(0, len(text), size)))
    assert spans(found, text) == [
        ("https://a.example/x", "[A](https://a.example/x)"),
        ("https://b.example/wiki/B_(letter)", "[B](https://b.example/wiki/B_(letter))"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[A](https://other.example/)",
        "[A](https://a.example/x/more)",
        "[A] (https://a.example/x)",
        "https://a.example/x",
        "[A\n](https://a.example/x)",
        "[A](https://a.example/x",
    ],
)
def test_what_is_no_link_to_a_found_page_is_not_cited(text):
    assert cite(text) == [[]]


def test_without_a_search_or_in_reasoning_nothing_is_cited():
    text = "[A](https://a.example/x)"
    assert cite(text, pages=()) == [[]]
    assert isinstance(cite(text, part=Reasoning()), list)
    citations = LinkCitations()
    events = [PartStarted(0, Reasoning()), PartDelta(0, text), PartEnded(0)]
    assert not any(isinstance(found, PartCited) for event in events for found in citations.feed(event))


def test_a_text_of_brackets_is_read_in_linear_time():
    found = cite(*["[" * 100] * 2000, "](https://a.example/x)")
    assert len(found) == 2001
