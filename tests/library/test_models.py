"""An agent opens its model by name: from the configuration, from keys in the environment, or the simulator."""

import asyncio
import dataclasses
import enum
import logging
from typing import Annotated, TypedDict

import msgspec
import pytest
from pydantic import BaseModel

from dragoman import Agent, Hooks, ModelEndpoint, Problem, RunContext, RunResult, tool
from dragoman.agent import TurnEnded
from dragoman.config import ConfigError
from dragoman.core.parts import Text, ToolResult
from dragoman.library import models
from dragoman.simulator import Answer, Call, in_thread

KEYS = ("GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_CLOUD_PROJECT", "DRAGOMAN_CONFIG")
MODELS = {
    "gemini": "gemini-3-flash",
    "anthropic": "claude-opus-4-8",
    "openai": "gpt-5.2",
    "openai-responses": "gpt-5.2",
}


@tool
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"sun in {city}"


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch, tmp_path):
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    monkeypatch.chdir(tmp_path)


def use_config(simulator, monkeypatch, tmp_path):
    """Write a configuration in which each kind of upstream is the simulator."""
    tables = []
    for kind in MODELS:
        base = f"{simulator.base_url}/v1" if kind.startswith("openai") else simulator.base_url
        tables.append(f'[upstreams.{kind}]\nkind = "{kind}"\nbase_url = "{base}"\napi_key = "k"\n')
    file = tmp_path / "dragoman.toml"
    file.write_text("".join(tables) + f'[sessions]\nurl = "sqlite:///{tmp_path}/store.db"\n')
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(file))


def say(*texts):
    """A script that answers with one text after the other, the last one again and again."""
    left = list(texts)

    def answer(_received):
        return Answer(text=left.pop(0) if len(left) > 1 else left[0])

    return answer


def test_without_a_configuration_the_simulator_answers_and_one_line_says_so(caplog):
    models._warn_of_simulator.cache_clear()
    with caplog.at_level(logging.WARNING, "dragoman.library"):
        for _ in range(2):
            result = Agent("gemini-3-flash", tools=[get_weather]).run_sync("How is the weather in Oslo?")
            assert "sun in Oslo" in result.text
    assert len(caplog.records) == 1
    assert "the simulator answers instead of a model" in caplog.text


def test_an_agent_without_a_model_uses_the_default_of_the_configuration():
    assert Agent(tools=[get_weather]).run_sync("How is the weather in Oslo?").statistics.calls == 1


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_is_named_with_its_upstream(kind, monkeypatch, tmp_path):
    with in_thread() as simulator:
        use_config(simulator, monkeypatch, tmp_path)
        result = Agent(f"{kind}/{MODELS[kind]}", tools=[get_weather]).run_sync("How is the weather in Oslo?")
        assert "sun in Oslo" in result.text
        assert len(simulator.requests) == 2


def test_a_model_is_an_address_with_a_key():
    with in_thread() as simulator:
        endpoint = ModelEndpoint(base_url=f"{simulator.base_url}/v1", api_key="secret", model="gpt-5.2")
        assert "secret" not in repr(endpoint)
        assert "sun in Oslo" in Agent(endpoint, tools=[get_weather]).run_sync("How is the weather in Oslo?").text
        assert {dict(request.headers)["authorization"] for request in simulator.requests} == {"Bearer secret"}
        google = ModelEndpoint(base_url=simulator.base_url, api_key="k", model="gemini-3-flash", kind="gemini")
        assert Agent(google).run_sync("Hello").text


@pytest.mark.parametrize("model", ["gemini-3-flash", "endpoint"])
def test_only_a_named_conversation_needs_the_session_store(model, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with in_thread() as simulator:
        endpoint = ModelEndpoint(base_url=simulator.base_url, api_key="k", model="gemini-3-flash", kind="gemini")
        agent = Agent(endpoint if model == "endpoint" else model, tools=[get_weather])
        assert "sun in Oslo" in agent.run_sync("How is the weather in Oslo?").text
        conversation = agent.conversation()
        for city in ("Oslo", "Bergen"):
            assert f"sun in {city}" in conversation.run_sync(f"How is the weather in {city}?").text
        with pytest.raises(ConfigError, match="cannot open the conversation store"):
            agent.conversation("trip").run_sync("Hello")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_signatures_reach_the_model_again_without_a_store():
    with in_thread() as simulator:
        endpoint = ModelEndpoint(base_url=simulator.base_url, api_key="k", model="gemini-3-flash", kind="gemini")
        Agent(endpoint, tools=[get_weather]).run_sync("How is the weather in Oslo?")
        body = str(simulator.requests[1].json())
    assert "thoughtSignature" in body
    assert "skip_thought_signature_validator" not in body


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        (ModelEndpoint(base_url="http://127.0.0.1:9", model="m", kind="telnet"), "unknown kind 'telnet'"),
        (ModelEndpoint(base_url="http://127.0.0.1:9", model="m", options={"colour": 1}), "unknown field `colour`"),
    ],
)
def test_a_wrong_address_is_a_problem_that_says_what_is_wrong(endpoint, words):
    with pytest.raises(Problem, match=words):
        Agent(endpoint).run_sync("Hello")


@pytest.mark.parametrize("model", [7, None, object()])
def test_what_can_be_no_model_is_refused_when_the_agent_is_made(model):
    with pytest.raises(TypeError, match="the model of an agent is a name, an object with base_url and api_key, or a"):
        Agent(model)


def test_reading_the_text_or_output_of_a_failed_run_raises_its_problem():
    with in_thread() as simulator:
        endpoint = ModelEndpoint(base_url=f"{simulator.base_url}/nowhere", model="gpt-5.2", api_key="k")
        result = Agent(endpoint).run_sync("Hello")
    assert result.stop == "failed"
    for read in (lambda: result.text, lambda: result.output):
        with pytest.raises(Problem) as raised:
            read()
        assert raised.value is result.problem


def test_what_was_lost_on_the_way_is_in_the_result():
    @tool
    def move(to: Annotated[str, msgspec.Meta(pattern="^(?=a)a+$")]) -> str:
        """Move."""
        return to

    with in_thread() as simulator:
        endpoint = ModelEndpoint(base_url=simulator.base_url, api_key="k", model="gemini-2.5-flash", kind="gemini")
        assert Agent(endpoint).run_sync("Hello").losses == ()
        from dragoman.core.request import Sampling

        result = Agent(endpoint).run_sync("Hello", sampling=Sampling(top_k=1.5, stop=tuple("abcdefghij")))
        assert [loss.where for loss in result.losses] != []


def run(coroutine):
    return asyncio.run(coroutine)


def test_run_sync_also_works_where_an_event_loop_runs():
    async def notebook():
        return Agent("gemini-3-flash", tools=[get_weather]).run_sync("How is the weather in Oslo?")

    assert "sun in Oslo" in run(notebook()).text


def test_a_stream_has_typed_steps_and_ends_with_the_result():
    async def read():
        agent = Agent("gemini-3-flash", tools=[get_weather])
        steps = [step async for step in agent.stream("How is the weather in Oslo?")]
        texts = [text async for text in agent.stream_text("How is the weather in Oslo?")]
        return steps, "".join(texts)

    steps, text = run(read())
    assert isinstance(steps[-1], RunResult)
    assert sum(isinstance(step, TurnEnded) for step in steps) == 2
    assert steps[-1].text in text


def test_a_text_stream_of_a_failed_run_raises_its_problem():
    async def read():
        with in_thread() as simulator:
            endpoint = ModelEndpoint(base_url=f"{simulator.base_url}/nowhere", model="gpt-5.2", api_key="k")
            return [text async for text in Agent(endpoint).stream_text("Hello")]

    with pytest.raises(Problem):
        run(read())


def test_inside_async_with_the_model_is_opened_once():
    async def converse():
        with in_thread() as simulator:
            endpoint = ModelEndpoint(base_url=f"{simulator.base_url}/v1", model="gpt-5.2", api_key="k")
            async with Agent(endpoint) as agent:
                opened = agent._opened
                assert (await agent.run("One")).text
                assert (await agent.run("Two")).text
                assert agent._opened is opened
                other_loop = await asyncio.to_thread(lambda: asyncio.run(agent.run("Three")))
                assert other_loop.text
            assert agent._opened is None
            return len(simulator.requests)

    assert run(converse()) == 3


class Sky(enum.Enum):
    SUN = "sun"
    RAIN = "rain"


@dataclasses.dataclass
class Report:
    city: str
    sky: Sky


class ReportDict(TypedDict):
    city: str
    sky: Sky


class ReportStruct(msgspec.Struct):
    city: str
    sky: Sky


class Place(BaseModel):
    name: str


class ReportModel(BaseModel):
    city: str
    sky: Sky
    near: list[Place] = []


OUTPUTS = [Report, ReportDict, ReportStruct, ReportModel, list[Report], int, Report | ReportModel]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("output", OUTPUTS, ids=str)
def test_the_output_is_a_value_of_its_type_on_every_api(output, kind, monkeypatch, tmp_path):
    with in_thread() as simulator:
        use_config(simulator, monkeypatch, tmp_path)
        agent = Agent(f"{kind}/{MODELS[kind]}", output_type=output, tools=[get_weather])
        result = agent.run_sync("How is the weather in Oslo? Fill in the report.")
    assert result.problem is None
    wanted = {ReportDict: dict, list[Report]: list, Report | ReportModel: (Report, ReportModel)}.get(output, output)
    assert isinstance(result.output, wanted)


def test_an_invalid_output_is_requested_once_more_with_its_errors():
    good = '```json\n{"city": "Oslo", "sky": "rain"}\n```'
    with in_thread(script=say('{"city": "Oslo", "sky": "grey"}', good)) as simulator:
        endpoint = ModelEndpoint(base_url=f"{simulator.base_url}/v1", model="gpt-5.2", api_key="k")
        result = Agent(endpoint, output_type=Report).run_sync("Report")
        second = simulator.requests[1].json()["messages"][-1]["content"]
    assert result.output == Report("Oslo", Sky.RAIN)
    assert "/sky" in str(second)
    assert result.statistics.turns == 2
    assert [message.role for message in result.history] == ["user", "assistant", "user", "assistant"]


def test_an_output_that_stays_invalid_is_a_problem():
    with in_thread(script=say("I would rather not")) as simulator:
        endpoint = ModelEndpoint(base_url=f"{simulator.base_url}/v1", model="gpt-5.2", api_key="k")
        result = Agent(endpoint, output_type=Report).run_sync("Report")
        assert len(simulator.requests) == 2
    assert result.text == "I would rather not"
    with pytest.raises(Problem, match="the answer has not the required form"):
        assert result.output


class Database:
    def __init__(self, rows):
        self.rows = rows


@tool
async def look_up(context: RunContext[Database], key: str) -> str:
    """Look something up."""
    return f"{context.call.name} found {context.deps.rows[key]}"


def test_tools_get_dependencies_by_type_and_the_model_does_not_see_them():
    with in_thread(script=call_then_answer("look_up", {"key": "a"})) as simulator:
        endpoint = ModelEndpoint(base_url=f"{simulator.base_url}/v1", model="gpt-5.2", api_key="k")
        agent = Agent(endpoint, tools=[look_up])
        result = agent.run_sync("Look up a", deps=(7, Database({"a": "apple"})))
        declared = simulator.requests[0].json()["tools"][0]["function"]["parameters"]["properties"]
    assert list(declared) == ["key"]
    assert "look_up found apple" in str(result.history)
    with pytest.raises(TypeError, match="parameter 'context' of tool 'look_up' needs a Database: pass one with deps="):
        agent.run_sync("Look up a", deps="nothing")


def call_then_answer(name, arguments):
    def answer(received):
        if received.request.turns[-1].results:
            return Answer(text="Done.")
        return Answer(calls=(Call(id="call_1", name=name, arguments=arguments),))

    return answer


def test_hooks_see_and_change_model_turns_and_tool_calls():
    seen = []

    def before_model(request):
        seen.append(f"before model, {len(request.messages)}")
        extra = request.messages[0].__class__(role="system", parts=(Text(text="Be brief."),))
        return msgspec.structs.replace(request, messages=(extra, *request.messages))

    async def after_call(call, result):
        seen.append(f"after {call.name}: {result.content[0].text}")
        return ToolResult(call_id=call.id, content=(Text(text="hidden"),))

    hooks = Hooks(
        before_model=before_model,
        after_model=lambda response: seen.append(f"after model, {response.finish.reason}"),
        before_call=lambda call: msgspec.structs.replace(call, arguments='{"city": "Rome"}'),
        after_call=after_call,
    )
    with in_thread(script=call_then_answer("get_weather", {"city": "Oslo"})) as simulator:
        endpoint = ModelEndpoint(base_url=f"{simulator.base_url}/v1", model="gpt-5.2", api_key="k")
        result = Agent(endpoint, tools=[get_weather], hooks=hooks).run_sync("Weather?")
        bodies = [request.json()["messages"] for request in simulator.requests]
    assert seen == [
        "before model, 1",
        "after model, tool_calls",
        "after get_weather: sun in Rome",
        "before model, 3",
        "after model, stop",
    ]
    assert [body[0]["role"] for body in bodies] == ["system", "system"]
    assert bodies[1][-1]["content"] == "hidden"
    assert [message.role for message in result.history] == ["user", "assistant", "user", "assistant"]


def test_a_hook_may_answer_a_call_itself():
    answered = ToolResult(call_id="", content=(Text(text="from the cache"),))
    hooks = Hooks(before_call=lambda call: answered)
    with in_thread(script=call_then_answer("get_weather", {"city": "Oslo"})) as simulator:
        endpoint = ModelEndpoint(base_url=f"{simulator.base_url}/v1", model="gpt-5.2", api_key="k")
        Agent(endpoint, tools=[get_weather], hooks=hooks).run_sync("Weather?")
        assert simulator.requests[1].json()["messages"][-1]["content"] == "from the cache"


def test_a_hook_that_fails_ends_the_run_with_a_problem_that_names_it():
    def before_model(_request):
        raise RuntimeError("no")

    result = Agent("gemini-3-flash", hooks=Hooks(before_model=before_model)).run_sync("Hello")
    assert result.stop == "failed"
    assert "the hook before_model failed (RuntimeError)" in result.problem.message
