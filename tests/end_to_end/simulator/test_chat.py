"""The official SDK over loopback: tool flows whole and streamed, structured answers, errors as its own exceptions."""

import asyncio
import json
from collections.abc import Generator

import openai
import pydantic
import pytest

from simulator.apis.chat.bodies import CALCULATOR, WEATHER

MODEL = "gpt-5.2"
QUESTION = "What is the weather in Paris?"
BOTH = "What is the weather in Paris and in Tokyo?"


@pytest.fixture(scope="module")
def sdk(simulator) -> Generator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{simulator.base_url}/v1", api_key="sk-test", max_retries=0) as client:
        yield client


def user_messages(text=QUESTION):
    return [{"role": "user", "content": text}]


def results(message, text="18 degrees and cloudy"):
    assert message.tool_calls
    return [{"role": "tool", "tool_call_id": call.id, "content": text} for call in message.tool_calls]


def test_a_tool_flow(sdk):
    first = sdk.chat.completions.create(model=MODEL, messages=user_messages(), tools=[WEATHER])
    [choice] = first.choices
    assert choice.finish_reason == "tool_calls"
    [call] = choice.message.tool_calls
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments)["city"] == "Paris"
    history = [*user_messages(), choice.message, *results(choice.message)]
    second = sdk.chat.completions.create(model=MODEL, messages=history, tools=[WEATHER])
    assert second.choices[0].finish_reason == "stop"
    assert "18 degrees" in second.choices[0].message.content
    assert second.usage.total_tokens > first.usage.prompt_tokens


def test_a_tool_flow_in_streams(sdk):
    options = {"include_usage": True}
    with sdk.chat.completions.stream(
        model=MODEL, messages=user_messages(BOTH), tools=[WEATHER], stream_options=options
    ) as stream:
        kinds = {event.type for event in stream}
        first = stream.get_final_completion()
    assert {"chunk", "tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"} <= kinds
    message = first.choices[0].message
    cities = [json.loads(call.function.arguments)["city"] for call in message.tool_calls]
    assert cities == ["Paris", "Tokyo"]
    history = [*user_messages(BOTH), message, *results(message)]
    with sdk.chat.completions.stream(model=MODEL, messages=history, tools=[WEATHER], stream_options=options) as stream:
        text = "".join(event.delta for event in stream if event.type == "content.delta")
        second = stream.get_final_completion()
    assert second.choices[0].message.content == text
    assert "18 degrees" in text
    assert second.usage.completion_tokens > 0


def test_interleaved_calls_are_put_together(simulate):
    server = simulate(interleaved=True, chunk=2)
    with (
        openai.OpenAI(base_url=f"{server.base_url}/v1", api_key="sk-test", max_retries=0) as client,
        client.chat.completions.stream(model=MODEL, messages=user_messages(BOTH), tools=[WEATHER]) as stream,
    ):
        indexes = [
            call.index
            for event in stream
            if event.type == "chunk" and event.chunk.choices
            for call in event.chunk.choices[0].delta.tool_calls or []
        ]
        calls = stream.get_final_completion().choices[0].message.tool_calls
    assert indexes != sorted(indexes)
    assert [json.loads(call.function.arguments)["city"] for call in calls] == ["Paris", "Tokyo"]


def test_a_stream_without_a_tool_has_the_same_text_as_a_whole_reply(sdk):
    whole = sdk.chat.completions.create(model=MODEL, messages=user_messages("Hello there"))
    chunks = list(sdk.chat.completions.create(model=MODEL, messages=user_messages("Hello there"), stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_a_custom_tool_is_called(sdk):
    choice = {"type": "custom", "custom": {"name": "calculate"}}
    reply = sdk.chat.completions.create(
        model=MODEL, messages=user_messages("Add 2 and 3"), tools=[CALCULATOR], tool_choice=choice
    )
    [call] = reply.choices[0].message.tool_calls
    assert (call.type, call.custom.name) == ("custom", "calculate")
    history = [*user_messages("Add 2 and 3"), reply.choices[0].message, *results(reply.choices[0].message, "5")]
    assert sdk.chat.completions.create(model=MODEL, messages=history, tools=[CALCULATOR]).choices[0].message.content


class Person(pydantic.BaseModel):
    name: str
    age: int
    nickname: str | None


def test_an_answer_by_a_schema_is_parsed(sdk):
    reply = sdk.chat.completions.parse(model=MODEL, messages=user_messages("Extract: Ann, 31"), response_format=Person)
    assert isinstance(reply.choices[0].message.parsed, Person)


def test_a_parsed_tool_flow_continues_with_the_message_of_the_sdk(sdk):
    tools = [openai.pydantic_function_tool(Person)]
    first = sdk.chat.completions.parse(
        model=MODEL, messages=user_messages("Save the person Ann, 31"), tools=tools, tool_choice="required"
    )
    message = first.choices[0].message
    assert isinstance(message.tool_calls[0].function.parsed_arguments, Person)
    history = [*user_messages("Save the person Ann, 31"), message, *results(message, "saved")]
    assert "saved" in sdk.chat.completions.parse(model=MODEL, messages=history, tools=tools).choices[0].message.content


def test_a_search_model_cites(sdk):
    reply = sdk.chat.completions.create(
        model="gpt-4o-search-preview", messages=user_messages("Where is Paris?"), web_search_options={}
    )
    message = reply.choices[0].message
    for annotation in message.annotations:
        cited = annotation.url_citation
        assert cited.url.startswith("http")
        assert message.content[cited.start_index : cited.end_index]


def test_limits_cut_an_answer(sdk):
    reply = sdk.chat.completions.create(model=MODEL, messages=user_messages("Hello there"), max_completion_tokens=3)
    assert reply.choices[0].finish_reason == "length"


REFUSED = [
    ({"model": "no-such-model"}, openai.NotFoundError, "model_not_found", "chat.model-unknown"),
    ({"messages": []}, openai.BadRequestError, "empty_array", "chat.messages-empty"),
    ({"max_tokens": 5}, openai.BadRequestError, "unsupported_parameter", "chat.max-tokens-model"),
    ({"extra_body": {"top_k": 5}}, openai.BadRequestError, "unknown_parameter", "chat.unknown-field"),
]


@pytest.mark.parametrize(("members", "exception", "code", "rule"), REFUSED)
def test_a_refusal_is_raised(sdk, members, exception, code, rule):
    with pytest.raises(exception) as caught:
        sdk.chat.completions.create(**{"model": MODEL, "messages": user_messages(), **members})
    with pytest.raises(exception):
        sdk.chat.completions.create(**{"model": MODEL, "messages": user_messages(), "stream": True, **members})
    assert caught.value.code == code
    assert caught.value.response.headers["x-dragoman-rule"] == rule
    assert rule in caught.value.message


def test_a_wrong_key_is_refused(simulator):
    with (
        openai.OpenAI(base_url=f"{simulator.base_url}/v1", api_key="invalid", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError) as caught,
    ):
        client.chat.completions.create(model=MODEL, messages=user_messages())
    assert caught.value.code == "invalid_api_key"


def test_a_limit_of_requests_is_raised(sdk):
    with pytest.raises(openai.RateLimitError) as caught:
        sdk.chat.completions.create(
            model=MODEL, messages=user_messages(), extra_headers={"x-dragoman-fault": "429,retry-after=7"}
        )
    assert caught.value.code == "rate_limit_exceeded"
    assert caught.value.response.headers["retry-after"] == "7"


def test_a_stream_that_fails_is_raised(sdk):
    stream = sdk.chat.completions.create(
        model=MODEL, messages=user_messages(), stream=True, extra_headers={"x-dragoman-fault": "stream-error"}
    )
    with stream, pytest.raises(openai.APIError) as caught:
        list(stream)
    assert caught.value.type == "server_error"


def test_the_async_client_has_its_tool_flow_too(simulator):
    async def flow():
        async with openai.AsyncOpenAI(base_url=f"{simulator.base_url}/v1", api_key="sk-test", max_retries=0) as client:
            first = await client.chat.completions.create(model=MODEL, messages=user_messages(), tools=[WEATHER])
            message = first.choices[0].message
            history = [*user_messages(), message, *results(message)]
            stream = await client.chat.completions.create(model=MODEL, messages=history, tools=[WEATHER], stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    assert "18 degrees" in asyncio.run(flow())
