"""Conversations continue, are stored by name, and change their model on the way."""

import asyncio

import pytest

from dragoman import Agent, Problem, tool
from dragoman.library import conversation_store
from dragoman.simulator import Answer, Call, in_thread
from library.test_models import no_configuration, use_config  # noqa: F401  a fixture


@tool
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"sun in {city}"


def script(received):
    turns = received.request.turns
    if "weather" in str(turns[-1]) and not turns[-1].results:
        return Answer(calls=(Call(id="call_1", name="get_weather", arguments={"city": "Oslo"}),))
    return Answer(text=f"answer after {len(turns)} turns")


@pytest.fixture
def simulator(monkeypatch, tmp_path):
    with in_thread(script=script) as running:
        use_config(running, monkeypatch, tmp_path)
        yield running


def test_a_conversation_continues_and_switches_its_model(simulator):
    conversation = Agent("gemini/gemini-3-flash", tools=[get_weather], system="Be brief.").conversation()
    first = conversation.run_sync("How is the weather?")
    conversation.model = "anthropic/claude-opus-4-8"
    second = conversation.run_sync("And now?")
    third = conversation.run_sync("And then?", model="openai/gpt-5.2")
    assert [len(result.history) for result in (first, second, third)] == [5, 7, 9]
    assert len(conversation.history) == 8
    assert [request.target.rpartition("/")[2] for request in list(simulator.requests)[-2:]] == [
        "messages",
        "completions",
    ]


def test_a_named_conversation_is_continued_by_another_agent(simulator):
    assert conversation_store.open_turn
    Agent("gemini/gemini-3-flash", tools=[get_weather]).conversation("trip").run_sync("How is the weather?")
    other = Agent("anthropic/claude-opus-4-8", tools=[get_weather]).conversation("trip")
    assert len(other.run_sync("And now?").history) == 6
    assert len(other.run_sync("And then?").history) == 8
    assert len(Agent("openai/gpt-5.2").conversation("another").run_sync("Hello").history) == 2


def test_a_turn_that_fails_leaves_the_conversation_as_it_was(simulator):
    conversation = Agent("gemini/gemini-3-flash").conversation("trip")
    conversation.run_sync("Hello")
    result = conversation.run_sync("Again", model="nowhere/model")
    assert result.stop == "failed"
    assert len(conversation.history) == 2
    assert len(conversation.run_sync("Again").history) == 4


def test_a_conversation_that_another_program_continues_is_refused(simulator):
    async def run_twice():
        async with conversation_store.open_turn("trip"):
            await Agent("gemini/gemini-3-flash").conversation("trip").run("Hello")

    with pytest.raises(Problem, match="another call is using the session 'trip'"):
        asyncio.run(run_twice())


def test_the_text_of_a_named_conversation_is_streamed(simulator):
    async def read():
        return [text async for text in Agent("openai/gpt-5.2").conversation("trip").stream_text("Hello")]

    assert "".join(asyncio.run(read())) == "answer after 1 turns"
