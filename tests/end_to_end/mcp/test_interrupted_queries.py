"""After a `query` whose process was killed, the next one in its session has its history."""

import asyncio
import json
from contextlib import asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import dragoman.simulator
from agent.scripted import call
from dragoman.config import Config, KeyTable, ServerTable, SessionsTable, UpstreamTable
from dragoman.core.parts import Text
from dragoman.core.request import Message, Request
from dragoman.gateway.conversations.runs import RunRecorder
from dragoman.mcp.settings import McpTable
from dragoman.server.runner import running
from dragoman.sessions.runs import INTERRUPTED_AFTER
from dragoman.sessions.store import open_store
from dragoman.simulator import Answer

BEGUN = Request(
    model="gem",
    messages=(
        Message(role="system", parts=(Text(text="An older instruction."),)),
        Message(role="user", parts=(Text(text="Pay the bill."),)),
    ),
)
SAID = Message(role="assistant", parts=(Text(text="I pay."), call("bank__pay", {"cents": 5}, "call_pay")))


async def interrupt(tmp_path, run: str = "mcp:trip@0", seconds: float = INTERRUPTED_AFTER + 5) -> None:
    """Leave what a killed process leaves: a run that is not over, without a sign of life."""
    store = open_store(f"sqlite:///{tmp_path}/sessions.db")
    book = RunRecorder(store.runs, "ann")
    await book.begin(run, BEGUN)
    await book.add(run, (SAID,))
    book._pending[run].heartbeat.cancel()
    await store._engine.write(lambda cursor: cursor.execute("UPDATE runs SET alive = alive - ?", int(seconds)))
    await store.close()


async def runs_left(tmp_path) -> list[str]:
    store = open_store(f"sqlite:///{tmp_path}/sessions.db")
    rows = await store._engine.read(lambda cursor: cursor.fetch_all("SELECT id FROM runs"))
    await store.close()
    return [name for (name,) in rows]


def answer(received):
    return Answer(text=f"turn {len(received.request.turns)}")


@asynccontextmanager
async def stage(tmp_path, **mcp):
    """A gateway on the simulator; yields a function that sends a query, and the requests of the simulator."""
    async with dragoman.simulator.running(script=answer) as simulator:
        config = Config(
            server=ServerTable(log="off"),
            keys=(KeyTable(key="ann-secret", name="ann"), KeyTable(key="bob-secret", name="bob")),
            upstreams={"gemini": UpstreamTable(kind="gemini", base_url=simulator.base_url, api_key="k")},
            models={"gem": ("gemini/gemini-3.8-flash",)},
            sessions=SessionsTable(url=f"sqlite:///{tmp_path}/sessions.db"),
            mcp=McpTable(**mcp),
        )
        async with running(config, port=0, grace=1.0) as gateway:

            async def query(prompt, session, key="ann-secret", model="gem"):
                async with (
                    httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}, timeout=30) as http,
                    Client(streamable_http_client(f"{gateway.base_url}/mcp", http_client=http)) as client,
                ):
                    return await client.call_tool("query", {"prompt": prompt, "session_id": session, "model": model})

            yield query, simulator.requests


def test_the_next_call_continues_an_interrupted_one(tmp_path):
    async def scene():
        async with stage(tmp_path, system_prompt="Be brief.") as (query, requests):
            await interrupt(tmp_path)
            for prompt in ("Is it paid?", "And now?"):
                result = await query(prompt, "trip")
                assert result.content[0].text.startswith("turn")
            asked = [json.dumps(seen.json()) for seen in requests]
            for body in asked:
                assert body.count("Pay the bill.") == 1
                assert "this call was interrupted" in body
                assert "bank__pay" in body
                assert "An older instruction." not in body
            assert "Is it paid?" in asked[1]
            assert "And now?" in asked[1]
            assert await runs_left(tmp_path) == []

    asyncio.run(scene())


def test_another_owner_and_another_session_see_nothing_of_it(tmp_path):
    async def scene():
        async with stage(tmp_path) as (query, requests):
            await interrupt(tmp_path)
            await query("Hi.", "trip", key="bob-secret")
            await query("Hi.", "other")
            assert len(requests) == 2
            assert not any(b"Pay the bill." in seen.body for seen in requests)

    asyncio.run(scene())


def test_a_run_in_an_unclaimed_session_counts_as_interrupted(tmp_path):
    async def scene():
        async with stage(tmp_path) as (query, requests):
            await interrupt(tmp_path, seconds=0)
            assert not (await query("Is it paid?", "trip")).is_error
            assert requests[0].body.count(b"Pay the bill.") == 1
            assert await runs_left(tmp_path) == []

    asyncio.run(scene())


def test_a_call_that_fails_is_forgotten_by_the_next(tmp_path):
    async def scene():
        async with stage(tmp_path) as (query, _):
            assert (await query("Hi.", "trip", model="nowhere/x")).is_error
            assert not (await query("Hi.", "trip")).is_error
            assert await runs_left(tmp_path) == []

    asyncio.run(scene())
