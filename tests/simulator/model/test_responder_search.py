"""The model's built-in search: it finds the same two pages for every query."""

import pytest

from dragoman.simulator.apis.conversation import RequestToolChoice
from dragoman.simulator.model import answer
from simulator.model.asked import LOOKUP, SEARCH, TOOLS, WEATHER, after, build_ask


@pytest.mark.parametrize(
    ("prompt", "query"),
    [
        ("Search the web for the Eiffel Tower.", "Eiffel Tower"),
        ("Search the web: what is the capital of France?", "capital of France"),
        ("Who won the Euro 2024?", "won the Euro 2024"),
    ],
)
def test_a_search_has_its_query_and_quotes_its_sources(prompt, query):
    reply = answer(build_ask(prompt, SEARCH))
    assert reply.query == query
    assert f"I searched for “{query}”." in reply.text
    assert len({source.url for source in reply.sources}) == 2
    assert all(source.quote in reply.text for source in reply.sources)
    assert all(source.url.startswith("https://example.org/") for source in reply.sources)


def test_a_matching_function_has_precedence_over_search():
    assert answer(build_ask("What's the weather in Paris?", SEARCH, *TOOLS)).calls
    assert not answer(build_ask("Search the web for the weather in Paris", SEARCH, *TOOLS)).calls


def test_a_greeting_is_no_question():
    reply = answer(build_ask("hello there", SEARCH))
    assert not reply.sources
    assert not reply.query


def test_search_obeys_the_choice():
    assert not answer(build_ask("What are bees?", SEARCH, choice=RequestToolChoice(mode="none"))).sources
    assert not answer(
        build_ask("What are bees?", SEARCH, WEATHER, choice=RequestToolChoice(names=("get_weather",)))
    ).sources
    assert answer(build_ask("hello there", SEARCH, choice=RequestToolChoice(mode="required"))).sources


def test_after_results_there_is_no_search():
    asked = build_ask("Search for bees", LOOKUP)
    output = answer(after(asked, answer(asked), "bees are insects"))
    assert output.text == "[dragoman simulator] search says: bees are insects"


def test_a_source_whose_quote_is_cut_off_is_not_a_source():
    reply = answer(build_ask("Who won the Euro 2024?", SEARCH, max_tokens=12))
    assert reply.end == "length"
    assert not reply.sources
