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

from dragoman.http.exchange import Exchange
from dragoman.http.server import listen, run_in_thread
from dragoman.simulator import Answer, Call, Received
from dragoman.simulator.runner import in_thread
from server.processes import Command, serve, until

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    },
}
TRIES = 8
"""Connections enough that both workers take some of them."""


def call_mcp(base_url: str, method: str, target: str, **params: Any) -> dict[str, Any]:
    """Ask over a connection of its own: which worker takes it is chance."""
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
    headers |= {"mcp-method": method, "mcp-name": target}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    return httpx2.post(f"{base_url}/mcp", json=body, headers=headers, timeout=30).json()["result"]


def get_task(base_url: str, task: str) -> dict[str, Any]:
    return call_mcp(base_url, "tasks/get", task, taskId=task)


@contextmanager
def pair(folder: Path, base_url: str, more: str = "") -> Generator[Command]:
    """Two workers with a simulator behind them."""
    (folder / "dragoman.toml").write_text(
        f'[server]\nlisten = "127.0.0.1:0"\n[upstreams.gemini]\nkind = "gemini"\napi_key = "k"\nbase_url = "{base_url}"\n{more}'
    )
    with serve(folder, "--workers", "2", "--config", "dragoman.toml") as gateway:
        yield gateway


@pytest.mark.slow
def test_workers_know_each_others_tasks_and_sessions(tmp_path):
    def script(received: Received) -> Answer:
        return Answer(text=f"{len(received.request.turns)} turns")

    with in_thread(script=script) as simulator, pair(tmp_path, simulator.base_url) as gateway:
        made = [
            call_mcp(
                gateway.base_url,
                "tools/call",
                "query",
                name="query",
                arguments={"prompt": "go", "session_id": f"s{at}"},
            )
            for at in range(8)
        ]
        for task in made:
            until(lambda task=task: get_task(gateway.base_url, task["taskId"])["status"] == "completed")
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
            call_mcp(gateway.base_url, "tools/call", "query", name="query", arguments={"prompt": "go"})["taskId"]
            for _ in range(4)
        ]
        until(lambda: len(simulator.requests) == 4)
        for worker in gateway.children():
            os.kill(worker, signal.SIGKILL)
        until(lambda: all(get_task(gateway.base_url, task)["status"] == "failed" for task in made), seconds=60)
        assert "has exited" in get_task(gateway.base_url, made[0])["error"]["message"]


@pytest.mark.slow
def test_a_task_waiting_for_approval_is_visible_in_every_worker_and_answered_by_any(tmp_path):
    with run_in_thread(lambda: listen(_page), "pages") as pages:
        place = pages.base_url.removeprefix("http://")
        more = f'[web]\nprivate = ["{place}"]\n'

        def script(received: Received) -> Answer:
            read = sum(len(turn.calls) for turn in received.request.turns)
            if read < 2:
                url = f"{pages.base_url}/{'news' if not read else 'collect?secret=1'}"
                return Answer(calls=(Call(id=f"c{read}", name="web_fetch", arguments={"url": url}),), end="calls")
            return Answer(text=received.request.turns[-1].results[0].text)

        with in_thread(script=script) as simulator, pair(tmp_path, simulator.base_url, more) as gateway:
            base_url = gateway.base_url
            made = [
                call_mcp(
                    base_url, "tools/call", "query", name="query", arguments={"prompt": f"{pages.base_url}/news ?"}
                )
                for _ in range(3)
            ]
            for task in (task["taskId"] for task in made):
                until(lambda task=task: get_task(base_url, task)["status"] == "input_required")
                seen = [get_task(base_url, task) for _ in range(TRIES)]
                assert {state["status"] for state in seen} == {"input_required"}
                yes = {"action": "accept", "content": {"approve": True}}
                answers = {topic: yes for topic in seen[0]["inputRequests"]}  # noqa: C420  it is the same word for all
                call_mcp(base_url, "tasks/update", task, taskId=task, inputResponses=answers)
                until(lambda task=task: get_task(base_url, task)["status"] == "completed")
                assert "a page" in get_task(base_url, task)["result"]["structuredContent"]["answer"]


async def _page(exchange: Exchange) -> None:
    await exchange.send(200, {"content-type": "text/plain"}, b"a page")


@pytest.mark.slow
def test_a_cancellation_at_any_worker_applies_to_all(tmp_path):
    with in_thread(fault="hang") as simulator, pair(tmp_path, simulator.base_url) as gateway:
        base_url = gateway.base_url
        tasks = [
            call_mcp(base_url, "tools/call", "query", name="query", arguments={"prompt": "go"})["taskId"]
            for _ in range(3)
        ]
        body = {"model": "gemini-3.8-flash", "input": "go", "background": True}
        answers = [httpx2.post(f"{base_url}/v1/responses", json=body).json()["id"] for _ in range(3)]
        until(lambda: len(simulator.requests) == 6)
        for answer in answers:
            seen = {httpx2.get(f"{base_url}/v1/responses/{answer}").json()["status"] for _ in range(TRIES)}
            assert seen == {"in_progress"}
            cancelled = httpx2.post(f"{base_url}/v1/responses/{answer}/cancel", json={}, timeout=30).json()
            assert cancelled["status"] == "cancelled"
            seen = {httpx2.get(f"{base_url}/v1/responses/{answer}").json()["status"] for _ in range(TRIES)}
            assert seen == {"cancelled"}
        for task in tasks:
            call_mcp(base_url, "tasks/cancel", task, taskId=task)
            assert {get_task(base_url, task)["status"] for _ in range(TRIES)} == {"cancelled"}
