"""The official SDK over loopback: tool flows whole and streamed, state that is kept, errors as its own exceptions."""

import json
from collections.abc import Generator

import openai
import pytest

from simulator.apis.responses.bodies import PATCH, WEATHER

MODEL = "gpt-5.6-terra"
QUESTION = "What is the weather in Paris?"
TOOL = {**WEATHER, "strict": False}


@pytest.fixture(scope="module")
def sdk(simulator) -> Generator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{simulator.base_url}/v1", api_key="sk-test", max_retries=0) as client:
        yield client


def results(response, text="18 degrees and cloudy"):
    calls = [item for item in response.output if item.type == "function_call"]
    assert calls
    return [{"type": "function_call_output", "call_id": call.call_id, "output": text} for call in calls]


def test_a_tool_flow_without_a_store(sdk):
    output = [{"role": "user", "content": QUESTION}]
    first = sdk.responses.create(model=MODEL, input=output, tools=[TOOL], store=False)
    call = first.output[-1]
    assert (call.type, call.name) == ("function_call", "get_weather")
    assert json.loads(call.arguments)["city"] == "Paris"
    thoughts = [item for item in first.output if item.type == "reasoning"]
    assert all(thought.encrypted_content for thought in thoughts)
    again = [*output, *(item.model_dump(exclude_none=True) for item in first.output), *results(first)]
    second = sdk.responses.create(model=MODEL, input=again, tools=[TOOL], store=False)
    assert "18 degrees" in second.output_text
    assert second.usage.total_tokens > 0


def test_a_tool_flow_in_streams(sdk):
    output = [{"role": "user", "content": QUESTION}]
    with sdk.responses.stream(model=MODEL, input=output, tools=[TOOL], store=False) as stream:
        kinds = {event.type for event in stream}
        first = stream.get_final_response()
    assert {"response.created", "response.function_call_arguments.done", "response.completed"} <= kinds
    again = [
        *output,
        *(item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in first.output),
        *results(first),
    ]
    with sdk.responses.stream(model=MODEL, input=again, tools=[TOOL], store=False) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        assert text == stream.get_final_response().output_text
    assert "18 degrees" in text


def test_a_tool_flow_continues_from_a_stored_reply(sdk):
    first = sdk.responses.create(model=MODEL, input=QUESTION, tools=[TOOL])
    second = sdk.responses.create(model=MODEL, previous_response_id=first.id, input=results(first), tools=[TOOL])
    assert "18 degrees" in second.output_text
    assert second.previous_response_id == first.id
    assert sdk.responses.retrieve(first.id).output == first.output


def test_calls_that_were_left_unanswered_are_refused_also_when_they_are_stored(sdk):
    first = sdk.responses.create(model=MODEL, input=QUESTION, tools=[TOOL])
    with pytest.raises(openai.BadRequestError, match="No tool output found for function call") as caught:
        sdk.responses.create(model=MODEL, previous_response_id=first.id, input="Never mind.", tools=[TOOL])
    assert caught.value.response.headers["x-dragoman-rule"] == "responses.call-answered"


def test_a_custom_tool_is_called_with_text(sdk):
    choice = {"type": "custom", "name": "apply_patch"}
    response = sdk.responses.create(model=MODEL, input="Change the file a.txt", tools=[PATCH], tool_choice=choice)
    call = response.output[-1]
    assert (call.type, call.name) == ("custom_tool_call", "apply_patch")
    assert isinstance(call.input, str)


def test_a_schema_is_filled(sdk):
    import pydantic

    class Person(pydantic.BaseModel):
        name: str
        age: int

    response = sdk.responses.parse(model=MODEL, input="Extract: Ann, 31 years old", text_format=Person)
    assert isinstance(response.output_parsed, Person)


def test_a_search_is_cited(sdk):
    response = sdk.responses.create(
        model=MODEL, input="Search the web for the Eiffel Tower", tools=[{"type": "web_search"}], tool_choice="required"
    )
    kinds = [item.type for item in response.output]
    assert "web_search_call" in kinds
    part = response.output[-1].content[0]
    for annotation in part.annotations:
        assert part.text[annotation.start_index : annotation.end_index]


def test_tokens_are_counted(sdk):
    assert sdk.responses.input_tokens.count(model=MODEL, input=QUESTION).input_tokens > 0


ERRORS = [
    ({"model": "no-such-model"}, openai.BadRequestError, "model_not_found"),
    ({"temperature": 0.2}, openai.BadRequestError, None),
    ({"max_output_tokens": 1}, openai.BadRequestError, "integer_below_min_value"),
    ({"extra_body": {"seed": 1}}, openai.BadRequestError, "unknown_parameter"),
    ({"previous_response_id": "resp_unknown"}, openai.BadRequestError, "previous_response_not_found"),
    ({"tools": [{**TOOL, "strict": True}]}, openai.BadRequestError, "invalid_function_parameters"),
]


@pytest.mark.parametrize(("members", "error", "code"), ERRORS, ids=str)
def test_errors_are_raised_as_the_sdks_own(sdk, members, error, code):
    with pytest.raises(error) as caught:
        sdk.responses.create(**{"model": MODEL, "input": QUESTION, **members})
    assert caught.value.code == code


def test_a_reply_that_was_not_stored_cannot_be_continued(sdk):
    first = sdk.responses.create(model=MODEL, input="Hello", store=False)
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.create(model=MODEL, input="And?", previous_response_id=first.id)
    assert caught.value.code == "previous_response_not_found"


def test_a_key_that_is_not_taken_is_an_authentication_error(simulator):
    with (
        openai.OpenAI(base_url=f"{simulator.base_url}/v1", api_key="invalid", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.responses.create(model=MODEL, input="Hello")


def test_a_stream_with_an_error_continues_its_sequence_numbers_and_has_its_own_reply(simulator):
    import httpx2

    body = {"model": MODEL, "input": "Hello", "stream": True}
    fault = {"x-dragoman-fault": "stream-error,after=4", "authorization": "Bearer sk-test"}
    sent = httpx2.post(f"{simulator.base_url}/v1/responses", json=body, headers=fault).text
    events = [json.loads(frame.partition("data: ")[2]) for frame in sent.split("\n\n") if frame]
    assert [event["sequence_number"] for event in events] == list(range(6))
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    assert events[-2]["error"]["code"] == events[-1]["response"]["error"]["code"] == "server_error"
    assert events[-1]["response"]["id"] == events[0]["response"]["id"]
    assert events[-1]["response"]["model"] == MODEL
