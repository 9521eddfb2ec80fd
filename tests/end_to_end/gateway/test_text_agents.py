"""Tools that the gateway runs for a model without tools of its own, mixed with those of its clients."""

import re

import pytest
from msgspec import structs

from dragoman.gateway.agents.settings import AgentLimits, AgentTable
from dragoman.simulator import Answer
from dragoman.simulator.runner import in_thread
from end_to_end.gateway.test_agents import toolbox
from server.agents import CLIENTS, WEATHER, Client
from server.conftest import run_server_gateway, upstreams

UPSTREAMS = ["gem", "claude", "gpt", "resp"]
OWN = '<tool_call>{"name": "files__read", "arguments": {"path": "a"}}</tool_call>'
THEIRS = 'TOOL_CALL: get_weather\nARGUMENTS: {"city": "Rome"}'


def script(received):
    """Call as text the tools that the user names, then report the results."""
    assert not received.request.tools
    output = received.request.turns[-1].text
    results = re.findall(r"<tool_result name=\"\w+\">\n(.*?)\n</tool_result>", output, re.DOTALL)
    if results:
        return Answer(text="It said: " + ", ".join(results))
    return Answer(text=f"I look.\n\n{OWN}\n{THEIRS}" if output == "mixed" else f"I read.\n{OWN}")


@pytest.fixture(scope="module")
def gateway():
    agents = {f"helper-{name}": AgentTable(model=name, tools=("files",)) for name in UPSTREAMS}
    with in_thread(script=script, chunk=5) as simulator:
        tables = upstreams(simulator.base_url).items()
        textual = {name: structs.replace(table, text_calls="json") for name, table in tables}
        with run_server_gateway(simulator, upstreams=textual, agents=agents, tools=toolbox()) as running:
            yield running


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("dialect", "upstream"), [*zip(CLIENTS, UPSTREAMS, strict=True), ("chat", "gpt")])
def test_an_agent_runs_text_calls_and_leaves_client_calls_to_the_client(gateway, dialect, upstream, stream):
    before = len(gateway.simulator.requests)
    client = Client(gateway, dialect, stream=stream, model=f"helper-{upstream}")
    assert client.ask("own").text == "I read.\n\nIt said: <a>"
    received = client.ask("mixed", schemas=WEATHER)
    assert [(name, arguments) for _, name, arguments in received.calls] == [("get_weather", {"city": "Rome"})]
    client.answer(received, {"get_weather": "sun"})
    reply = client.ask(schemas=WEATHER).text
    assert "<a>" in reply
    assert "sun" in reply
    assert {seen.status for seen in list(gateway.simulator.requests)[before:]} == {200}


UNREAD = 'TOOL_CALL: files__read\nARGUMENTS: {"path": "a",}'
WRITTEN = {"legacy": UNREAD, "json": '<tool_call>{"name": "files__read", "arguments": {,}}</tool_call>'}


def wayward(received):
    """Write an unparsable call until it is reported; or call without end, even if no tool may be called."""
    turns = [turn for turn in received.request.turns if turn.role != "system"]
    asked, last = turns[0].text, turns[-1].text
    if asked in WRITTEN and len(turns) == 1:
        return Answer(text=f"I read.\n\n{WRITTEN[asked]}")
    if asked in WRITTEN and "cannot be read" in last:
        return Answer(text=OWN)
    if asked in WRITTEN:
        return Answer(text="Done.")
    if asked == "broken":
        return Answer(text=f"I read.\n```\n{WRITTEN['json']}\n```")
    if asked == "cut":
        return Answer(text='I read.\nTOOL_CALL: files__read\nARGUMENTS: {"path', end="length")
    return Answer(text=f"I go on.\n{THEIRS if 'theirs' in asked else OWN}")


@pytest.fixture(scope="module")
def strict_gateway():
    limits = AgentLimits(turns=2)
    agents = {f"helper-{name}": AgentTable(model=name, tools=("files",), limits=limits) for name in UPSTREAMS}
    with in_thread(script=wayward, chunk=5) as simulator:
        tables = upstreams(simulator.base_url).items()
        textual = {name: structs.replace(table, text_calls="json") for name, table in tables}
        with run_server_gateway(simulator, upstreams=textual, agents=agents, tools=toolbox()) as running:
            yield running


def reply_text(client, asked):
    """The text of a reply; OpenAI's helpers for streams raise where an answer was cut off."""
    ask = {"model": client.model, "stream": True}
    match client.dialect, client.stream:
        case "chat", True:
            chunks = client.sdk.chat.completions.create(**ask, messages=[{"role": "user", "content": asked}])
            return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        case "responses", True:
            events = client.sdk.responses.create(**ask, input=asked)
            return "".join(event.delta for event in events if event.type == "response.output_text.delta")
        case _:
            return client.ask(asked).text


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("dialect", "upstream"), [*zip(CLIENTS, UPSTREAMS, strict=True)])
def test_no_client_sees_the_text_of_a_call_that_the_loop_corrected_or_rejected(
    strict_gateway, dialect, upstream, stream
):
    for asked, result in {
        "json": "I read.Done.",
        "legacy": "I read.Done.",
        "on and on": "I go on." * 4,
        "broken": "I read.I read.I read.",
        "cut": "I read.",
    }.items():
        client = Client(strict_gateway, dialect, stream=stream, model=f"helper-{upstream}")
        assert reply_text(client, asked).replace("\n\n", "") == result
    assert {seen.status for seen in strict_gateway.simulator.requests} == {200}
