"""An agent's model is an object with an address and a key, such as a client of a vendor's SDK."""

import asyncio
from types import SimpleNamespace

import anthropic
import openai
import pytest

from dragoman import Agent, Problem, tool
from dragoman.library import models
from dragoman.simulator import in_thread


@tool
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"sun in {city}"


def build_clients(base_url):
    """Objects with the address of a server and a key, and the headers in which that key arrives."""
    bearer = {"authorization": "Bearer secret"}
    plain = SimpleNamespace(base_url=f"{base_url}/v1/", api_key="secret", model="gpt-5.2")
    google = SimpleNamespace(base_url=base_url, api_key="secret", model="gemini-3-flash", kind="gemini")
    return [
        (openai.OpenAI(base_url=f"{base_url}/v1", api_key="secret"), "gpt-5.2", bearer),
        (openai.AsyncOpenAI(base_url=f"{base_url}/v1", api_key="secret"), "gpt-5.2", bearer),
        (anthropic.Anthropic(base_url=base_url, api_key="secret"), "claude-opus-4-8", {"x-api-key": "secret"}),
        (plain, "", bearer),
        (google, "", {"x-goog-api-key": "secret"}),
    ]


def test_a_model_is_any_object_with_an_address_and_a_key():
    with in_thread() as simulator:
        for client, model, key in build_clients(simulator.base_url):
            simulator.requests.clear()
            agent = Agent(client, tools=[get_weather])
            assert "secret" not in repr(agent)
            assert "sun in Oslo" in agent.run_sync("How is the weather in Oslo?", model=model).text
            assert len(simulator.requests) == 2
            assert all(key.items() <= dict(request.headers).items() for request in simulator.requests)


def test_an_object_without_a_key_sends_none():
    with in_thread() as simulator:
        client = SimpleNamespace(base_url=f"{simulator.base_url}/v1", api_key=None, model="gpt-5.2")
        Agent(client).run_sync("Hello")
        assert "authorization" not in dict(simulator.requests[0].headers)


def test_an_object_without_a_model_needs_one_for_each_run_unless_the_server_is_the_vendors():
    client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="k")
    result = Agent(client).run_sync("Hello")
    assert result.problem is not None
    assert result.problem.message == "no model is named: pass the name of one to Agent, or model= to the run"

    async def find_default(client):
        async with models.open_model(client) as new_model:
            return new_model()._default_model

    assert asyncio.run(find_default(anthropic.Anthropic(api_key="k"))).startswith("endpoint/claude")


@pytest.mark.parametrize("attributes", [{"api_key": 7}, {"options": 7}, {"options": {"colour": 1}}, {"kind": "telnet"}])
def test_an_object_with_wrong_attributes_is_a_problem(attributes):
    client = SimpleNamespace(**{"base_url": "http://127.0.0.1:9", "api_key": "k", "model": "m", **attributes})
    with pytest.raises(Problem, match="model endpoint"):
        Agent(client).run_sync("Hello")
