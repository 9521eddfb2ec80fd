"""What Anthropic's SDK does with tools by itself, over loopback: runners, parsed answers, and Vertex's form of it all."""

import asyncio
from contextlib import asynccontextmanager, contextmanager

import pytest
from anthropic import (
    Anthropic,
    AnthropicVertex,
    AsyncAnthropic,
    AsyncAnthropicVertex,
    beta_async_tool,
    beta_tool,
)
from pydantic import BaseModel

MODEL = "claude-opus-5-5"
BOTH = "What is the weather in Paris and in Tokyo?"
ASKED = {"model": MODEL, "max_tokens": 2048, "messages": [{"role": "user", "content": BOTH}]}
THINKING = {"type": "adaptive", "display": "summarized"}
PLACE = {"region": "us-east5", "project_id": "p", "access_token": "token", "max_retries": 0}
DIRECT = {"api_key": "sk-ant-test", "max_retries": 0}


class Person(BaseModel):
    name: str
    age: int


def weather_of(city: str) -> str:
    """Tell the current weather in a city."""
    return f"18 degrees and cloudy in {city}"


@beta_tool
def get_weather(city: str) -> str:
    """Tell the current weather in a city."""
    return weather_of(city)


@beta_async_tool
async def get_weather_soon(city: str) -> str:
    """Tell the current weather in a city."""
    return weather_of(city)


@contextmanager
def connect(simulator, form):
    made = (
        Anthropic(base_url=simulator.base_url, **DIRECT)
        if form == "direct"
        else AnthropicVertex(base_url=f"{simulator.base_url}/v1", **PLACE)
    )
    with made as client:
        yield client


@asynccontextmanager
async def connect_async(simulator, form):
    made = (
        AsyncAnthropic(base_url=simulator.base_url, **DIRECT)
        if form == "direct"
        else AsyncAnthropicVertex(base_url=f"{simulator.base_url}/v1", **PLACE)
    )
    async with made as client:
        yield client


both_forms = pytest.mark.parametrize("form", ["direct", "vertex"])


@pytest.fixture(params=["direct", "vertex"])
def client(simulator, request):
    with connect(simulator, request.param) as made:
        yield made


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def list_called_cities(message):
    return [block.input["city"] for block in message.content if block.type == "tool_use"]


def assert_answered(messages):
    """Both cities are called in one message, and the last message has both results."""
    first, last = messages
    assert (first.stop_reason, last.stop_reason) == ("tool_use", "end_turn")
    assert list_called_cities(first) == ["Paris", "Tokyo"]
    assert all(weather_of(city) in text_of(last) for city in list_called_cities(first))


@pytest.mark.parametrize("thinking", [{}, {"thinking": THINKING}], ids=["plain", "thinking"])
def test_the_tool_runner_runs_parallel_calls(client, thinking):
    assert_answered(list(client.beta.messages.tool_runner(**ASKED, **thinking, tools=[get_weather])))


@pytest.mark.parametrize("thinking", [{}, {"thinking": THINKING}], ids=["plain", "thinking"])
def test_the_tool_runner_runs_in_streams(client, thinking):
    messages, pieces = [], []
    for stream in client.beta.messages.tool_runner(**ASKED, **thinking, tools=[get_weather], stream=True):
        pieces = [event.text for event in stream if event.type == "text"]
        messages.append(stream.get_final_message())
    assert_answered(messages)
    assert len(pieces) > 1
    assert "".join(pieces) == text_of(messages[-1])


@both_forms
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_async_tool_runner_runs(simulator, form, streamed):
    async def flow():
        async with connect_async(simulator, form) as client:
            runner = client.beta.messages.tool_runner(**ASKED, tools=[get_weather_soon], stream=streamed)
            return [await turn.get_final_message() if streamed else turn async for turn in runner]

    assert_answered(asyncio.run(flow()))


def test_a_failing_tool_in_the_runner_is_reported(client):
    @beta_tool
    def get_weather(city: str) -> str:
        """Tell the current weather in a city."""
        raise OSError(city)

    final = client.beta.messages.tool_runner(**ASKED, tools=[get_weather]).until_done()
    assert final.stop_reason == "end_turn"
    assert "fail" in text_of(final).lower()


def test_a_stream_is_parsed_into_a_type(client):
    asked = {**ASKED, "messages": [{"role": "user", "content": "Extract: Ann, 31"}]}
    with client.messages.stream(**asked, output_format=Person) as stream:
        pieces = "".join(stream.text_stream)
        parsed = stream.get_final_message().parsed_output
    assert parsed == Person.model_validate_json(pieces)
    assert parsed.age == 31


def test_a_whole_answer_is_parsed_into_a_type(client):
    asked = {**ASKED, "messages": [{"role": "user", "content": "Extract: Ann, 31"}]}
    assert client.messages.parse(**asked, output_format=Person).parsed_output.age == 31
