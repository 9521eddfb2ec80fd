"""A thousand streams share one core, so an answer must be cheap."""

import time

from dragoman.simulator.model import PromptCache, answer
from simulator.model.asked import ADD, TIME, WEATHER, build_ask


def test_an_answer_to_a_small_prompt_costs_less_than_a_millisecond():
    memory = PromptCache()

    def cost(word: str) -> float:
        asked = [
            build_ask(f"What's the weather in {letter}{word} and Tokyo?", WEATHER, TIME, ADD) for letter in "ABCDEFGH"
        ]
        start = time.process_time()
        for one in asked:
            assert len(answer(one, 0, memory).calls) == 2
        return (time.process_time() - start) / len(asked)

    assert min(cost(letter * 5) for letter in "abcdefghijkl") < 0.001
