"""The tools of an MCP server, from one line."""

import shlex
import sys

import pytest

from dragoman import Agent, McpServer, ModelEndpoint, Problem
from dragoman.library import mcp_server
from dragoman.simulator import Answer, Call, in_thread
from dragoman.tools import ToolDefinitionError
from mcp_peers import PEERS

COMMAND = shlex.join((sys.executable, str(PEERS / "plain.py")))


def run_with(server, script):
    with in_thread(script=script) as simulator:
        endpoint = ModelEndpoint(base_url=f"{simulator.base_url}/v1", model="gpt-5.2", api_key="k")
        result = Agent(endpoint, tools=[server]).run_sync("Go")
        return result, simulator.requests[0].json()


def test_an_agent_uses_the_tools_of_a_command():
    def script(received):
        if received.request.turns[-1].results:
            return Answer(text=received.request.turns[-1].results[0].text)
        return Answer(calls=(Call(id="call_1", name="plain__colour", arguments={}),))

    result, first = run_with(McpServer(COMMAND, name="plain", allow=["colour"]), script)
    assert [each["function"]["name"] for each in first["tools"]] == ["plain__colour"]
    assert result.text == "colour done"


def test_a_server_that_does_not_start_is_a_problem_that_names_it():
    with pytest.raises(Problem, match="MCP server 'broken' is not available"):
        run_with(McpServer("/no/such/program", name="broken"), None)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("https://mcp.example.com/v1", "example"),
        ("uvx mcp-server-time --utc", "mcp-server-time"),
        ("npx -y @scope/server-files@latest /tmp", "server-files"),
        ("python -m time_server", "time-server"),
        ("./tools/weather.py", "weather"),
    ],
)
def test_a_server_has_the_name_of_its_host_or_program(target, name):
    assert mcp_server.McpServer(target).name == name


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("", {}, "needs a URL or the command"),
        ("server", {"colour": 1}, "unknown field `colour`"),
        ("server", {"headers": {"a": "b"}}, "headers: cannot be combined with `command`"),
    ],
)
def test_wrong_options_are_refused_when_the_server_is_defined(target, options, words):
    with pytest.raises(ToolDefinitionError, match=words):
        McpServer(target, **options)
