"""The tools of an MCP server, from one line."""

import asyncio
import shlex
import sys
import threading

import httpx2
import pytest

from dragoman import Agent, McpServer, ModelEndpoint, Problem
from dragoman.library import mcp_server
from dragoman.mcp.client.sign_in import SignIn, find_token_file
from dragoman.mcp.settings import ToolServer
from dragoman.simulator import Answer, Call, in_thread
from dragoman.tools import ToolDefinitionError
from mcp_authorization import run_authorized_server
from mcp_peers import PEERS

COMMAND = shlex.join((sys.executable, str(PEERS / "plain.py")))


def run_with(server, script):
    with in_thread(script=script) as simulator:
        endpoint = ModelEndpoint(base_url=f"{simulator.base_url}/v1", model="gpt-5.2", api_key="k")
        result = Agent(endpoint, tools=[server]).run_sync("Go")
        return result, simulator.requests[0].json()


def call_once(name):
    """A script that calls a tool, and answers with its result."""

    def script(received):
        if received.request.turns[-1].results:
            return Answer(text=received.request.turns[-1].results[0].text)
        return Answer(calls=(Call(id="call_1", name=name, arguments={}),))

    return script


def test_an_agent_uses_the_tools_of_a_command():
    result, first = run_with(McpServer(COMMAND, name="plain", allow=["colour"]), call_once("plain__colour"))
    assert [each["function"]["name"] for each in first["tools"]] == ["plain__colour"]
    assert result.text == "colour done"


def test_an_agent_uses_the_tools_of_a_url_that_a_user_has_signed_in_to(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def browse(url):
        threading.Thread(target=httpx2.get, args=(url,), kwargs={"follow_redirects": True}).start()

    with run_authorized_server() as (url, _):
        far = McpServer(url, name="far", sign_in=True)
        with pytest.raises(Problem, match="not signed in: sign in with `dragoman mcp login far`"):
            run_with(far, None)
        sign_in = SignIn(server=ToolServer(url=url, sign_in=True), file=find_token_file("far", url), show_url=browse)
        asyncio.run(sign_in.run())
        assert run_with(far, call_once("far__whoami"))[0].text == "you"


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
