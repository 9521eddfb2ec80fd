"""Tools that the gateway runs for a model without tools of its own, mixed with those of its clients."""

import re

import pytest
from msgspec import structs

from dragoman.gateway.agents.settings import AgentTable
from dragoman.simulator import Answer
from dragoman.simulator.serving import in_thread
from server.agents import CLIENTS, WEATHER, Client
from server.conftest import serving, upstreams
from server.test_agents import toolbox

UPSTREAMS = ["gem", "claude", "gpt", "resp"]
OWN = '<tool_call>{"name": "files__read", "arguments": {"path": "a"}}</tool_call>'
THEIRS = 'TOOL_CALL: get_weather\nARGUMENTS: {"city": "Rome"}'


def script(received):
    """Call as text what the user says, then tell what the results were."""
    assert not received.ask.tools
    said = received.ask.turns[-1].text
    results = re.findall(r"<tool_result name=\"\w+\">\n(.*?)\n</tool_result>", said, re.DOTALL)
    if results:
        return Answer(text="It said: " + ", ".join(results))
    return Answer(text=f"I look.\n\n{OWN}\n{THEIRS}" if said == "mixed" else f"I read.\n{OWN}")


@pytest.fixture(scope="module")
def gateway():
    agents = {f"helper-{name}": AgentTable(model=name, tools=("files",)) for name in UPSTREAMS}
    with in_thread(script=script, chunk=5) as simulator:
        tables = upstreams(simulator.base_url).items()
        textual = {name: structs.replace(table, text_calls="json") for name, table in tables}
        with serving(simulator, upstreams=textual, agents=agents, tools=toolbox()) as running:
            yield running


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("dialect", "upstream"), [*zip(CLIENTS, UPSTREAMS, strict=True), ("chat", "gpt")])
def test_an_agent_runs_what_stands_in_text_and_leaves_the_clients_calls_to_it(gateway, dialect, upstream, stream):
    before = len(gateway.simulator.requests)
    client = Client(gateway, dialect, stream=stream, model=f"helper-{upstream}")
    assert client.ask("own").text.replace("\n\n", "") == "I read.It said: <a>"
    heard = client.ask("mixed", schemas=WEATHER)
    assert [(name, arguments) for _, name, arguments in heard.calls] == [("get_weather", {"city": "Rome"})]
    client.answer(heard, {"get_weather": "sun"})
    told = client.ask(schemas=WEATHER).text
    assert "<a>" in told
    assert "sun" in told
    assert {seen.status for seen in list(gateway.simulator.requests)[before:]} == {200}
