"""The vendor's own client against the simulator, over loopback."""

import anthropic
import pytest
from anthropic import Anthropic, AnthropicVertex, beta_tool
from pydantic import BaseModel

from simulator.apis.messages.bodies import WEATHER, text, user

MODELS = ["claude-opus-5-5", "claude-sonnet-5", "claude-sonnet-4-6"]
QUESTION = "What is the weather in Paris?"
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.fixture
def client(simulator):
    return Anthropic(api_key="sk-ant-test", base_url=simulator.base_url, max_retries=0)


def build_body(model=MODELS[0], **members):
    return {"model": model, "max_tokens": 2048, "tools": [WEATHER], "messages": [user(QUESTION)], **members}


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def results(message):
    return [
        {"type": "tool_result", "tool_use_id": block.id, "content": "18 degrees and cloudy"}
        for block in message.content
        if block.type == "tool_use"
    ]


@pytest.mark.parametrize("model", MODELS)
def test_a_tool_is_called_and_its_result_quoted(client, model):
    question = build_body(model)
    first = client.messages.create(**question)
    assert first.stop_reason == "tool_use"
    (call,) = [block for block in first.content if block.type == "tool_use"]
    assert (call.name, call.input["city"]) == ("get_weather", "Paris")
    history = [*question["messages"], {"role": "assistant", "content": first.content}, user(*results(first))]
    second = client.messages.create(**{**question, "messages": history})
    assert second.stop_reason == "end_turn"
    assert "18 degrees" in text_of(second)


@pytest.mark.parametrize("model", MODELS)
def test_a_tool_is_called_and_its_result_quoted_in_streams(client, model):
    question = build_body(model)
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
    question = build_body(thinking={"type": "adaptive", "display": "summarized"})
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
    assert "18 degrees" in text_of(runner.until_done())


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


def test_models_have_input_and_output_limits(client):
    limits = {model.id: (model.max_input_tokens, model.max_tokens) for model in client.models.list()}
    assert limits["claude-haiku-4-5"] == (200_000, 64_000)
    assert limits["claude-opus-5-5"] == (1_000_000, 128_000)
    assert client.models.retrieve("claude-opus-5-5").max_tokens == 128_000


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ({"type": "auto"}, ["get_weather", "get_weather"]),
        ({"type": "auto", "disable_parallel_tool_use": True}, ["get_weather"]),
        ({"type": "any", "disable_parallel_tool_use": True}, ["get_weather"]),
        ({"type": "tool", "name": "get_time"}, ["get_time"]),
        ({"type": "none"}, []),
    ],
)
def test_the_tool_choice_is_followed(client, choice, names, streamed):
    time = {**WEATHER, "name": "get_time", "description": "Time in a city", "strict": True, "input_schema": CITY}
    question = build_body(
        "claude-sonnet-4-6",
        tools=[WEATHER, time],
        tool_choice=choice,
        messages=[user("What is the weather in Paris and in Tokyo?")],
    )
    if streamed:
        with client.messages.stream(**question) as stream:
            message = stream.get_final_message()
    else:
        message = client.messages.create(**question)
    assert [block.name for block in message.content if block.type == "tool_use"][: len(names) or 1] == names
    assert (message.stop_reason == "tool_use") == bool(names)


@pytest.mark.parametrize(
    ("members", "reason", "stopped"),
    [
        ({"stop_sequences": ["simulator"]}, "stop_sequence", "simulator"),
        ({"max_tokens": 3}, "max_tokens", None),
        ({}, "end_turn", None),
    ],
)
def test_an_answer_ends_at_max_tokens_or_a_stop_sequence(client, members, reason, stopped):
    question = {**build_body("claude-sonnet-4-6", tools=[]), **members}
    message = client.messages.create(**question)
    with client.messages.stream(**question) as stream:
        streamed = stream.get_final_message()
    for one in (message, streamed):
        assert (one.stop_reason, one.stop_sequence) == (reason, stopped)
    assert text_of(message) == text_of(streamed)


def test_a_web_search_returns_citations_and_the_conversation_continues(client):
    search = {"type": "web_search_20250305", "name": "web_search"}
    question = build_body(tools=[search], messages=[user("Search the web: what is the capital of France?")])
    first = client.messages.create(**question)
    with client.messages.stream(**question) as stream:
        kinds = [block.type for block in stream.get_final_message().content]
    assert kinds == [block.type for block in first.content]
    assert {"server_tool_use", "web_search_tool_result", "text"} <= set(kinds)
    assert first.usage.server_tool_use.web_search_requests == 1
    assert [one for block in first.content if block.type == "text" for one in block.citations or []]
    history = [*question["messages"], {"role": "assistant", "content": first.content}, user("Thank you.")]
    assert client.messages.create(**{**question, "messages": history}).stop_reason


def test_vertex_is_served(simulator):
    place = {"region": "us-east5", "project_id": "p", "access_token": "token"}
    client = AnthropicVertex(**place, base_url=f"{simulator.base_url}/v1", max_retries=0)
    question = build_body()
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
        client.messages.create(**build_body(**members))
    assert caught.value.response.headers["x-dragoman-rule"] == rule
    assert f"[rule: {rule}]" in str(caught.value)


def test_a_key_that_is_not_accepted_is_an_authentication_error(simulator):
    client = Anthropic(api_key="invalid", base_url=simulator.base_url, max_retries=0)
    with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"):
        client.messages.create(**build_body())


def test_a_fault_is_raised_as_the_vendor_s_error(client):
    with pytest.raises(anthropic.RateLimitError) as caught:
        client.messages.create(**build_body(model="claude-opus-5-5~429,retry-after=7"))
    assert caught.value.response.headers["retry-after"] == "7"
    with (
        pytest.raises(anthropic.APIStatusError),
        client.messages.stream(**build_body(model="claude-opus-5-5~stream-error")) as stream,
    ):
        stream.get_final_message()
