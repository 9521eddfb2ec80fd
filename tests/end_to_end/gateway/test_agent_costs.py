"""Agents with a limit on cost, and with a history that is summed up, by what is configured."""

import asyncio

import pytest

from dragoman.config import Config, ConfigError, SessionsTable, UpstreamTable
from dragoman.gateway.agents.settings import AgentCompaction, AgentLimits, AgentTable, PriceTable
from dragoman.server.services import open_gateway_services
from dragoman.simulator import Answer, Call
from dragoman.simulator.runner import in_thread
from end_to_end.gateway.test_agents import toolbox
from server.agents import Client
from server.conftest import run_server_gateway

PRICES = {"*": PriceTable(input=1_000_000.0, output=0.0)}
"""Every token of input costs 1."""


def endless(received):
    """Call on and on; a summary is one sentence."""
    turns = received.request.turns
    if not received.request.tools:
        return Answer(text="Many files were read.")
    return Answer(calls=(Call(id="c", name="files__read", arguments={"path": f"{len(turns)}" * 50}),), end="calls")


@pytest.fixture(scope="module")
def gateway():
    agents = {
        "cheap": AgentTable(model="gpt", tools=("files",), limits=AgentLimits(turns=50, cost=500.0)),
        "brief": AgentTable(
            model="gpt",
            tools=("files",),
            limits=AgentLimits(turns=8),
            compaction=AgentCompaction(context=400, share=0.5, keep=2, model="claude"),
        ),
    }
    with (
        in_thread(script=endless) as simulator,
        run_server_gateway(simulator, agents=agents, prices=PRICES, tools=toolbox()) as running,
    ):
        yield running


def test_an_agent_stops_when_its_money_is_spent(gateway):
    before = len(gateway.simulator.requests)
    reply = Client(gateway, "chat", stream=False, model="cheap").ask("go")
    assert reply.finish == "length"
    assert reply.usage[0] >= 500
    assert len(gateway.simulator.requests) - before < 20


def test_a_history_that_grows_in_a_run_is_summed_up_by_the_model_that_is_named(gateway):
    before = len(gateway.simulator.requests)
    Client(gateway, "chat", stream=False, model="brief").ask("go")
    seen = list(gateway.simulator.requests)[before:]
    assert {one.status for one in seen} == {200}
    assert any("Sum up this conversation" in one.body.decode() for one in seen if one.target.endswith("/messages"))
    assert any("Many files were read." in one.body.decode() for one in seen if one.target.endswith("/completions"))


@pytest.mark.parametrize(
    ("agent", "key"),
    [
        (AgentTable(model="m/gpt-5.2", limits=AgentLimits(cost=1.0)), r"agents\.a\.limits\.cost.*\[prices\]"),
        (AgentTable(model="m/gpt-5.2", compaction=AgentCompaction(model="x/y")), r"agents\.a\.compaction\.model"),
        (AgentTable(model="x/y"), r"agents\.a\.model"),
    ],
)
def test_an_agent_that_could_not_work_as_it_is_configured_is_refused(agent, key, tmp_path):
    nowhere = UpstreamTable(kind="openai", base_url="http://127.0.0.1:9")
    sessions = SessionsTable(url=f"sqlite:///{tmp_path}/s.db")
    config = Config(upstreams={"m": nowhere, "n": nowhere}, agents={"a": agent}, sessions=sessions)

    async def open_services():
        async with open_gateway_services(config):
            pass

    with pytest.raises(ConfigError, match=key):
        asyncio.run(open_services())
