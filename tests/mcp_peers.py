"""Opens servers as a gateway does, and calls their tools as a loop does."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from dragoman.core.parts import Data, ToolCall, ToolResult
from dragoman.mcp.client import Abilities, Servers, open_servers
from dragoman.mcp.settings import ToolServer
from dragoman.tools import Executor

PEERS = Path(__file__).parent / "mcp" / "peers"


def plain(manner: str = "", **settings: Any) -> ToolServer:
    """The server without an SDK, over stdio."""
    return ToolServer(command=sys.executable, args=(str(PEERS / "plain.py"), manner), **settings)


class Visit:
    """Open servers and an executor of their tools."""

    def __init__(self, servers: Servers) -> None:
        self.servers = servers
        self.executor = Executor(servers.registry)

    async def call(self, name: str, arguments: Any = None) -> ToolResult:
        text = msgspec.json.encode(arguments or {}).decode()
        return await self.executor.execute(ToolCall(id="call_1", name=name, arguments=text))

    async def data(self, name: str, arguments: Any = None) -> Any:
        """The one JSON value that a call gives."""
        (part,) = (await self.call(name, arguments)).content
        assert isinstance(part, Data)
        return msgspec.json.decode(part.json)

    @property
    def status(self) -> Any:
        (status,) = self.servers.status()
        return status


def visit_servers(
    visit: Callable[[Visit], Awaitable[Any]], abilities: Abilities | None = None, **configured: ToolServer
) -> Any:
    """Open servers by their names, with the same abilities for all, and return what a visit to them gives."""

    async def run() -> Any:
        able = dict.fromkeys(configured, abilities or Abilities())
        async with open_servers(configured, abilities=able, patience=60) as servers:
            return await visit(Visit(servers))

    return asyncio.run(run())


async def eventually(happened: Callable[[], Any], seconds: float = 60.0) -> None:
    """Wait for what another process brings about."""
    async with asyncio.timeout(seconds):
        while not happened():  # noqa: ASYNC110  another process has no event to wait for
            await asyncio.sleep(0.01)


def text_of(result: ToolResult) -> str:
    return "\n".join(getattr(part, "text", "") for part in result.content)
