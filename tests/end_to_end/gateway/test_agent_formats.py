"""Answers in a format from an agent: the official SDKs read them, though the model spoke before it called."""

import anthropic
import openai
import pytest
from pydantic import BaseModel

from dragoman.config import ConfigError
from dragoman.gateway.agents.settings import AgentTable
from dragoman.simulator import Answer, Call
from dragoman.simulator.runner import in_thread
from end_to_end.gateway.test_agents import toolbox
from oracles.clients import genai
from server.agents import CLIENTS, WEATHER, Client
from server.conftest import run_server_gateway

MODELS = {"chat": "my-gem", "responses": "my-claude", "messages": "my-resp", "gemini": "my-gpt"}


class Sum(BaseModel):
    """The output schema of the requests."""

    total: int


def write_script(received):
    """Say something before each call; answer in the format."""
    turns = received.request.turns
    results = [result.text for turn in turns for result in turn.results]
    if not results:
        return Answer(text="I add.", calls=(Call(id="c0", name="add", arguments={"one": 1, "other": 2}),), end="calls")
    if "weather" in turns[0].text and len(results) == 1:
        return Answer(text="I ask.", calls=(Call(id="c1", name="get_weather", arguments={"city": "A"}),), end="calls")
    return Answer(text=f'{{"total": {results[0]}}}')


@pytest.fixture(scope="module")
def gateway():
    agents = {name: AgentTable(model=name.removeprefix("my-"), tools=("add",)) for name in MODELS.values()}
    with (
        in_thread(script=write_script) as simulator,
        run_server_gateway(simulator, agents=agents, tools=toolbox()) as running,
    ):
        yield running


def parse(gateway, dialect, model, *, stream):
    """Ask an official SDK for an answer of a type."""
    asked = [{"role": "user", "content": "Add."}]
    match dialect:
        case "chat" | "responses":
            sdk = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="any", max_retries=0))
            if dialect == "responses":
                given = {"model": model, "input": asked, "text_format": Sum, "store": False}
                if not stream:
                    return sdk.responses.parse(**given).output_parsed
                with sdk.responses.stream(**given) as events:
                    return events.get_final_response().output_parsed
            given = {"model": model, "messages": asked, "response_format": Sum}
            if not stream:
                return sdk.chat.completions.parse(**given).choices[0].message.parsed
            with sdk.chat.completions.stream(**given) as events:
                return events.get_final_completion().choices[0].message.parsed
        case "messages":
            sdk = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="any", max_retries=0))
            given = {"model": model, "messages": asked, "max_tokens": 100, "output_format": Sum}
            if not stream:
                return sdk.messages.parse(**given).parsed_output
            with sdk.messages.stream(**given) as events:
                return events.get_final_message().parsed_output
        case _:
            sdk = gateway.open(genai.Client(api_key="any", http_options={"base_url": gateway.base_url}))
            config = {"response_mime_type": "application/json", "response_schema": Sum}
            given = {"model": model, "contents": "Add.", "config": config}
            if not stream:
                return sdk.models.generate_content(**given).parsed
            text = "".join(chunk.text or "" for chunk in sdk.models.generate_content_stream(**given))
            return Sum.model_validate_json(text)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", CLIENTS)
def test_an_answer_in_a_format_is_read_by_the_official_sdk_though_the_model_spoke_before_it_called(
    gateway, dialect, stream
):
    assert parse(gateway, dialect, MODELS[dialect], stream=stream) == Sum(total=3)


@pytest.mark.parametrize("stream", [False, True])
def test_text_next_to_a_client_call_is_returned_in_any_format(gateway, stream):
    client = Client(gateway, "chat", stream=stream, model="my-claude")
    schema = {"name": "sum", "schema": Sum.model_json_schema() | {"additionalProperties": False}}
    more = {"schemas": WEATHER, "response_format": {"type": "json_schema", "json_schema": schema}}
    reply = client.ask("Add, and ask for the weather.", **more)
    assert (reply.text, [name for _, name, _ in reply.calls]) == ("I ask.", ["get_weather"])
    client.answer(reply, {"get_weather": "sunny"})
    assert client.ask(**more).text == '{"total": 3}'


def test_an_agent_name_is_rejected_where_only_a_model_is_possible(gateway):
    sdk = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="any", max_retries=0))
    with pytest.raises(openai.NotFoundError, match="'my-gem' is an agent and cannot be used here"):
        sdk.embeddings.create(model="my-gem", input="x")
    agents = {"inner": AgentTable(model="gpt"), "outer": AgentTable(model="inner")}
    with (
        in_thread() as simulator,
        pytest.raises(ConfigError, match=r"agents\.outer\.model: 'inner' is an agent"),
        run_server_gateway(simulator, agents=agents),
    ):
        pass


def test_tools_of_a_program_are_not_reported_as_unknown_names(gateway, caplog):
    with (
        in_thread() as simulator,
        run_server_gateway(
            simulator, agents={"a": AgentTable(model="gpt", tools=("add", "files", "subtract"))}, tools=toolbox()
        ),
    ):
        lines = [record.getMessage() for record in caplog.records if "unknown tool or server" in record.getMessage()]
    assert [words.partition(": ")[2].partition(";")[0] for words in lines] == ["unknown tool or server 'subtract'"]
    client = Client(gateway, "chat", stream=False, model="gpt")
    with pytest.raises(openai.BadRequestError, match=r"known names are .*add"):
        client.ask("go", headers={"x-dragoman-tools": "zzzzzzz"})
