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
from dragoman.interpreter.tool_kinds import find_tool_for
from dragoman.mcp.client import ServerStatus
from dragoman.server.agent_services import AgentServices
from dragoman.server.auth import Key
from dragoman.server.services import find_server_error
from dragoman.wire import json

if TYPE_CHECKING:
    from dragoman.mcp.server.server import McpApp


_SERVER_MODULE = "dragoman.mcp.server.server"
_REJECTED_CODE = -32000
"""JSON-RPC leaves this number to servers."""
_CLIENT_NAME = "mcp"
_DAY = 86_400.0


class McpEndpoint:
    """Opens the MCP server when somebody comes."""

    def __init__(self, services: AgentServices) -> None:
        self._services = services
        self._lock = asyncio.Lock()
        self._server: McpApp | None = None

    async def handle_request(self, exchange: Exchange, key: Key, record: Record) -> None:
        """Answer one request."""
        if key.tools:
            # What is asked for here has all tools: a key that may have some run must not get at the others this way.
            raise Problem("permission", "this key may have only some tools run, and so not ask here", status=403)
        serving = await self.open_server()
        await serving.handle_request(exchange, key.name, key.allows)
        # What goes wrong before is told by way of a dialect that has errors.
        record.dialect = _CLIENT_NAME

    async def open_server(self) -> "McpApp":
        """Return the server, after making it if nobody has."""
        async with self._lock:
            if self._server is None:
                try:
                    await asyncio.to_thread(importlib.import_module, _SERVER_MODULE)
                except ImportError as error:
                    raise Problem("unsupported", str(error), status=501) from None
                self._server = self._build_server()
            return self._server

    def render_health(self, *, shows_servers: bool) -> bytes:
        """Return how the gateway does, and the servers whose tools it runs."""
        return render_health(self._services.tool_services.list_statuses(), shows_servers=shows_servers)

    async def close(self) -> None:
        """Close the server, if it was opened."""
        if self._server is not None:
            await self._server.close()

    def _build_server(self) -> "McpApp":
        from dragoman.mcp.server.server import McpApp, load_fixtures  # noqa: PLC0415
        from dragoman.mcp.server.service import Service, ServiceSettings  # noqa: PLC0415  the SDK is an extra

        bench = self._services
        table = bench.config.mcp
        settings = ServiceSettings(
            model=bench.default_model,
            search_model=table.search_model,
            system=table.system_prompt,
            max_turns=table.max_turns,
            seconds=table.seconds,
            destinations=table.destinations,
        )
        service = Service(
            settings=settings,
            model=lambda owner: bench.build_model(owner, _CLIENT_NAME),
            search_tool=self._find_search_tool,
            executor=bench.tool_services.executor,
            # What a search found often stands behind a redirect of the search's own.
            read_page=lambda url, owner: bench.tool_services.web.read(url, "anywhere", owner),
            conversations=bench.build_conversations(table.session_hours),
            carrier=bench.gateway_services.carrier,
        )
        return McpApp(
            service,
            version=__version__,
            max_body=bench.config.server.limits.body,
            fixtures=load_fixtures() if table.fixtures else None,
            retention=bench.config.sessions.keep_days * _DAY,
        )

    def _find_search_tool(self, model: str) -> NativeTool | None:
        """Return what makes a model search, in the words of the upstream that answers for it."""
        return find_tool_for(
            "search", self._services.gateway_services.gateway.routes.find_targets(model)[0].upstream.dialect
        )


def build_rejection(problem: Problem) -> ErrorReply:
    """Return what a client is told that is not let in, or cannot be served."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": _REJECTED_CODE, "message": problem.message}}
    headers = {"content-type": "application/json"}
    if problem.status == 401:
        headers["www-authenticate"] = "Bearer"
    return ErrorReply(problem.status, headers, json.encode(error))


_HEALTHY = b'{"status":"ok"}'


def render_health(statuses: Sequence[ServerStatus], *, shows_servers: bool) -> bytes:
    """Return the answer to who asks; `known` if it may hear of the servers by name."""
    if not statuses:
        return _HEALTHY
    connected = sum(status.connected for status in statuses)
    servers: dict[str, Any] = {"configured": len(statuses), "connected": connected}
    if shows_servers:
        servers["servers"] = [_render_server(status, statuses) for status in statuses]
    return json.encode({"status": "ok", "tool_servers": servers})


def _render_server(status: ServerStatus, statuses: Sequence[ServerStatus]) -> dict[str, Any]:
    told = {
        "name": status.name,
        "connected": status.connected,
        "tools": len(status.tools),
        "blocked": [each.tool for each in status.blocked],
        "unusable": sorted(status.unusable),
    }
    return told if status.connected else {**told, "error": find_server_error(status.name, statuses)}
