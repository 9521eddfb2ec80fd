"""Tool loops of the SDKs on models of other vendors: the Agents SDK, tool runners, automatic function calling.

Tracing of the Agents SDK is off: it would send what an agent did to the vendor.
"""

import asyncio
import json
from typing import Any

import anthropic
import openai
import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
)

from oracles.clients import genai
from real_clients import runs
from server.conftest import Gateway

BOTH = "What is the weather in Paris and in Tokyo?"
STATELESS = ModelSettings(store=False, response_include=["reasoning.encrypted_content"])
whole_and_streamed = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def get_weather(city: str) -> str:
    """Tell the current weather in a city.

    Args:
        city: The name of the city.
    """
    return f"18 degrees and cloudy in {city}"


def assert_weather_in(text: str) -> None:
    assert all(get_weather(city) in text for city in ("Paris", "Tokyo"))


def list_sent_since(gateway: Gateway, number: int) -> list[Any]:
    """Return what the upstream was sent after that many requests, all of which it must have taken."""
    seen = list(gateway.simulator.requests)[number:]
    assert {one.status for one in seen} == {200}
    return [json.loads(one.body) for one in seen]


MODELS = {"gemini": "gem", "anthropic": "claude", "chat": "gpt", "responses": "resp"}
KINDS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}
AGENTS = [(KINDS[kind], upstream) for kind, upstreams in runs.AGENTS.items() for upstream in upstreams]


@whole_and_streamed
@pytest.mark.parametrize(("kind", "upstream"), AGENTS)
def test_an_agents_sdk_agent_runs_its_tools_and_continues(gateway, kind, upstream, streamed):
    async def run(agent: Any, asked: Any) -> Any:
        quiet = RunConfig(tracing_disabled=True)
        if not streamed:
            return await Runner.run(agent, asked, run_config=quiet)
        running = Runner.run_streamed(agent, asked, run_config=quiet)
        assert [event async for event in running.stream_events()]
        return running

    async def talk() -> tuple[str, str]:
        url = f"{gateway.base_url}/v1"
        async with openai.AsyncOpenAI(base_url=url, api_key="any", max_retries=0) as client:
            agent = Agent(
                name="Reporter",
                instructions="Use your tools.",
                tools=[function_tool(get_weather)],
                model=kind(MODELS[upstream], client),
                model_settings=STATELESS if kind is OpenAIResponsesModel else ModelSettings(),
            )
            first = await run(agent, BOTH)
            again = await run(agent, [*first.to_input_list(), {"role": "user", "content": "And the weather in Rome?"}])
            return first.final_output, again.final_output

    before = len(gateway.simulator.requests)
    first, again = asyncio.run(talk())
    assert_weather_in(first)
    assert get_weather("Rome") in again
    assert len(list_sent_since(gateway, before)) == 4


@whole_and_streamed
@pytest.mark.parametrize("upstream", runs.RUNS["anthropic SDK, tool runner"])
def test_anthropics_tool_runner_runs_a_tool(gateway, upstream, streamed):
    client = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="any", max_retries=0))
    before = len(gateway.simulator.requests)
    runner = client.beta.messages.tool_runner(
        model=MODELS[upstream],
        max_tokens=2048,
        tools=[anthropic.beta_tool(get_weather)],
        messages=[{"role": "user", "content": BOTH}],
        thinking={"type": "adaptive", "display": "summarized"},
        stream=streamed,
    )
    messages: list[Any] = [turn.get_final_message() if streamed else turn for turn in runner]
    assert_weather_in("".join(block.text for block in messages[-1].content if block.type == "text"))
    assert len(list_sent_since(gateway, before)) == 2


def test_reasoning_of_a_responses_model_returns_to_it_through_a_messages_client(gateway):
    client = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="any", max_retries=0))
    before = len(gateway.simulator.requests)
    client.beta.messages.tool_runner(
        model="resp",
        max_tokens=2048,
        tools=[anthropic.beta_tool(get_weather)],
        messages=[{"role": "user", "content": BOTH}],
        thinking={"type": "adaptive", "display": "summarized"},
        output_config={"effort": "high"},
    ).until_done()
    first, second = list_sent_since(gateway, before)
    assert first["store"] is False
    thoughts = [item for item in second["input"] if item["type"] == "reasoning"]
    assert [bool(thought["encrypted_content"]) for thought in thoughts] == [True]


@whole_and_streamed
@pytest.mark.parametrize("upstream", runs.RUNS["google-genai, automatic calls"])
def test_googles_sdk_calls_functions_automatically_and_continues(gateway, upstream, streamed):
    client = gateway.open(genai.Client(api_key="any", http_options={"base_url": gateway.base_url}))
    chat = client.chats.create(model=MODELS[upstream], config={"tools": [get_weather]})
    before = len(gateway.simulator.requests)

    def ask(question: str) -> str:
        if not streamed:
            return chat.send_message(question).text
        return "".join(chunk.text or "" for chunk in chat.send_message_stream(question))

    assert_weather_in(ask(BOTH))
    assert get_weather("Rome") in ask("And the weather in Rome?")
    assert len(list_sent_since(gateway, before)) == 4
