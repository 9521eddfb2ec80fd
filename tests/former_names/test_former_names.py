"""Programs written for an earlier version: its names of classes, attributes and parameters work as the present ones do."""

import asyncio
import ssl

import openai
import pytest

from dragoman import Message, Request, Text, ToolCall, agent
from dragoman.core.response import Finish, Response
from dragoman.core.stream import replay
from dragoman.former_names import keep_attributes, keep_parameters
from dragoman.mcp import client
from dragoman.simulator import Answer, Ask, ModelRequest, in_thread
from dragoman.tools import Executor, Registry, invocation, tool
from dragoman.tools.web import Web

CALL = ToolCall(id="1", name="trace", arguments="{}")


@tool
def trace() -> bool:
    """Return whether the arguments are free of untrusted content."""
    return invocation().unswayed


async def count_messages(request):
    """A model that answers with the number of messages."""
    text = Text(text=str(len(request.messages)))
    for event in replay(Response(id="r", model="m", parts=(text,), finish=Finish(reason="stop"))):
        yield event


def test_a_present_name_and_a_former_one_are_the_same_attribute():
    class Counter:
        def __init__(self, *, start=0):
            self.count = start

        def add(self, *, amount=1):
            self.count += amount

    keep_attributes(Counter, number="count", plus="add")
    keep_parameters(Counter, "__init__", first="start")
    keep_parameters(Counter, "add", more="amount")
    counter = Counter(first=3)
    counter.plus(more=2)
    counter.add(amount=1)
    assert counter.number == counter.count == 6
    with pytest.raises(TypeError, match="least"):
        Counter(least=1)


def test_classes_and_functions_are_exported_by_their_former_names():
    assert (agent.Order, agent.State, agent.Wish) == (agent.Job, agent.RunState, agent.ApprovalRequest)
    assert (agent.Carrier, agent.unfolded) == (agent.JobRunner, agent.unfold_turns)
    assert (client.Status, client.Blocked) == (client.ServerStatus, client.BlockedTool)
    assert Ask is ModelRequest


def test_an_agent_runs_on_a_runtime_of_its_caller():
    request = Request(model="m", messages=(Message(role="user", parts=(Text(text="Hello"),)),))
    runner = agent.Agent(count_messages, Executor(Registry(trace)))
    ended = asyncio.run(runner.carry(request, agent.InProcess("run", room=1000), run="run"))
    assert ended.history[-1].parts[0].text == "1"


def test_a_runtime_and_a_control_have_their_methods():
    async def run():
        runtime = agent.InProcess("run")
        runtime.tell("topic", "yes")
        async with agent.Control().limited(60):
            return await runtime.wait("topic")

    assert asyncio.run(run()) == "yes"


def test_jobs_states_and_approval_requests_have_their_attributes():
    assert agent.Job(owner="o", run="r", kind="k", document=b"", first_output=b"first").told == b"first"
    assert agent.RunState(status="running", last_output=b"last").told == b"last"
    request = agent.Wish(run="r", call=CALL, handler=trace, egress_reason="a private document")
    assert request.egress == "a private document"
    (history,) = agent.closed([Message(role="user", parts=(Text(text="Hello"),))], words="interrupted")
    assert history.parts == (Text(text="Hello"),)


@pytest.mark.parametrize("is_trusted", [False, True])
def test_an_executor_has_its_methods_and_parameters(is_trusted):
    executor = Executor(Registry(trace).only(["trace"]), remembered=5, absent="{} is away".format)
    assert executor.fits(CALL)
    assert list(executor.stretches([CALL])) == [(CALL,)]
    execution = asyncio.run(executor.perform(CALL, unswayed=is_trusted))
    assert execution.ran
    assert execution.result.content[0].json == (b"true" if is_trusted else b"false")
    missing = asyncio.run(executor.execute(ToolCall(id="2", name="other", arguments="{}")))
    assert "other is away" in missing.content[0].text
    assert trace.renamed("follow").name == "follow"


def test_parameters_reach_their_objects():
    with pytest.raises(ValueError, match="max_cached_results"):
        Executor(Registry(), remembered=-1)
    assert agent.Artifacts(most=3).spill(CALL, (Text(text="four"),)) == ""
    with pytest.raises(TypeError, match="confidence"):
        Web(trust=ssl.create_default_context(), confidence=1)


def test_a_script_reads_the_request():
    models = []

    def script(received):
        models.append(received.ask.model)
        return Answer(text="Done.")

    with in_thread(script=script) as simulator:
        reply = openai.OpenAI(base_url=f"{simulator.base_url}/v1", api_key="k").chat.completions.create(
            model="gpt-5.5", messages=[{"role": "user", "content": "Hello"}]
        )
    assert (models, reply.choices[0].message.content) == (["gpt-5.5"], "Done.")
