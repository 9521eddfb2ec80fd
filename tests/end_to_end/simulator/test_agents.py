"""OpenAI's Agents SDK over loopback: agents with tools over Responses and over Chat Completions, whole and streamed.

Tracing is off: it would send what an agent did to the vendor.
"""

import asyncio
import json

import openai
import pydantic
import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
    handoff,
)

MODELS = {
    "responses": (OpenAIResponsesModel, "gpt-5.6-terra"),
    "chat": (OpenAIChatCompletionsModel, "gpt-5.2"),
}
QUESTION = "What is the weather in Paris?"
BOTH = "What is the weather in Paris and in Tokyo?"
QUIET = RunConfig(tracing_disabled=True)
STATELESS = ModelSettings(store=False, response_include=["reasoning.encrypted_content"])


@function_tool
def get_weather(city: str) -> str:
    """Tell the current weather in a city."""
    return f"18 degrees and cloudy in {city}"


@function_tool
def get_broken_weather(city: str) -> str:
    """Tell the current weather in a city."""
    raise OSError(city)


class Forecast(pydantic.BaseModel):
    city: str
    degrees: int


class AgentRunner:
    """Runs agents over one API, with a simulator of its own."""

    def __init__(self, simulator, api):
        self.simulator = simulator
        self.api = api

    def run(self, make, question, streamed, **options):
        """Run an agent until it has answered; return how it went and the events on the way."""
        return asyncio.run(self._run(make, question, streamed, {"run_config": QUIET, **options}))

    async def _run(self, make, question, streamed, options):
        kind, name = MODELS[self.api]
        url = f"{self.simulator.base_url}/v1"
        async with openai.AsyncOpenAI(base_url=url, api_key="sk-test", max_retries=0) as client:
            agent = make(kind(name, client))
            if not streamed:
                return await Runner.run(agent, question, **options), []
            run = Runner.run_streamed(agent, question, **options)
            return run, [event async for event in run.stream_events()]

    def sent(self):
        """The bodies of all requests, which must have been accepted."""
        assert {(one.api, one.status) for one in self.simulator.requests} == {(self.api, 200)}
        return [json.loads(one.body) for one in self.simulator.requests]


@pytest.fixture(params=MODELS)
def agent_runner(simulate, request):
    return AgentRunner(simulate(), request.param)


@pytest.fixture
def responses(simulate):
    return AgentRunner(simulate(), "responses")


def reporter(**given):
    """Return what makes an agent of a model."""
    return lambda model: Agent(
        model=model, **{"name": "Reporter", "instructions": "Use your tools.", "tools": [get_weather], **given}
    )


whole_and_streamed = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def kinds(events):
    return [event.name for event in events if event.type == "run_item_stream_event"]


@whole_and_streamed
def test_an_agent_answers_with_its_tool(agent_runner, streamed):
    run, events = agent_runner.run(reporter(), QUESTION, streamed)
    assert "18 degrees and cloudy in Paris" in run.final_output
    assert [bool(body.get("stream")) for body in agent_runner.sent()] == [streamed, streamed]
    if streamed:
        result = [kind for kind in kinds(events) if kind != "reasoning_item_created"]
        assert result == ["tool_called", "tool_output", "message_output_created"]


def test_the_text_of_a_streamed_answer_comes_in_pieces(agent_runner):
    run, events = agent_runner.run(reporter(), QUESTION, streamed=True)
    raw = [event.data for event in events if event.type == "raw_response_event"]
    pieces = [event.delta for event in raw if event.type == "response.output_text.delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == run.final_output
    assert run.context_wrapper.usage.requests == 2


@whole_and_streamed
def test_parallel_calls_are_all_run(agent_runner, streamed):
    run, _ = agent_runner.run(reporter(), BOTH, streamed)
    assert "cloudy in Paris" in run.final_output
    assert "cloudy in Tokyo" in run.final_output
    assert [item.type for item in run.new_items].count("tool_call_output_item") == 2
    assert len(agent_runner.sent()) == 2


@whole_and_streamed
def test_a_conversation_continues_with_the_items_of_the_run(agent_runner, streamed):
    run, _ = agent_runner.run(reporter(), BOTH, streamed)
    output = [*run.to_input_list(), {"role": "user", "content": "And the weather in Rome?"}]
    again, _ = agent_runner.run(reporter(), output, streamed)
    assert "cloudy in Rome" in again.final_output
    assert len(agent_runner.sent()) == 4


@whole_and_streamed
def test_a_conversation_continues_from_a_stored_reply(responses, streamed):
    run, _ = responses.run(reporter(), QUESTION, streamed, auto_previous_response_id=True)
    later = {"previous_response_id": run.last_response_id}
    again, _ = responses.run(reporter(), "And the weather in Rome?", streamed, **later)
    assert "cloudy in Rome" in again.final_output
    assert [bool(body.get("previous_response_id")) for body in responses.sent()] == [False, True, True, True]


@whole_and_streamed
def test_thoughts_that_are_not_stored_come_back_encrypted(responses, streamed):
    run, _ = responses.run(reporter(model_settings=STATELESS), QUESTION, streamed)
    assert "18 degrees" in run.final_output
    _, second = responses.sent()
    thoughts = [item for item in second["input"] if item.get("type") == "reasoning"]
    assert thoughts
    assert all(thought["encrypted_content"] for thought in thoughts)


@whole_and_streamed
def test_a_tool_that_must_be_called_is_called_once(agent_runner, streamed):
    run, _ = agent_runner.run(reporter(model_settings=ModelSettings(tool_choice="get_weather")), "Paris", streamed)
    assert "cloudy in Paris" in run.final_output
    first, second = agent_runner.sent()
    assert first["tool_choice"]
    assert "tool_choice" not in second


@whole_and_streamed
def test_an_agent_hands_over_to_another(agent_runner, streamed):
    def receptionist(model):
        forecaster = reporter(name="Forecaster")(model)
        described = "Hand over questions about the weather to the forecaster."
        return reporter(tools=[], handoffs=[handoff(forecaster, tool_description_override=described)])(model)

    run, _ = agent_runner.run(receptionist, QUESTION, streamed)
    assert run.last_agent.name == "Forecaster"
    assert "cloudy in Paris" in run.final_output
    assert len(agent_runner.sent()) == 3


@whole_and_streamed
def test_an_agent_is_the_tool_of_another(agent_runner, streamed):
    def ask(model):
        expert = reporter(name="Expert")(model)
        return reporter(tools=[expert.as_tool("ask_expert", "Ask an expert about the weather.", run_config=QUIET)])(
            model
        )

    run, _ = agent_runner.run(ask, QUESTION, streamed)
    assert "cloudy in Paris" in run.final_output
    assert len(agent_runner.sent()) == 4


@whole_and_streamed
def test_an_answer_is_read_into_a_type(agent_runner, streamed):
    run, _ = agent_runner.run(reporter(tools=[], output_type=Forecast), "Report 18 degrees in Paris.", streamed)
    assert isinstance(run.final_output, Forecast)
    assert run.final_output.degrees == 18


@whole_and_streamed
def test_a_failing_tool_is_reported(agent_runner, streamed):
    run, _ = agent_runner.run(reporter(tools=[get_broken_weather]), QUESTION, streamed)
    assert "error" in run.final_output.lower()
    assert len(agent_runner.sent()) == 2


@whole_and_streamed
def test_what_the_vendor_refuses_is_raised(agent_runner, streamed):
    with pytest.raises(openai.BadRequestError) as caught:
        agent_runner.run(reporter(model_settings=ModelSettings(temperature=3)), QUESTION, streamed)
    assert caught.value.response.headers["x-dragoman-rule"].startswith(agent_runner.api)
