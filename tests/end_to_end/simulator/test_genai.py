"""What google-genai does with tools by itself, over loopback: automatic function calling in all its forms."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from google.oauth2.credentials import Credentials
from pydantic import BaseModel

from simulator.apis.gemini.asking import NEW, OLD, genai, types

BOTH = "What is the weather in Paris and in Tokyo?"
CITIES = ["Paris", "Tokyo"]


class Person(BaseModel):
    name: str
    age: int


def get_weather(city: str) -> str:
    """Tell the current weather in a city.

    Args:
        city: The name of the city.
    """
    return f"18 degrees and cloudy in {city}"


async def get_weather_soon(city: str) -> str:
    """Tell the current weather in a city.

    Args:
        city: The name of the city.
    """
    return get_weather(city)


def make(simulator, form):
    options = types.HttpOptions(base_url=simulator.base_url)
    if form == "studio":
        return genai.Client(api_key="key", http_options=options)
    place = {"project": "p", "location": "us-central1", "credentials": Credentials("t")}
    return genai.Client(vertexai=True, http_options=options, **place)


FORMS = ["studio", "vertex"]
both_forms = pytest.mark.parametrize("form", FORMS)
old_and_new = pytest.mark.parametrize("model", [NEW, OLD])


@pytest.fixture(params=FORMS)
def client(simulator, request):
    with make(simulator, request.param) as client:
        yield client


@asynccontextmanager
async def make_async(simulator, form):
    client = make(simulator, form)
    try:
        async with client.aio as given:
            yield given
    finally:
        client.close()


def configure(tool=get_weather, **members):
    return types.GenerateContentConfig(tools=[tool], **members)


def list_called_cities(contents):
    return [part.function_call.args["city"] for content in contents for part in content.parts if part.function_call]


def assert_weather_in(text):
    assert all(get_weather(city) in text for city in CITIES)


@old_and_new
def test_parallel_calls_are_run_by_the_sdk(client, model):
    reply = client.models.generate_content(model=model, contents=BOTH, config=configure())
    assert list_called_cities(reply.automatic_function_calling_history) == CITIES
    assert_weather_in(reply.text)


@old_and_new
def test_calls_of_a_stream_are_run_by_the_sdk(client, model):
    chunks = list(client.models.generate_content_stream(model=model, contents=BOTH, config=configure()))
    calls = [call.args["city"] for chunk in chunks for call in chunk.function_calls or []]
    assert calls == CITIES
    assert_weather_in("".join(chunk.text or "" for chunk in chunks if not chunk.function_calls))
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP


@both_forms
@old_and_new
@pytest.mark.parametrize("tool", [get_weather, get_weather_soon])
def test_calls_are_run_by_the_async_sdk(simulator, form, model, tool):
    async def flow():
        async with make_async(simulator, form) as client:
            return await client.models.generate_content(model=model, contents=BOTH, config=configure(tool))

    reply = asyncio.run(flow())
    assert list_called_cities(reply.automatic_function_calling_history) == CITIES
    assert_weather_in(reply.text)


@both_forms
@old_and_new
def test_calls_of_a_stream_are_run_by_the_async_sdk(simulator, form, model):
    async def flow():
        async with make_async(simulator, form) as client:
            stream = await client.models.generate_content_stream(
                model=model, contents=BOTH, config=configure(get_weather_soon)
            )
            return [chunk.text async for chunk in stream if not chunk.function_calls]

    assert_weather_in("".join(text or "" for text in asyncio.run(flow())))


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_chat_continues_after_calls_were_run(client, streamed):
    chat = client.chats.create(model=NEW, config=configure(thinking_config=types.ThinkingConfig(include_thoughts=True)))

    def say(text):
        if not streamed:
            return chat.send_message(text).text
        return "".join(chunk.text or "" for chunk in chat.send_message_stream(text) if not chunk.function_calls)

    assert_weather_in(say(BOTH))
    assert get_weather("Rome") in say("And the weather in Rome?")
    assert list_called_cities(chat.get_history()) == [*CITIES, "Rome"]


@both_forms
def test_an_async_chat_continues_after_calls_were_run(simulator, form):
    async def flow():
        async with make_async(simulator, form) as client:
            chat = client.chats.create(model=NEW, config=configure())
            first = await chat.send_message(BOTH)
            stream = await chat.send_message_stream("And the weather in Rome?")
            later = [chunk.text async for chunk in stream if not chunk.function_calls]
            return first.text, "".join(text or "" for text in later)

    first, later = asyncio.run(flow())
    assert_weather_in(first)
    assert get_weather("Rome") in later


def test_a_failing_tool_is_reported(client):
    def get_weather(city: str) -> str:
        """Tell the current weather in a city."""
        raise OSError(city)

    reply = client.models.generate_content(model=NEW, contents=BOTH, config=configure(get_weather))
    assert "fail" in reply.text.lower()


def test_a_function_that_must_be_called_is_called(client):
    calling = types.FunctionCallingConfig(mode="ANY", allowed_function_names=["get_weather"])
    config = configure(
        tool_config=types.ToolConfig(function_calling_config=calling),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(maximum_remote_calls=2),
    )
    reply = client.models.generate_content(model=NEW, contents="Paris", config=config)
    assert list_called_cities(reply.automatic_function_calling_history)[0] == "Paris"


def test_an_answer_is_parsed_into_a_type(client):
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Person)
    reply = client.models.generate_content(model=NEW, contents="Extract: Ann, 31", config=config)
    assert isinstance(reply.parsed, Person)
    assert reply.parsed.age == 31
