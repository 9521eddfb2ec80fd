"""The vendor's own client against the simulator, over loopback."""

import anthropic
import pytest
from anthropic import Anthropic, AnthropicVertex, beta_tool
from pydantic import BaseModel

from simulator.messages.bodies import WEATHER, text, user

MODELS = ["claude-opus-5-5", "claude-sonnet-5", "claude-sonnet-4-6"]
QUESTION = "What is the weather in Paris?"


@pytest.fixture
def client(simulator):
    return Anthropic(api_key="sk-ant-test", base_url=simulator.base_url, max_retries=0)


def asked(model=MODELS[0], **members):
    return {"model": model, "max_tokens": 2048, "tools": [WEATHER], "messages": [user(QUESTION)], **members}


def told(message):
    return "".join(block.text for block in message.content if block.type == "text")


def results(message):
    return [
        {"type": "tool_result", "tool_use_id": block.id, "content": "18 degrees and cloudy"}
        for block in message.content
        if block.type == "tool_use"
    ]


@pytest.mark.parametrize("model", MODELS)
def test_a_tool_is_called_and_its_result_quoted(client, model):
    question = asked(model)
    first = client.messages.create(**question)
    assert first.stop_reason == "tool_use"
    (call,) = [block for block in first.content if block.type == "tool_use"]
    assert (call.name, call.input["city"]) == ("get_weather", "Paris")
    history = [*question["messages"], {"role": "assistant", "content": first.content}, user(*results(first))]
    second = client.messages.create(**{**question, "messages": history})
    assert second.stop_reason == "end_turn"
    assert "18 degrees" in told(second)


@pytest.mark.parametrize("model", MODELS)
def test_a_tool_is_called_and_its_result_quoted_in_streams(client, model):
    question = asked(model)
    with client.messages.stream(**question) as stream:
        first = stream.get_final_message()
    history = [*question["messages"], {"role": "assistant", "content": first.content}, user(*results(first))]
    with client.messages.stream(**{**question, "messages": history}) as stream:
        words = "".join(stream.text_stream)
        second = stream.get_final_message()
    assert first.stop_reason == "tool_use"
    assert "18 degrees" in words
    assert second.usage.output_tokens > 0


def test_a_thought_comes_with_a_signature_and_is_held_to_it(client):
    question = asked(thinking={"type": "adaptive", "display": "summarized"})
    first = client.messages.create(**question)
    assert first.content[0].type == "thinking"
    content = [block.model_dump(mode="json", exclude_none=True) for block in first.content]
    content[0]["thinking"] += " Or not."
    history = [*question["messages"], {"role": "assistant", "content": content}, user(*results(first))]
    with pytest.raises(anthropic.BadRequestError, match="cannot be modified"):
        client.messages.create(**{**question, "messages": history})


def test_the_tool_runner_runs(client):
    @beta_tool
    def get_weather(city: str) -> str:
        """Current weather for a city."""
        return f"18 degrees and cloudy in {city}"

    runner = client.beta.messages.tool_runner(
        model=MODELS[0], max_tokens=2048, tools=[get_weather], messages=[user(QUESTION)]
    )
    assert "18 degrees" in told(runner.until_done())


def test_an_answer_is_parsed_into_a_type(client):
    class Person(BaseModel):
        name: str
        age: int

    message = client.messages.parse(
        model=MODELS[0], max_tokens=500, messages=[user("Extract: Ann, 31")], output_format=Person
    )
    assert isinstance(message.parsed_output, Person)


def test_tokens_are_counted(client):
    counted = client.messages.count_tokens(model=MODELS[0], tools=[WEATHER], messages=[user(QUESTION)])
    assert counted.input_tokens > 0


def test_vertex_is_served(simulator):
    place = {"region": "us-east5", "project_id": "p", "access_token": "token"}
    client = AnthropicVertex(**place, base_url=f"{simulator.base_url}/v1", max_retries=0)
    question = asked()
    whole = client.messages.create(**question)
    assert whole.id.startswith("msg_vrtx_01")
    assert whole.stop_reason == "tool_use"
    with client.messages.stream(**question) as stream:
        assert stream.get_final_message().stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("members", "error", "rule"),
    [
        ({"tool_choice": {"type": "any"}}, anthropic.BadRequestError, "messages.tool-choice-forced"),
        ({"messages": [user(text(""))]}, anthropic.BadRequestError, "messages.text-empty"),
        ({"model": "no-such-model"}, anthropic.NotFoundError, "messages.model-exists"),
        ({"extra_body": {"seed": 1}}, anthropic.BadRequestError, "messages.unknown-field"),
    ],
)
def test_what_is_refused_is_raised_as_the_vendor_s_error(client, members, error, rule):
    with pytest.raises(error) as caught:
        client.messages.create(**asked(**members))
    assert caught.value.response.headers["x-dragoman-rule"] == rule
    assert f"[rule: {rule}]" in str(caught.value)


def test_a_key_that_is_not_accepted_is_an_authentication_error(simulator):
    client = Anthropic(api_key="invalid", base_url=simulator.base_url, max_retries=0)
    with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"):
        client.messages.create(**asked())


def test_a_fault_is_raised_as_the_vendor_s_error(client):
    with pytest.raises(anthropic.RateLimitError) as caught:
        client.messages.create(**asked(model="claude-opus-5-5~429,retry-after=7"))
    assert caught.value.response.headers["retry-after"] == "7"
    with (
        pytest.raises(anthropic.APIStatusError),
        client.messages.stream(**asked(model="claude-opus-5-5~stream-error")) as stream,
    ):
        stream.get_final_message()
