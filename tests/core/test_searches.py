"""Searches of two parts, and texts cut where their citations are."""

import pytest

from dragoman.core.parts import Citation, FoundPage, Search, Signature, Text
from dragoman.core.request import Message
from dragoman.core.searches import SearchJoiner, is_generated, list_cited_pages, split_cited_text
from dragoman.core.serialization import decode_messages, encode_messages


def cite(url, start=None, end=None):
    return Citation("responses", b"{}", url=url, start=start, end=end)


def cut(text, *citations):
    return [
        (one.text, [cited.url for cited in one.citations])
        for one in split_cited_text(Text(text=text, citations=citations))
    ]


def test_a_call_and_its_results_are_one_search():
    joiner = SearchJoiner()
    assert joiner.add(Search(id="a", step="call", queries=("x",))) is None
    assert joiner.add(Search(id="b", step="call", queries=("y",))) is None
    found = joiner.add(Search(id="a", step="results", pages=(FoundPage("u"),)))
    assert found == Search(id="a", queries=("x",), pages=(FoundPage("u"),))
    assert joiner.take_unfinished() == [Search(id="b", step="call", queries=("y",))]
    assert joiner.take_unfinished() == []


def test_a_search_without_a_counterpart_stays_as_it_is():
    joiner = SearchJoiner()
    whole, results = Search(id="w", queries=("q",)), Search(id="r", step="results", error="unavailable")
    assert joiner.add(whole) is whole
    assert joiner.add(results) is results


@pytest.mark.parametrize(
    ("citations", "pieces"),
    [
        ((), [("One. Two. End", [])]),
        ((cite("a"),), [("One. Two. End", ["a"])]),
        ((cite("a", 0, 13), cite("b", 0, 0)), [("One. Two. End", ["a", "b"])]),
        ((cite("a", 0, 4), cite("b", 5, 9)), [("One. ", ["a"]), ("Two.", ["b"]), (" End", [])]),
        ((cite("b", 5, 9), cite("a", 0, 4), cite("c", 5, 9)), [("One. ", ["a"]), ("Two.", ["b", "c"]), (" End", [])]),
        ((cite("a", 2, 6), cite("b", 3, 5)), [("On", []), ("e. T", ["a", "b"]), ("wo. End", [])]),
        ((cite("a", 0, 6), cite("b", 4, 9)), [("One. T", ["a"]), ("wo.", ["b"]), (" End", [])]),
        ((cite("a", 99, 120),), [("One. Two. End", ["a"])]),
        ((cite("w"), cite("a", 0, 4)), [("One.", ["a", "w"]), (" Two. End", ["w"])]),
    ],
)
def test_a_text_is_cut_where_its_citations_start_and_end(citations, pieces):
    assert cut("One. Two. End", *citations) == pieces
    assert "".join(text for text, _ in cut("One. Two. End", *citations)) == "One. Two. End"


def test_many_citations_of_the_same_words_make_one_block():
    spans = [cite(f"u{number}", number % 7, 50 + number % 11) for number in range(3000)]
    pieces = split_cited_text(Text(text="x" * 100, citations=tuple(spans)))
    assert sum(len(piece.citations) for piece in pieces) == 3000
    assert len(pieces) < 20


def test_the_signature_stays_at_the_end_of_the_text():
    signed = Text(text="a b", citations=(cite("u", 0, 1),), signature=Signature("google", "s"))
    assert [piece.signature for piece in split_cited_text(signed)] == [None, Signature("google", "s")]


def test_each_page_is_listed_once():
    parts = [
        Text(text="x", citations=(cite("a"), cite("b"), cite(""))),
        Search(),
        Text(text="y", citations=(cite("a"),)),
    ]
    assert [citation.url for citation in list_cited_pages(parts)] == ["a", "b"]


def test_a_search_survives_storage():
    search = Search(
        dialect="messages", raw=b"{}", id="s", step="results", pages=(FoundPage("u", "t", "age", "e", "/w"),)
    )
    (message,) = decode_messages(encode_messages([Message(role="assistant", parts=(search,))]))
    assert message.parts == (search,)


def test_only_searches_for_another_dialect_are_marked():
    assert is_generated("srvtoolu_ZHJhZ29tYW4x0011")
    assert not is_generated("srvtoolu_014hJH82Qum7Td6UV8gDXThB")
