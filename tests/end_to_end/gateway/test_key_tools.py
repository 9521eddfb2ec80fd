"""A key can use only its allowed tools, in whichever way it requests them."""

import re

import anthropic
import httpx2
import openai
import pytest

from dragoman.config import KeyTable
from dragoman.gateway.agents.settings import AgentTable
from dragoman.simulator import Answer, Call
from dragoman.simulator.runner import in_thread
from dragoman.tools import Registry
from end_to_end.gateway.test_agents import toolbox, write_script
from end_to_end.gateway.test_remote_tools import BETAS, MCP, SERVER, TOOLSET
from server.agents import Client
from server.conftest import run_server_gateway

KEYS = (
    KeyTable(key="k-all", name="all"),
    KeyTable(key="k-files", name="files", tools=("files__*",)),
    KeyTable(key="k-add", name="add", tools=("add",)),
    KeyTable(key="k-none", name="none", tools=("-",)),
    KeyTable(key="k-too", name="too"),
)


@pytest.fixture(scope="module")
def gateway():
    agents = {"helper": AgentTable(model="gpt", tools=("files",))}
    with (
        in_thread(script=write_script) as simulator,
        run_server_gateway(simulator, keys=KEYS, agents=agents, tools=toolbox()) as running,
    ):
        yield running


@pytest.mark.parametrize(
    ("key", "asked"),
    [("k-all", "files, add"), ("k-files", "files"), ("k-files", "files__read"), ("k-files", "files__r*")],
)
def test_a_key_has_the_tools_run_that_it_may(gateway, key, asked):
    reply = Client(gateway, "chat", stream=False, key=key).ask("own", {"x-dragoman-tools": asked})
    assert reply.text == "I read.\n\nIt said: <a>"


@pytest.mark.parametrize(
    ("key", "asked"), [("k-files", "add"), ("k-files", "files, add"), ("k-add", "files"), ("k-none", "*")]
)
def test_it_does_not_have_others_run_by_the_header(gateway, key, asked):
    before = len(gateway.simulator.requests)
    with pytest.raises(openai.PermissionDeniedError, match="is not allowed to use the tool"):
        Client(gateway, "chat", stream=False, key=key).ask("own", {"x-dragoman-tools": asked})
    assert len(gateway.simulator.requests) == before


@pytest.mark.parametrize("approval", ["never", "always"])
def test_a_key_cannot_use_forbidden_tools_through_responses(gateway, approval):
    tool = {**MCP, "require_approval": approval}
    with pytest.raises(openai.PermissionDeniedError, match="is not allowed to use the tool"):
        Client(gateway, "responses", stream=False, key="k-add").ask("own", tools=[tool])
    assert Client(gateway, "responses", stream=False, key="k-files").ask("own", tools=[tool]).raw.output


def test_a_key_cannot_use_forbidden_tools_through_messages(gateway):
    asked = {"mcp_servers": [SERVER], "tools": [TOOLSET], "betas": BETAS}
    with pytest.raises(anthropic.PermissionDeniedError, match="is not allowed to use the tool"):
        Client(gateway, "messages", stream=False, key="k-add").ask("own", **asked)


def test_every_key_that_may_use_an_agent_gets_the_agents_tools(gateway):
    reply = Client(gateway, "chat", stream=False, model="helper", key="k-none").ask("own")
    assert reply.text == "I read.\n\nIt said: <a>"


def test_a_key_restricted_to_some_tools_cannot_use_mcp(gateway):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    reply = httpx2.post(f"{gateway.base_url}/mcp", json=body, headers={"authorization": "Bearer k-files"})
    assert reply.status_code == 403
    assert "restricted to some tools" in reply.json()["error"]["message"]


def read(received):
    """Make an output that is too large, or read the one that is named."""
    turns = received.request.turns
    if turns[-1].results:
        return Answer(text=turns[-1].results[0].text[-400:])
    word = turns[-1].text
    name, arguments = ("big", {}) if word == "make" else ("read_artifact", {"id": word, "length": 5})
    return Answer(calls=(Call(id="1", name=name, arguments=arguments),), end="calls")


def test_what_was_kept_of_an_output_for_one_key_another_does_not_read():
    tools = Registry()

    @tools.register
    def big() -> str:
        """Say much."""
        return "0123456789" * 40_000

    with in_thread(script=read) as simulator, run_server_gateway(simulator, keys=KEYS, tools=tools) as gateway:

        def ask(key: str, words: str) -> str:
            return Client(gateway, "chat", stream=False, key=key).ask(words, {"x-dragoman-tools": "big"}).text

        name = re.search(r"artifact_[0-9a-f]{32}", ask("k-all", "make"))[0]
        assert ask("k-all", name).endswith("\n01234")
        assert "there is no artifact" in ask("k-too", name)
