"""The MCP endpoint: created on the first request, because the SDK is slow to load.

Authorization happens before, as for every path. Errors before the SDK handles a request have the SDK's format.
"""

import asyncio
import importlib
from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dragoman import __version__
from dragoman.core.problems import Problem
from dragoman.core.response import Response
from dragoman.dialects.record import ErrorReply
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.toolset import build_limits
from dragoman.gateway.record import Record
from dragoman.http.exchange import Exchange
from dragoman.mcp.client import ServerStatus
from dragoman.server.agent_services import AgentServices
from dragoman.server.auth import Key
from dragoman.server.services import find_agent_price, find_server_error
from dragoman.wire import json

if TYPE_CHECKING:
    from dragoman.mcp.server.server import McpApp
    from dragoman.mcp.server.service import QueryAgent


_SERVER_MODULE = "dragoman.mcp.server.server"
_REJECTED_CODE = -32000
"""A JSON-RPC error code reserved for servers."""
_CLIENT_NAME = "mcp"
_DAY = 86_400.0


class McpEndpoint:
    """Creates the MCP server on the first request and forwards requests to it."""

    def __init__(self, services: AgentServices) -> None:
        self._services = services
        self._lock = asyncio.Lock()
        self._server: McpApp | None = None

    async def handle_request(self, exchange: Exchange, key: Key, record: Record) -> None:
        """Answer one MCP request."""
        if key.tools:
            # MCP gives access to all tools, so a key that is restricted to some must not use it.
            raise Problem("permission", "a key restricted to some tools cannot use /mcp", status=403)
        server = await self.open_server()
        await server.handle_request(exchange, key.name, key.allows)
        # Not earlier: an error before this point is rendered by the record's dialect.
        record.dialect = _CLIENT_NAME

    async def open_server(self) -> "McpApp":
        """Return the MCP server; create it on the first call."""
        async with self._lock:
            if self._server is None:
                try:
                    await asyncio.to_thread(importlib.import_module, _SERVER_MODULE)
                except ImportError as error:
                    raise Problem("unsupported", str(error), status=501) from None
                self._server = self._build_server()
            return self._server

    def render_health(self, *, shows_servers: bool) -> bytes:
        """Render the health of the gateway and its MCP servers as JSON."""
        return render_health(self._services.tool_services.list_statuses(), shows_servers=shows_servers)

    async def close(self) -> None:
        """Close the server, if it was opened."""
        if self._server is not None:
            await self._server.close()

    def _build_server(self) -> "McpApp":
        from dragoman.mcp.server.server import McpApp, load_fixtures  # noqa: PLC0415
        from dragoman.mcp.server.service import Service  # noqa: PLC0415  the SDK is an extra

        services = self._services
        table = services.config.mcp
        service = Service(
            settings=replace(table, model=services.default_model),
            model=lambda owner: services.build_model(owner, _CLIENT_NAME),
            search_tool=self._services.gateway_services.gateway.routes.find_search_tool,
            list_pages=_list_pages,
            find_agent=self._find_agent,
            executor=services.tool_services.executor,
            # URLs in search results are often redirects through the search engine's own host.
            read_page=lambda url, owner: services.tool_services.web.read(url, "anywhere", owner),
            conversations=services.build_conversations(table.session_hours),
            job_runner=services.gateway_services.job_runner,
        )
        return McpApp(
            service,
            version=__version__,
            max_body=services.config.server.limits.body,
            fixtures=load_fixtures() if table.fixtures else None,
            retention=services.config.sessions.keep_days * _DAY,
        )

    def _find_agent(self, name: str) -> "QueryAgent | None":
        from dragoman.mcp.server.service import QueryAgent  # noqa: PLC0415  the SDK is an extra

        services, agent = self._services, self._services.config.agents.get(name)
        if agent is None:
            return None
        return QueryAgent(
            model=agent.model,
            system=agent.system,
            registry=services.build_agent_registry().select_patterns(agent.tools),
            limits=build_limits(agent.limits),
            destinations=agent.destinations,
            price=find_agent_price(services.config, name, services.gateway_services.gateway.routes),
            compaction=agent.compaction,
        )


def _list_pages(response: Response) -> list[tuple[str, str]]:
    extras = response.extras
    dialect = dialect_named(extras.dialect) if extras is not None else None
    if extras is None or dialect is None or dialect.list_pages is None:
        return []
    return dialect.list_pages(extras.fields)


def build_rejection(problem: Problem) -> ErrorReply:
    """Render an error as a JSON-RPC response, for a client that is not authorized or cannot be served."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": _REJECTED_CODE, "message": problem.message}}
    headers = {"content-type": "application/json"}
    if problem.status == 401:
        headers["www-authenticate"] = "Bearer"
    if problem.retry_after is not None:
        headers["retry-after"] = str(ceil(problem.retry_after))
    return ErrorReply(problem.status, headers, json.encode(error))


_HEALTHY = b'{"status":"ok"}'


def render_health(statuses: Sequence[ServerStatus], *, shows_servers: bool) -> bytes:
    """Render the health response; `shows_servers` adds the MCP servers by name, for authorized clients."""
    if not statuses:
        return _HEALTHY
    connected = sum(status.connected for status in statuses)
    servers: dict[str, Any] = {"configured": len(statuses), "connected": connected}
    if shows_servers:
        servers["servers"] = [_render_server(status, statuses) for status in statuses]
    return json.encode({"status": "ok", "tool_servers": servers})


def _render_server(status: ServerStatus, statuses: Sequence[ServerStatus]) -> dict[str, Any]:
    rendered = {
        "name": status.name,
        "connected": status.connected,
        "tools": len(status.tools),
        "blocked": [each.tool for each in status.blocked],
        "unusable": sorted(status.unusable),
    }
    if status.connected:
        return rendered
    return {**rendered, "error": find_server_error(status.name, statuses), "failures": status.failures}
