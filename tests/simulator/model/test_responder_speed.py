"""A thousand streams share one core, so an answer must be cheap."""

from cProfile import Profile

from dragoman.simulator.apis.usage import PromptCache
from dragoman.simulator.model import answer
from simulator.model.asked import ADD, TIME, WEATHER, build_ask

MOST_CALLS = 2400
"""Python and C functions together; twice as many as today, about a millisecond."""


def test_an_answer_to_a_small_prompt_needs_few_function_calls():
    memory = PromptCache()
    first, second = (
        build_ask(f"What's the weather in {city} and Tokyo?", WEATHER, TIME, ADD) for city in ("Paris", "Oslo")
    )
    assert len(answer(first, 0, memory).calls) == 2
    with Profile() as profile:
        assert len(answer(second, 0, memory).calls) == 2
    assert sum(entry.callcount for entry in profile.getstats()) < MOST_CALLS
