"""What OpenAI's SDK does with tools and schemas by itself, over loopback: streams put together, values parsed."""

import asyncio
import json

import openai
import pydantic
import pytest

CHAT = "gpt-5.2"
RESPONSES = "gpt-5.6-terra"
BOTH = "What is the weather in Paris and in Tokyo?"
EXTRACT = "Extract: Ann, 31"
SAID = [{"role": "user", "content": BOTH}]


class GetWeather(pydantic.BaseModel):
    """Tell the current weather in a city."""

    city: str


class Person(pydantic.BaseModel):
    name: str
    age: int


CHAT_TOOLS = [openai.pydantic_function_tool(GetWeather, name="get_weather")]
TOOLS = [{"type": "function", **CHAT_TOOLS[0]["function"]}]


def weather_of(city):
    return f"18 degrees and cloudy in {city}"


@pytest.fixture
def sdk(simulator):
    with openai.OpenAI(base_url=f"{simulator.base_url}/v1", api_key="sk-test", max_retries=0) as client:
        yield client


def connect_async(simulator):
    return openai.AsyncOpenAI(base_url=f"{simulator.base_url}/v1", api_key="sk-test", max_retries=0)


def assert_weather_in(text):
    assert all(weather_of(city) in text for city in ("Paris", "Tokyo"))


def history_with_results(message):
    """The history after the calls of a message of Chat Completions, with arguments that the SDK has parsed."""
    cities = [call.function.parsed_arguments.city for call in message.tool_calls]
    assert cities == ["Paris", "Tokyo"]
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": weather_of(call.function.parsed_arguments.city)}
        for call in message.tool_calls
    ]
    return [*SAID, message, *results]


def continue_turn(response):
    """The input after the calls of a reply of Responses, with everything the SDK has parsed."""
    calls = [item for item in response.output if item.type == "function_call"]
    assert [json.loads(call.arguments)["city"] for call in calls] == ["Paris", "Tokyo"]
    results = [
        {
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": weather_of(json.loads(call.arguments)["city"]),
        }
        for call in calls
    ]
    return [*SAID, *response.output, *results]


def test_chat_parses_the_arguments_of_parallel_calls(sdk):
    first = sdk.chat.completions.parse(model=CHAT, messages=SAID, tools=CHAT_TOOLS)
    history = history_with_results(first.choices[0].message)
    second = sdk.chat.completions.parse(model=CHAT, messages=history, tools=CHAT_TOOLS)
    assert_weather_in(second.choices[0].message.content)


def test_chat_parses_the_arguments_of_streamed_calls(sdk):
    with sdk.chat.completions.stream(model=CHAT, messages=SAID, tools=CHAT_TOOLS) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        history = history_with_results(stream.get_final_completion().choices[0].message)
    assert [event.parsed_arguments.city for event in done] == ["Paris", "Tokyo"]
    with sdk.chat.completions.stream(model=CHAT, messages=history, tools=CHAT_TOOLS) as stream:
        assert_weather_in(stream.until_done().get_final_completion().choices[0].message.content)


def test_chat_parses_a_streamed_answer(sdk):
    messages = [{"role": "user", "content": EXTRACT}]
    with sdk.chat.completions.stream(model=CHAT, messages=messages, response_format=Person) as stream:
        done = [event.parsed for event in stream if event.type == "content.done"]
        parsed = stream.get_final_completion().choices[0].message.parsed
    assert done == [parsed]
    assert parsed.age == 31


def test_chat_runs_async_streams(simulator):
    async def flow():
        async with connect_async(simulator) as client:
            async with client.chat.completions.stream(model=CHAT, messages=SAID, tools=CHAT_TOOLS) as stream:
                first = await stream.get_final_completion()
            history = history_with_results(first.choices[0].message)
            async with client.chat.completions.stream(model=CHAT, messages=history, tools=CHAT_TOOLS) as stream:
                return (await stream.get_final_completion()).choices[0].message.content

    assert_weather_in(asyncio.run(flow()))


@pytest.mark.parametrize("store", [True, False])
def test_responses_parses_the_arguments_of_parallel_calls(sdk, store):
    first = sdk.responses.parse(model=RESPONSES, input=SAID, tools=TOOLS, store=store)
    second = sdk.responses.parse(model=RESPONSES, input=continue_turn(first), tools=TOOLS, store=store)
    assert_weather_in(second.output_text)


@pytest.mark.parametrize("store", [True, False])
def test_responses_continues_with_the_output_of_a_stream(sdk, store):
    with sdk.responses.stream(model=RESPONSES, input=SAID, tools=TOOLS, store=store) as stream:
        first = stream.until_done().get_final_response()
    with sdk.responses.stream(model=RESPONSES, input=continue_turn(first), tools=TOOLS, store=store) as stream:
        pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
        second = stream.get_final_response()
    assert len(pieces) > 1
    assert "".join(pieces) == second.output_text
    assert_weather_in(second.output_text)


def test_responses_parses_a_streamed_answer(sdk):
    with sdk.responses.stream(model=RESPONSES, input=EXTRACT, text_format=Person) as stream:
        done = [event.parsed for event in stream if event.type == "response.output_text.done"]
        parsed = stream.get_final_response().output_parsed
    assert done == [parsed]
    assert parsed.age == 31


def test_responses_parses_an_answer_after_calls(sdk):
    given = {"model": RESPONSES, "tools": TOOLS, "text_format": Person}
    with sdk.responses.stream(input=SAID, **given) as stream:
        first = stream.until_done().get_final_response()
    with sdk.responses.stream(input=continue_turn(first), **given) as stream:
        assert isinstance(stream.until_done().get_final_response().output_parsed, Person)


def test_responses_runs_async_streams(simulator):
    async def flow():
        async with connect_async(simulator) as client:
            async with client.responses.stream(model=RESPONSES, input=SAID, tools=TOOLS) as stream:
                first = await stream.get_final_response()
            async with client.responses.stream(model=RESPONSES, input=continue_turn(first), tools=TOOLS) as stream:
                return (await stream.get_final_response()).output_text

    assert_weather_in(asyncio.run(flow()))


def test_a_stored_stream_can_be_replayed(sdk):
    with sdk.responses.stream(model=RESPONSES, input=BOTH, tools=TOOLS) as stream:
        first = stream.until_done().get_final_response()
    kept = sdk.responses.retrieve(first.id)
    assert [item.id for item in kept.output] == [item.id for item in first.output]
