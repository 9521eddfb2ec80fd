"""Token counts, and the prefix cache."""

from dragoman.simulator.apis.conversation import ModelRequest, RequestTurn
from dragoman.simulator.apis.usage import PromptCache, count_request_tokens
from dragoman.simulator.model import answer
from simulator.model.asked import TOOLS, after, build_ask

LONG = RequestTurn(role="system", text="Be brief. " * 600)


def conversation(*prompts: str, model: str = "any") -> ModelRequest:
    turns = [LONG]
    for prompt in prompts:
        turns += [RequestTurn(role="user", text=prompt), RequestTurn(role="assistant", text="yes")]
    return ModelRequest(model=model, turns=tuple(turns[:-1]))


def test_four_characters_are_about_a_token():
    small, large = count_request_tokens(build_ask("x" * 400)), count_request_tokens(build_ask("x" * 4400))
    assert large - small == 1000
    reply = answer(build_ask("Count from 1 to 100"))
    assert reply.usage.output == -(-len(reply.text) // 4)


def test_everything_the_model_looks_at_counts():
    plain = count_request_tokens(build_ask("weather in Paris"))
    assert count_request_tokens(build_ask("weather in Paris", *TOOLS)) > plain
    shown = ModelRequest(model="any", turns=(RequestTurn(role="user", text="weather in Paris", media=("image/png",)),))
    assert count_request_tokens(shown) > plain + 200
    asked = build_ask("weather in Paris", *TOOLS)
    assert count_request_tokens(after(asked, answer(asked), "sunny" * 100)) > count_request_tokens(asked) + 125


def test_calls_and_thoughts_are_output():
    reply = answer(build_ask("weather in Paris", *TOOLS, thinks=True))
    assert reply.usage.output > reply.usage.thought > 0


def test_without_a_memory_nothing_is_cached():
    assert answer(conversation("a", "b")).usage.cached == 0


def test_a_prefix_that_comes_again_is_cached():
    memory = PromptCache()
    first = answer(conversation("one"), 0, memory).usage
    assert first.cached == 0
    second = answer(conversation("one", "two"), 0, memory).usage
    assert first.input - 1 <= second.cached <= first.input < second.input
    assert answer(conversation("other"), 0, memory).usage.cached == count_request_tokens(
        ModelRequest(model="any", turns=(LONG,))
    )


def test_the_same_again_is_cached_but_for_a_token():
    memory = PromptCache()
    asked = conversation("one")
    answer(asked, 0, memory)
    usage = answer(asked, 0, memory).usage
    assert usage.cached == usage.input - 1


def test_models_do_not_share_what_they_remember():
    memory = PromptCache()
    answer(conversation("one"), 0, memory)
    assert answer(conversation("one", "two", model="another"), 0, memory).usage.cached == 0


def test_short_prefixes_are_not_worth_remembering():
    memory = PromptCache()
    for _ in range(2):
        assert answer(build_ask("hello"), 0, memory).usage.cached == 0


def test_a_memory_forgets_the_oldest_first():
    memory = PromptCache(size=4)
    answer(conversation("first"), 0, memory)
    for number in range(10):
        answer(ModelRequest(model=f"model {number}", turns=(LONG,)), 0, memory)
    assert answer(conversation("first"), 0, memory).usage.cached == 0
