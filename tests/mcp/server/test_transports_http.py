"""The SDK behind our own HTTP server: both eras, streams, clients that leave."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

import httpx2
import pytest
from mcp import Client
from mcp.server.mcpserver import Context, MCPServer

from dragoman.http.exchange import Exchange
from dragoman.http.server import listen
from dragoman.mcp.server.server import build_server, configure_low_level
from dragoman.mcp.server.service import ToolCaller, caller_of
from dragoman.mcp.server.tasks import Tasks
from dragoman.mcp.server.transports import HttpEndpoint


class Stage:
    """A server with a few tools, and what happened to them."""

    def __init__(self) -> None:
        self.url = ""
        self.begun = asyncio.Event()
        self.left = asyncio.Event()

    def mount(self, server: MCPServer[Any]) -> None:
        async def whose(ctx: Context[Any, Any]) -> str:
            """Tell whose call it is."""
            return caller_of(ctx.request_context).owner

        async def slowly(ctx: Context[Any, Any]) -> str:
            """Tell how far it is."""
            for done in range(3):
                await ctx.report_progress(done, 3, f"step {done}")
            return "x" * 200_000

        async def hang() -> str:
            """Never answer."""
            self.begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.left.set()
            return ""

        for tool in (whose, slowly, hang):
            server.add_tool(tool, structured_output=False)


@asynccontextmanager
async def open_stage() -> AsyncGenerator[Stage]:
    stage = Stage()
    server = build_server([stage.mount], Tasks(Mock(), {}))
    configure_low_level(server, max_body=1 << 20)
    endpoint = HttpEndpoint(server)

    async def handle(exchange: Exchange) -> None:
        await endpoint.handle_request(exchange, ToolCaller(owner="ann"))

    async with listen(handle, grace=1.0) as http:
        stage.url = f"{http.base_url}/mcp"
        yield stage
    await endpoint.close()


@pytest.mark.parametrize("era", ["legacy", "2026-07-28", "auto"])
def test_a_client_of_each_revision_calls_a_tool_and_gets_progress(era):
    async def scene() -> None:
        async with open_stage() as stage, Client(stage.url, mode=era) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["whose", "slowly", "hang"]
            result = await client.call_tool("whose", {})
            assert result.content[0].text == "ann"
            collected: list[Any] = []

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                collected.append((progress, total, message))

            result = await client.call_tool("slowly", {}, progress_callback=hear)
            assert len(result.content[0].text) == 200_000
            assert collected == [(0, 3, "step 0"), (1, 3, "step 1"), (2, 3, "step 2")]

    asyncio.run(scene())


def test_a_client_that_stops_waiting_stops_the_tool():
    async def scene() -> None:
        async with open_stage() as stage, Client(stage.url, mode="2026-07-28") as client:
            call = asyncio.create_task(client.call_tool("hang", {}))
            await stage.begun.wait()
            call.cancel()
            async with asyncio.timeout(20):
                await stage.left.wait()

    asyncio.run(scene())


def test_a_client_of_the_older_era_that_hangs_up_stops_the_tool():
    async def scene() -> None:
        async with open_stage() as stage:
            async with Client(stage.url, mode="legacy") as client:
                call = asyncio.create_task(client.call_tool("hang", {}))
                await stage.begun.wait()
                call.cancel()
            async with asyncio.timeout(20):
                await stage.left.wait()

    asyncio.run(scene())


def test_many_clients_are_served_at_once():
    async def scene() -> None:
        async with open_stage() as stage:

            async def one() -> str:
                async with Client(stage.url) as client:
                    return (await client.call_tool("whose", {})).content[0].text

            assert await asyncio.gather(*(one() for _ in range(8))) == ["ann"] * 8

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"jsonrpc": "2.0", "id": None, "method": "tools/list"}, "a request needs an id"),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "tools/list"}, "a request needs an id"),
        ({"jsonrpc": "2.0", "method": "tools/list"}, "a request needs an id"),
        ({"id": 1, "method": "tools/list"}, '"jsonrpc" must be "2.0"'),
        ([{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}], "Expected `object`, got `array`"),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [1]}, "params"),
        ({"jsonrpc": "2.0", "id": "1", "method": "tools/list"}, ""),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, ""),
    ],
)
def test_an_invalid_body_is_rejected_and_never_treated_as_a_notification(body, words):
    async def scene() -> None:
        async with open_stage() as stage, httpx2.AsyncClient() as client:
            accept = {"accept": "application/json, text/event-stream"}
            reply = await client.post(stage.url, json=body, headers=accept)
            if not words:
                assert reply.status_code in (200, 202)
                return
            result = reply.json()
            assert (reply.status_code, result["id"], result["error"]["code"]) == (400, None, -32600)
            assert words in result["error"]["message"]

    asyncio.run(scene())
