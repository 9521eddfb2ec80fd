"""The SDK's HTTP side in a running gateway: begun by the first request, ended with the gateway.

Rules: the SDK wants its rooms opened and closed by one task, and requests come in many; one task of ours does nothing
else.
"""

import asyncio
from typing import Any

from mcp.server.mcpserver import MCPServer

from dragoman.http.exchange import Exchange
from dragoman.mcp.server.asgi import answered
from dragoman.mcp.server.caller import Caller


class Endpoint:
    """Answers the requests of one path."""

    def __init__(self, server: MCPServer[Any]) -> None:
        self._manager = server.session_manager
        self._opened: asyncio.Future[None] | None = None
        self._closing = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None

    async def answer(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one request for a caller that was let in."""
        if self._owner is None:
            self._opened = asyncio.get_running_loop().create_future()
            self._owner = asyncio.create_task(self._own(self._opened))
        if self._opened is not None:
            await asyncio.shield(self._opened)
        await answered(self._manager.handle_request, exchange, caller)

    async def close(self) -> None:
        """Close the rooms."""
        self._closing.set()
        if self._owner is not None:
            await self._owner

    async def _own(self, opened: asyncio.Future[None]) -> None:
        async with self._manager.run():
            opened.set_result(None)
            await self._closing.wait()
