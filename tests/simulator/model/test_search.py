"""Search over the simulator's own documents."""

import pytest

from dragoman.simulator.model import answer
from dragoman.simulator.model.documents import DOCUMENTS
from dragoman.simulator.model.searching import search, sentences
from dragoman.simulator.talk import Choice
from simulator.model.asked import ADD, LOOKUP, SEARCH, TOOLS, WEATHER, after, ask


@pytest.mark.parametrize(
    ("prompt", "title", "words"),
    [
        ("Who won the Euro 2024?", "UEFA Euro 2024", "Spain won"),
        ("What do bees dance for?", "Honey bees", "dancing"),
        ("Search the web for the height of Mount Everest", "Mount Everest", "8,849"),
        ("how far away is the moon", "The Moon", "384,400"),
        ("Which country is Paris the capital of?", "Paris", "capital of France"),
    ],
)
def test_a_question_is_answered_with_sentences_of_documents(prompt, title, words):
    said = answer(ask(prompt, SEARCH, ADD))
    assert said.sources[0].title == title
    assert words in said.sources[0].quote
    assert said.text.startswith("[dragoman simulator] ")
    assert said.query
    assert not said.calls


def test_every_quote_stands_in_the_answer_and_in_its_document():
    for document in DOCUMENTS:
        said = answer(ask(f"Tell me about {document.title}", SEARCH))
        for source in said.sources:
            assert source.quote in said.text
            [origin] = [other for other in DOCUMENTS if other.url == source.url]
            assert source.quote in sentences(origin)


def test_each_document_is_found_by_its_title():
    for document in DOCUMENTS[1:]:
        assert search(document.title).sources[0].url == document.url


def test_documents_have_addresses_of_their_own_that_lead_nowhere():
    assert len({document.url for document in DOCUMENTS}) == len(DOCUMENTS) >= 20
    assert all(document.url.startswith("https://example.org/") for document in DOCUMENTS)


def test_a_search_that_finds_nothing_says_so_and_where_it_looked():
    said = answer(ask("What is the latest news about zorbification?", SEARCH))
    assert "found nothing" in said.text
    assert said.sources[0].url == "https://example.org/about-this-search"
    assert said.sources[0].quote in said.text


def test_a_function_that_fits_goes_before_the_search():
    assert answer(ask("What's the weather in Paris?", SEARCH, *TOOLS)).calls
    assert not answer(ask("Search the web for the weather in Paris", SEARCH, *TOOLS)).calls


def test_a_greeting_is_no_question():
    said = answer(ask("hello there", SEARCH))
    assert not said.sources
    assert not said.query


def test_search_obeys_the_choice():
    assert not answer(ask("What are bees?", SEARCH, choice=Choice(mode="none"))).sources
    assert not answer(ask("What are bees?", SEARCH, WEATHER, choice=Choice(names=("get_weather",)))).sources
    assert answer(ask("hello there", SEARCH, choice=Choice(mode="required"))).sources


def test_after_results_there_is_no_search():
    asked = ask("Look up bees", LOOKUP, SEARCH)
    said = answer(after(asked, answer(asked), "bees are insects"))
    assert said.text == "[dragoman simulator] search says: bees are insects"


def test_a_source_whose_quote_is_cut_off_is_not_a_source():
    said = answer(ask("Who won the Euro 2024?", SEARCH, max_tokens=12))
    assert said.end == "length"
    assert not said.sources
