"""Several workers are one MCP server: a task or a session that one began is known to the others, also after its end."""

import asyncio
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client

from dragoman.simulator import Answer, Received
from dragoman.simulator.serving import in_thread
from server.processes import Command, serving, until

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}


def asked(base_url: str, method: str, target: str, **params: Any) -> dict[str, Any]:
    """Ask over a connection of its own: which worker takes it is chance."""
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
    headers |= {"mcp-method": method, "mcp-name": target}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    return httpx2.post(f"{base_url}/mcp", json=body, headers=headers, timeout=30).json()["result"]


def told(base_url: str, task: str) -> dict[str, Any]:
    return asked(base_url, "tasks/get", task, taskId=task)


@contextmanager
def pair(folder: Path, base_url: str) -> Generator[Command]:
    """Two workers with a simulator behind them."""
    (folder / "dragoman.toml").write_text(
        f'[server]\nlisten = "127.0.0.1:0"\n[upstreams.gemini]\nkind = "gemini"\napi_key = "k"\nbase_url = "{base_url}"\n'
    )
    with serving(folder, "--workers", "2", "--config", "dragoman.toml") as gateway:
        yield gateway


@pytest.mark.slow
def test_workers_know_each_others_tasks_and_sessions(tmp_path):
    def script(received: Received) -> Answer:
        return Answer(text=f"{len(received.ask.turns)} turns")

    with in_thread(script=script) as simulator, pair(tmp_path, simulator.base_url) as gateway:
        made = [
            asked(
                gateway.base_url,
                "tools/call",
                "query",
                name="query",
                arguments={"prompt": "go", "session_id": f"s{at}"},
            )
            for at in range(8)
        ]
        for task in made:
            until(lambda task=task: told(gateway.base_url, task["taskId"])["status"] == "completed")
        for at in range(8):
            assert went_on(gateway.base_url, f"s{at}") == "3 turns"


def went_on(base_url: str, session: str) -> str:
    async def go() -> str:
        async with Client(f"{base_url}/mcp") as client:
            result = await client.call_tool("query", {"prompt": "and?", "session_id": session})
            return result.structured_content["answer"]

    return asyncio.run(go())


@pytest.mark.slow
def test_a_task_of_a_worker_that_was_killed_has_failed(tmp_path):
    with in_thread(fault="hang") as simulator, pair(tmp_path, simulator.base_url) as gateway:
        made = [
            asked(gateway.base_url, "tools/call", "query", name="query", arguments={"prompt": "go"})["taskId"]
            for _ in range(4)
        ]
        until(lambda: len(simulator.requests) == 4)
        for worker in gateway.children():
            os.kill(worker, signal.SIGKILL)
        until(lambda: all(told(gateway.base_url, task)["status"] == "failed" for task in made), seconds=60)
        assert "is gone" in told(gateway.base_url, made[0])["error"]["message"]
