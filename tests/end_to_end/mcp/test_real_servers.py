"""Servers that other people made and use: their tools are listed, offered to every vendor, and called."""

import os
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from dragoman import tools_to
from dragoman.core.parts import Data, Media, Text
from dragoman.mcp.settings import ToolServer
from dragoman.tools import progress_to
from mcp_peers import Visit, eventually, text_of, visit_servers
from npm import NODE

pytestmark = pytest.mark.slow


def node(modules, name, *arguments, **settings) -> ToolServer:
    script = modules / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    return ToolServer(command=str(NODE), args=(str(script), *map(str, arguments)), **settings)


def assert_renders_for_every_vendor(servers) -> None:
    for dialect in ("chat", "responses", "messages", "gemini"):
        written, losses = tools_to(dialect, servers.registry.definitions)
        assert losses == ()
        assert len(msgspec.json.decode(written)) >= 1


async def list_everything(peer: Visit):
    collected = []
    assert_renders_for_every_vendor(peer.servers)
    with progress_to(collected.append):
        steps = await peer.call("all__trigger-long-running-operation", {"duration": 1, "steps": 4})
    return {
        "status": peer.status,
        "echo": await peer.call("all__echo", {"message": "hi"}),
        "sum": await peer.call("all__get-sum", {"a": 2, "b": 3}),
        "image": await peer.call("all__get-tiny-image"),
        "links": await peer.call("all__get-resource-links", {"count": 2}),
        "resource": await peer.call("all__get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
        "structured": await peer.call("all__get-structured-content", {"location": "Chicago"}),
        "wrong": await peer.call("all__get-sum", {"a": "two"}),
        "steps": steps,
        "heard": collected,
    }


def assert_everything(found) -> None:
    assert found["status"].connected
    assert found["status"].unusable == {}
    assert text_of(found["echo"]) == "Echo: hi"
    assert "5" in text_of(found["sum"])
    assert [part.media_type for part in found["image"].content if isinstance(part, Media)] == ["image/png"]
    links = [msgspec.json.decode(part.json) for part in found["links"].content if isinstance(part, Data)]
    assert [link["type"] for link in links] == ["resource_link"] * 2
    (document,) = (part for part in found["resource"].content if isinstance(part, Media))
    assert document.name.startswith("demo://")
    (weather,) = (part for part in found["structured"].content if isinstance(part, Data))
    assert "temperature" in msgspec.json.decode(weather.json)
    assert not [part for part in found["structured"].content if isinstance(part, Text)]
    assert found["wrong"].failed
    assert not found["steps"].failed
    assert [each.done for each in found["heard"]] == [1, 2, 3, 4]


def test_everything_over_stdio(modules):
    found = visit_servers(list_everything, all=node(modules, "everything", "stdio"))
    assert_everything(found)
    assert found["status"].protocol == "2025-11-25"


def test_everything_over_http(modules, tmp_path):
    # It takes no address, and binds all of them: it is asked over loopback, on a port that was free.
    script = modules / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    log = tmp_path / "log"
    with log.open("w") as lines:
        environment = {"PATH": os.environ["PATH"], "PORT": "0"}
        process = subprocess.Popen([NODE, script, "streamableHttp"], stderr=lines, stdout=lines, env=environment)  # noqa: S603
    try:
        port = _port(process, log)
        assert_everything(visit_servers(list_everything, all=ToolServer(url=f"http://127.0.0.1:{port}/mcp")))
    finally:
        process.kill()
        process.wait()


def _port(process, log) -> int:
    """The port that the system gave to a process."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        files = Path(f"/proc/{process.pid}/fd").iterdir()
        sockets = {str(file.readlink()) for file in files if file.is_symlink()}
        tables = [Path(f"/proc/{process.pid}/net/{name}").read_text() for name in ("tcp", "tcp6")]
        for fields in (line.split() for table in tables for line in table.splitlines()):
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                return int(fields[1].rpartition(":")[2], 16)
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def test_files(modules, tmp_path):
    (tmp_path / "note.txt").write_text("a note")

    async def visit(peer: Visit):
        assert_renders_for_every_vendor(peer.servers)
        read = await peer.call("files__read_text_file", {"path": str(tmp_path / "note.txt")})
        wrote = await peer.call("files__write_file", {"path": str(tmp_path / "new.txt"), "content": "new"})
        return peer.status, read, wrote, await peer.call("files__read_text_file", {"path": "/etc/passwd"})

    status, read, wrote, outside = visit_servers(visit, files=node(modules, "filesystem", tmp_path))
    assert len(status.tools) >= 10
    assert "a note" in str(read.content)
    assert not read.failed
    assert not wrote.failed
    assert (tmp_path / "new.txt").read_text() == "new"
    assert outside.failed


def test_memory(modules, tmp_path):
    kept = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    entity = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}

    async def visit(peer: Visit):
        await peer.call("memory__create_entities", {"entities": [entity]})
        return await peer.data("memory__search_nodes", {"query": "Ada"})

    assert visit_servers(visit, memory=node(modules, "memory", env=kept))["entities"] == [entity]


def test_time_and_git_in_python(programs, tmp_path):
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)  # noqa: S603, S607
    (tmp_path / "a.txt").write_text("a")
    clock = ToolServer(command=str(programs / "mcp-server-time"), args=("--local-timezone", "UTC"))
    git = ToolServer(command=str(programs / "mcp-server-git"), args=("--repository", str(tmp_path)))

    async def visit(peer: Visit):
        assert_renders_for_every_vendor(peer.servers)
        await eventually(lambda: all(status.connected for status in peer.servers.status()))
        now = await peer.call("clock__get_current_time", {"timezone": "Europe/Oslo"})
        state = await peer.call("git__git_status", {"repo_path": str(tmp_path)})
        return peer.servers.status(), now, state

    statuses, now, state = visit_servers(visit, clock=clock, git=git)
    assert [status.protocol for status in statuses] == ["2026-07-28", "2026-07-28"]
    assert "Europe/Oslo" in str(now.content)
    assert "a.txt" in text_of(state)
