"""Background responses where several processes share a store, and those that are streamed while they are made."""

import threading
from contextlib import ExitStack

import openai
import pytest

from dragoman.config import SessionsTable
from dragoman.gateway.agents.settings import AgentTable
from dragoman.simulator import Answer, Call
from dragoman.simulator.runner import in_thread
from dragoman.tools import tool
from end_to_end.gateway.test_agent_runs import Patient, call_tool
from end_to_end.gateway.test_background import until_done
from server.conftest import run_server_gateway
from server.processes import until


class Two:
    """Two gateways over one store."""

    def __init__(self, stack, folder, script, *tools, **more):
        self.simulator = stack.enter_context(in_thread(script=script))
        names = tuple(each.name for each in tools)
        settings = {"agents": {"helper": AgentTable(model="gem", tools=names)}, "tools": tools, **more}
        settings["sessions"] = SessionsTable(url=f"sqlite:///{folder}/s.db")
        self.gateways = [stack.enter_context(run_server_gateway(self.simulator, **settings)) for _ in range(2)]
        self.first, self.second = (
            gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0))
            for gateway in self.gateways
        )


@pytest.fixture
def two(tmp_path):
    with ExitStack() as stack:
        yield lambda script, *tools, **more: Two(stack, tmp_path, script, *tools, **more)


def speak(received):
    """Say something and call a tool that waits."""
    return Answer(text="I begin.", calls=(Call(id="c", name="wait", arguments={}),), end="calls")


def test_a_response_of_another_process_is_in_progress_and_cancelled_with_its_partial_output(two):
    patient = Patient()
    pair = two(speak, patient.handler)
    begun = pair.first.responses.create(model="helper", input="go", background=True)
    assert patient.begun.wait(10)
    assert pair.second.responses.retrieve(begun.id).status == "in_progress"
    cancelled = pair.second.responses.cancel(begun.id)
    assert cancelled.status == "cancelled"
    assert cancelled.output_text == "I begin."
    assert patient.stopped.wait(10)
    assert pair.first.responses.retrieve(begun.id) == cancelled
    assert pair.second.responses.cancel(begun.id) == cancelled


def test_the_partial_output_of_a_cancelled_response_can_be_continued(two):
    patient = Patient()
    pair = two(speak, patient.handler)
    begun = pair.first.responses.create(model="helper", input="go", background=True)
    assert patient.begun.wait(10)
    pair.first.responses.cancel(begun.id)
    pair.first.responses.create(model="gem", input="and?", previous_response_id=begun.id)
    assert b"I begin." in pair.simulator.requests[-1].body


def test_a_response_whose_gateway_was_stopped_has_failed_with_its_partial_output(tmp_path):
    patient, sessions = Patient(), SessionsTable(url=f"sqlite:///{tmp_path}/s.db")
    settings = {"agents": {"helper": AgentTable(model="gem", tools=("wait",))}, "sessions": sessions}
    with in_thread(script=speak) as simulator:
        with run_server_gateway(simulator, tools=[patient.handler], **settings) as gateway:
            client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0))
            begun = client.responses.create(model="helper", input="go", background=True)
            assert patient.begun.wait(10)
        with run_server_gateway(simulator, **settings) as gateway:
            client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0))
            found = client.responses.retrieve(begun.id)
    assert (found.status, found.output_text) == ("failed", "I begin.")
    assert "has stopped" in found.error.message


class Gate:
    """A tool that waits until the test releases it."""

    def __init__(self):
        self.begun, self.open = threading.Event(), threading.Event()
        self.runs = 0

    @property
    def handler(self):
        def step() -> str:
            """Do a step."""
            self.runs += 1
            self.begun.set()
            assert self.open.wait(20)
            return "done"

        return tool(step)


def test_a_background_response_is_streamed_left_and_gone_on_with_elsewhere(two):
    gate = Gate()
    pair = two(call_tool("step"), gate.handler)
    collected = []
    with pair.first.responses.create(model="helper", input="go", background=True, stream=True) as events:
        for event in events:
            collected.append(event)
            if len(collected) == 2:
                break  # the client leaves, and the answer is made all the same
    assert [event.type for event in collected] == ["response.created", "response.in_progress"]
    name, last = collected[0].response.id, collected[-1].sequence_number
    assert gate.begun.wait(10)
    rest = []
    with pair.second.responses.retrieve(name, stream=True, starting_after=last) as events:
        gate.open.set()
        rest.extend(events)
    assert [event.sequence_number for event in rest] == list(range(last + 1, last + 1 + len(rest)))
    assert rest[-1].type == "response.completed"
    assert rest[-1].response.id == name
    assert pair.first.responses.retrieve(name).output_text == rest[-1].response.output_text == "It said: done"
    with pair.second.responses.retrieve(name, stream=True) as events:
        again = list(events)
    assert [event.sequence_number for event in again] == list(range(len(collected) + len(rest)))


def test_a_plain_model_is_streamed_in_the_background_too(two):
    pair = two(lambda _: Answer(text="one two three"))
    with pair.first.responses.create(model="gem", input="count", background=True, stream=True) as events:
        received = list(events)
    assert received[-1].type == "response.completed"
    assert received[-1].response.output_text == "one two three"
    assert until_done(pair.second, received[0].response.id).output_text == "one two three"


def test_a_failed_streamed_background_response_reports_the_error_in_the_stream_and_after(two):
    pair = two(None)
    model, received = "gemini/gemini-3.8-flash~400", []
    events = pair.first.responses.create(model=model, input="Hi", background=True, stream=True)
    with events, pytest.raises(openai.APIError, match="error with status 400"):
        received.extend(events)
    done = until_done(pair.second, received[0].response.id)
    assert done.status == "failed"
    assert "error with status 400" in done.error.message


def test_a_response_that_was_not_streamed_can_be_replayed_as_a_stream_from_any_event(two):
    pair = two(lambda _: Answer(text="hello"))
    done = pair.first.responses.create(model="gem", input="Hi")
    with pair.second.responses.retrieve(done.id, stream=True) as events:
        whole = list(events)
    with pair.second.responses.retrieve(done.id, stream=True, starting_after=2) as events:
        assert list(events) == whole[3:]


def test_a_place_that_is_no_number_is_refused(two):
    pair = two(lambda _: Answer(text="hello"))
    done = pair.first.responses.create(model="gem", input="Hi")
    with pytest.raises(openai.BadRequestError, match="starting_after"):
        pair.first.responses.retrieve(done.id, stream=True, extra_query={"starting_after": "x"})


def test_a_conversation_in_which_tools_are_run_is_refused_to_others_before_they_run_any(two):
    gate = Gate()
    pair = two(call_tool("step"), gate.handler)
    first: list[str] = []

    def ask() -> None:
        reply = pair.first.responses.create(model="helper", input="go", conversation="shared")
        first.append(reply.output_text)

    asking = threading.Thread(target=ask)
    asking.start()
    assert gate.begun.wait(10)
    for client in (pair.first, pair.second):
        with pytest.raises(openai.ConflictError, match="another request is using the conversation") as refused:
            client.responses.create(model="helper", input="me too", conversation="shared")
        assert refused.value.code == "conversation_locked"
    gate.open.set()
    asking.join(20)
    assert first == ["It said: done"]
    assert gate.runs == 1
    assert pair.second.responses.create(model="gem", input="and?", conversation="shared").status == "completed"


def test_a_background_response_is_deleted_elsewhere_and_its_tool_stopped(two):
    patient = Patient()
    pair = two(speak, patient.handler)
    begun = pair.first.responses.create(model="helper", input="go", background=True)
    assert patient.begun.wait(10)
    pair.second.responses.delete(begun.id)
    assert patient.stopped.wait(10)
    with pytest.raises(openai.NotFoundError):
        pair.first.responses.retrieve(begun.id)
    until(lambda: len(pair.gateways[0].records) >= 2)
