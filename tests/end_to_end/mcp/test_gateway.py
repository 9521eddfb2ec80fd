"""Tools of external servers, run by the gateway for clients of all four dialects."""

import subprocess

import pytest

from dragoman.gateway.agents.settings import AgentLimits, AgentTable
from dragoman.mcp.settings import ToolServer
from dragoman.simulator import Answer, Call
from dragoman.simulator.runner import in_thread
from mcp_peers import plain
from npm import NODE
from server.agents import CLIENTS, Client
from server.conftest import run_server_gateway

BETAS = ["mcp-client-2025-11-20"]


def node(modules, name, *arguments, **settings):
    """A server of the vendor's own, written for Node."""
    script = modules / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    return ToolServer(command=str(NODE), args=(str(script), *map(str, arguments)), trusted=True, **settings)


def one_after_another(*expected):
    """A script that makes one call in each turn, and then reports all results."""

    def script(received):
        turns = received.request.turns
        done = sum(len(turn.calls) for turn in turns)
        if done < len(expected):
            name, arguments = expected[done]
            return Answer(calls=(Call(id=f"c{done}", name=name, arguments=arguments),), end="calls")
        return Answer(text=" | ".join(result.text for turn in turns for result in turn.results))

    return script


def test_the_tools_of_a_server_can_be_requested_in_every_way():
    expected = [("near__colour", {})]
    agents = {"helper": AgentTable(model="gem", tools=("near",))}
    with (
        in_thread(script=one_after_another(*expected)) as simulator,
        run_server_gateway(simulator, servers={"near": plain(trusted=True)}, agents=agents) as gateway,
    ):
        for dialect in CLIENTS:
            assert "colour done" in Client(gateway, dialect, stream=True, model="helper").ask("go").text
            by_header = Client(gateway, dialect, stream=False, model="claude")
            assert "colour done" in by_header.ask("go", headers={"x-dragoman-tools": "near"}).text
        mcp = {"type": "mcp", "server_label": "near", "server_url": "https://a.example", "require_approval": "never"}
        reply = Client(gateway, "responses", stream=True, model="claude").ask("go", tools=[mcp])
        assert [item.type for item in reply.raw.output] == ["mcp_list_tools", "mcp_call", "message"]
        reply = Client(gateway, "messages", stream=True, model="gem").ask(
            "go",
            mcp_servers=[{"type": "url", "url": "https://a.example", "name": "near"}],
            tools=[{"type": "mcp_toolset", "mcp_server_name": "near"}],
            betas=BETAS,
        )
        assert [block.type for block in reply.raw.content] == ["mcp_tool_use", "mcp_tool_result", "text"]


@pytest.mark.parametrize(("settings", "result"), [({}, "was not run"), ({"local": True}, "colour done | colour done")])
def test_an_untrusted_server_is_called_once_and_a_local_one_again(settings, result):
    script = one_after_another(("near__colour", {}), ("near__colour", {}))
    agents = {"helper": AgentTable(model="gem", tools=("near",))}
    with (
        in_thread(script=script) as simulator,
        run_server_gateway(simulator, servers={"near": plain(**settings)}, agents=agents) as gateway,
    ):
        assert result in Client(gateway, "chat", stream=False, model="helper").ask("go").text


def grow(received):
    """Let a server offer one more tool, wait until it is there, and call it."""
    turns = received.request.turns
    done = [call.name for turn in turns for call in turn.calls]
    if not done:
        return Answer(calls=(Call(id="c0", name="near__change", arguments={"add": "shade"}),), end="calls")
    if "near__shade" in done:
        return Answer(text=turns[-1].results[0].text)
    exists = "near__shade" in {tool.name for tool in received.request.tools}
    name, arguments = ("near__shade", {}) if exists else ("near__mumble", {"words": f"turn {len(done)}"})
    return Answer(calls=(Call(id=f"c{len(done)}", name=name, arguments=arguments),), end="calls")


@pytest.mark.parametrize("way", ["agent", "header", "mcp"])
def test_a_tool_that_a_server_adds_during_a_run_is_offered_from_the_next_turn_on(way):
    limits = AgentLimits(turns=500)
    agents = {"helper": AgentTable(model="gem", tools=("near",), limits=limits)}
    agents["alone"] = AgentTable(model="gem", limits=limits)
    with (
        in_thread(script=grow) as simulator,
        run_server_gateway(simulator, servers={"near": plain(trusted=True)}, agents=agents) as gateway,
    ):
        client = Client(gateway, "responses", stream=False, model="helper" if way == "agent" else "alone")
        mcp = {"type": "mcp", "server_label": "near", "server_url": "https://a.example", "require_approval": "never"}
        more = {"header": {"headers": {"x-dragoman-tools": "near"}}, "mcp": {"tools": [mcp]}}.get(way, {})
        reply = client.ask("go", **more)
        assert reply.text == "shade done"
        if way == "mcp":
            assert [item.name for item in reply.raw.output if item.type == "mcp_call"][-1] == "shade"


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", CLIENTS)
def test_real_servers_work_together_for_a_client(modules, programs, tmp_path, dialect, stream):
    (tmp_path / "a.txt").write_text("content of a")
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)  # noqa: S603, S607
    servers = {
        "all": node(modules, "everything", "stdio"),
        "files": node(modules, "filesystem", tmp_path),
        "memory": node(modules, "memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}),
        "clock": ToolServer(command=str(programs / "mcp-server-time"), args=("--local-timezone", "UTC"), trusted=True),
        "git": ToolServer(command=str(programs / "mcp-server-git"), args=("--repository", str(tmp_path)), trusted=True),
    }
    expected = [
        ("all__echo", {"message": "hello"}),
        ("files__read_text_file", {"path": str(tmp_path / "a.txt")}),
        ("memory__read_graph", {}),
        ("clock__get_current_time", {"timezone": "UTC"}),
        ("git__git_status", {"repo_path": str(tmp_path)}),
    ]
    agents = {"helper": AgentTable(model="gem", tools=tuple(servers))}
    with (
        in_thread(script=one_after_another(*expected)) as simulator,
        run_server_gateway(simulator, servers=servers, agents=agents) as gateway,
    ):
        reply = Client(gateway, dialect, stream=stream, model="helper").ask("go").text
        assert "Echo: hello" in reply
        assert "content of a" in reply
        assert "entities" in reply
        assert "timezone" in reply
        assert "a.txt" in reply
        assert {seen.status for seen in simulator.requests} == {200}
