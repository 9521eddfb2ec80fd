"""Configured MCP servers that cannot be reached: every client gets an answer that reports it."""

import anthropic
import httpx2
import openai
import pytest

from dragoman.config import KeyTable
from dragoman.gateway.agents.settings import AgentTable
from dragoman.mcp.settings import ToolServer
from dragoman.simulator import Answer
from dragoman.simulator.runner import in_thread
from mcp_peers import plain
from server.agents import CLIENTS, Client
from server.conftest import run_server_gateway

WHY = "the server 'away' is not reachable: 'no-such-program-here' cannot be run in a temporary directory"
MCP = {"type": "mcp", "server_label": "away", "server_url": "https://a.example", "require_approval": "never"}
BETAS = ["mcp-client-2025-11-20"]
SERVER = {"type": "url", "url": "https://a.example", "name": "away"}
TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "away"}


def answer_with_results(received):
    results = [result.text for turn in received.request.turns for result in turn.results]
    return Answer(text=" | ".join(["Hello.", *results]))


SERVERS = {"away": ToolServer(command="no-such-program-here"), "near": plain(trusted=True, allow=("colour",))}


@pytest.fixture(scope="module")
def gateway():
    agents = {"helper": AgentTable(model="gem", tools=("near",))}
    with (
        in_thread(script=answer_with_results) as simulator,
        run_server_gateway(simulator, servers=SERVERS, agents=agents) as running,
    ):
        yield running


@pytest.mark.parametrize("stream", [False, True])
def test_responses_lists_no_tools_of_an_unreachable_server_and_the_reason(gateway, stream):
    client = Client(gateway, "responses", stream=stream, model="claude")
    reply = client.ask("go", tools=[MCP, {**MCP, "server_label": "near"}])
    away, near, message = reply.raw.output
    assert (away.type, away.server_label, away.tools) == ("mcp_list_tools", "away", [])
    assert away.error.startswith(WHY)
    assert (near.server_label, [tool.name for tool in near.tools], near.error) == ("near", ["colour"], None)
    assert message.content[0].text == "Hello."

    again = client.ask("and now?", tools=[MCP, {**MCP, "server_label": "near"}])
    assert [(item.type, getattr(item, "server_label", "")) for item in again.raw.output] == [
        ("mcp_list_tools", "away"),
        ("message", ""),
    ]
    assert gateway.simulator.requests[-1].status == 200


def test_a_responses_stream_reports_that_listing_failed(gateway):
    client = Client(gateway, "responses", stream=True, model="gem")
    with client.sdk.responses.stream(model="gem", input="go", tools=[MCP], store=False) as events:
        result = [event.type for event in events if "mcp" in event.type]
    assert result == ["response.mcp_list_tools.in_progress", "response.mcp_list_tools.failed"]


@pytest.mark.parametrize("choice", [{"type": "mcp", "server_label": "away", "name": "read"}, "required"])
def test_a_call_that_must_be_made_of_it_is_refused(gateway, choice):
    client = Client(gateway, "responses", stream=False, model="claude")
    with pytest.raises(openai.APIStatusError) as error:
        client.ask("go", tools=[MCP], tool_choice=choice)
    assert error.value.status_code == 502
    assert WHY in error.value.message


def test_a_call_of_it_that_the_client_allows_is_a_failed_one(gateway):
    client = Client(gateway, "responses", stream=False, model="gem")
    call = {"id": "mcpr_1", "server_label": "away", "name": "read", "arguments": "{}"}
    client.history = [
        {"role": "user", "content": "go"},
        {"type": "mcp_approval_request", **call},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    ]
    reply = client.ask(tools=[{**MCP, "require_approval": "always"}])
    assert "away__read was not run: the server away is not available: 'no-such-program-here'" in reply.text


@pytest.mark.parametrize("stream", [False, True])
def test_messages_books_it_as_a_loss(gateway, stream):
    client = Client(gateway, "messages", stream=stream, model="gem")
    asked = {"mcp_servers": [SERVER], "tools": [TOOLSET], "betas": BETAS}
    count = len(gateway.records) + 1
    assert client.ask("go", **asked).text == "Hello."
    (loss,) = (loss for loss in gateway.wait_for_records(count)[-1].losses if loss.where == "/mcp_servers/0")
    assert loss.kind == "dropped"
    assert loss.what.startswith(WHY)
    with pytest.raises(anthropic.BadRequestError, match=r"strict mode: .*the server 'away' is not reachable"):
        client.ask("go", headers={"x-dragoman-strict": "true"}, **asked)


@pytest.mark.parametrize("named", ["away", "near, away__read", "away__*"])
@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_request_with_the_tools_header_gets_an_error_for_an_unreachable_server(gateway, dialect, named):
    client = Client(gateway, dialect, stream=False, model="claude")
    with pytest.raises(Exception, match="x-dragoman-tools: the server 'away' is not reachable: 'no-such") as error:
        client.ask("go", headers={"x-dragoman-tools": named})
    assert getattr(error.value, "status_code", getattr(error.value, "code", 0)) in (502, 503)


def test_health_is_ok_and_shows_the_status_of_the_servers(gateway):
    reply = httpx2.get(f"{gateway.base_url}/health")
    body = reply.json()["tool_servers"]
    assert (reply.status_code, reply.json()["status"]) == (200, "ok")
    assert (body["configured"], body["connected"]) == (2, 1)
    away, near = body["servers"]
    assert (away["name"], away["connected"], away["tools"]) == ("away", False, 0)
    assert away["error"].startswith("'no-such-program-here' cannot be run")
    assert away["failures"] >= 1
    assert near == {"name": "near", "connected": True, "tools": 1, "blocked": [], "unusable": []}


def test_health_without_a_key_shows_no_server_names():
    with in_thread() as simulator, run_server_gateway(simulator, servers=SERVERS, keys=(KeyTable(key="k"),)) as locked:
        reply = httpx2.get(f"{locked.base_url}/health").json()
        assert reply == {"status": "ok", "tool_servers": {"configured": 2, "connected": 1}}
        known = httpx2.get(f"{locked.base_url}/health", headers={"authorization": "Bearer k"}).json()
        assert [server["name"] for server in known["tool_servers"]["servers"]] == ["away", "near"]


def test_the_error_for_an_unknown_tool_lists_servers_and_for_an_unknown_model_agents(gateway):
    client = Client(gateway, "chat", stream=False, model="claude")
    with pytest.raises(openai.BadRequestError, match="known names are away, near, web_fetch, read_artifact"):
        client.ask("go", headers={"x-dragoman-tools": "zzzzzzzzz"})
    with pytest.raises(openai.BadRequestError, match=r"unknown tool or server 'neer__x': did you mean near\?"):
        client.ask("go", headers={"x-dragoman-tools": "neer__x"})
    with pytest.raises(openai.NotFoundError, match=r"configured models: .*helper"):
        Client(gateway, "chat", stream=False, model="qwen3").ask("go")
