"""The door for MCP, in a gateway and on a pipe: opened by the first who comes, because the SDK is slow to load.

Who may come in is decided before, as for every path. What goes wrong before the SDK has a say is told as it would.
"""

import asyncio
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman import __version__
from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool
from dragoman.dialects.record import ErrorReply
from dragoman.gateway.record import Record
from dragoman.http.exchange import Exchange
from dragoman.interpreter.tool_kinds import tool_for
from dragoman.mcp.client import ServerStatus
from dragoman.server.agent_services import Bench
from dragoman.server.auth import Key
from dragoman.server.services import trouble_of
from dragoman.wire import json

if TYPE_CHECKING:
    from dragoman.mcp.server.server import McpApp


_SERVING = "dragoman.mcp.server.server"
_REFUSED = -32000
"""JSON-RPC leaves this number to servers."""
_WHO = "mcp"
_DAY = 86_400.0


class Door:
    """Opens the MCP server when somebody comes."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._opening = asyncio.Lock()
        self._serving: McpApp | None = None

    async def answer(self, exchange: Exchange, key: Key, record: Record) -> None:
        """Answer one request."""
        if key.tools:
            # What is asked for here has all tools: a key that may have some run must not get at the others this way.
            raise Problem("permission", "this key may have only some tools run, and so not ask here", status=403)
        serving = await self.opened()
        await serving.handle_request(exchange, key.name, key.allows)
        # What goes wrong before is told by way of a dialect that has errors.
        record.dialect = _WHO

    async def opened(self) -> "McpApp":
        """Return the server, after making it if nobody has."""
        async with self._opening:
            if self._serving is None:
                try:
                    await asyncio.to_thread(importlib.import_module, _SERVING)
                except ImportError as error:
                    raise Problem("unsupported", str(error), status=501) from None
                self._serving = self._made()
            return self._serving

    def health(self, *, known: bool) -> bytes:
        """Return how the gateway does, and the servers whose tools it runs."""
        return health(self._bench.toolbox.status(), known=known)

    async def close(self) -> None:
        """Close the server, if it was opened."""
        if self._serving is not None:
            await self._serving.close()

    def _made(self) -> "McpApp":
        from dragoman.mcp.server.server import McpApp, load_fixtures  # noqa: PLC0415
        from dragoman.mcp.server.service import Service, ServiceSettings  # noqa: PLC0415  the SDK is an extra

        bench = self._bench
        table = bench.config.mcp
        settings = ServiceSettings(
            model=bench.usual,
            search_model=table.search_model,
            system=table.system_prompt,
            max_turns=table.max_turns,
            seconds=table.seconds,
            destinations=table.destinations,
        )
        service = Service(
            settings=settings,
            model=lambda owner: bench.model(owner, _WHO),
            search_tool=self._search_tool,
            executor=bench.toolbox.executor,
            # What a search found often stands behind a redirect of the search's own.
            read_page=lambda url, owner: bench.toolbox.web.read(url, "anywhere", owner),
            conversations=bench.conversations(table.session_hours),
            carrier=bench.connected.carrier,
        )
        return McpApp(
            service,
            version=__version__,
            max_body=bench.config.server.limits.body,
            fixtures=load_fixtures() if table.fixtures else None,
            retention=bench.config.sessions.keep_days * _DAY,
        )

    def _search_tool(self, model: str) -> NativeTool | None:
        """Return what makes a model search, in the words of the upstream that answers for it."""
        return tool_for("search", self._bench.connected.gateway.routes.of(model)[0].upstream.dialect)


def refusal(problem: Problem) -> ErrorReply:
    """Return what a client is told that is not let in, or cannot be served."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": _REFUSED, "message": problem.message}}
    headers = {"content-type": "application/json"}
    if problem.status == 401:
        headers["www-authenticate"] = "Bearer"
    return ErrorReply(problem.status, headers, json.encode(error))


_HEALTHY = b'{"status":"ok"}'


def health(statuses: Sequence[ServerStatus], *, known: bool) -> bytes:
    """Return the answer to who asks; `known` if it may hear of the servers by name."""
    if not statuses:
        return _HEALTHY
    connected = sum(status.connected for status in statuses)
    servers: dict[str, Any] = {"configured": len(statuses), "connected": connected}
    if known:
        servers["servers"] = [_server(status, statuses) for status in statuses]
    return json.encode({"status": "ok", "tool_servers": servers})


def _server(status: ServerStatus, statuses: Sequence[ServerStatus]) -> dict[str, Any]:
    told = {
        "name": status.name,
        "connected": status.connected,
        "tools": len(status.tools),
        "blocked": [each.tool for each in status.blocked],
        "unusable": sorted(status.unusable),
    }
    return told if status.connected else {**told, "error": trouble_of(status.name, statuses)}
