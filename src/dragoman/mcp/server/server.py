"""The MCP server: its tools over HTTP and over standard input and output, and its errors.

A call of an unknown tool is a protocol error. Invalid arguments give a failed result that says where the error is and
what is expected. A tool's own error message is returned without the SDK's prefix. The SDK configures logging for the
whole process; that is undone here.
"""

import importlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, InputRequiredResult
from msgspec import Struct
from pydantic import ValidationError

from dragoman.core.problems import Problem
from dragoman.http.exchange import Exchange
from dragoman.mcp.server import query
from dragoman.mcp.server.search import SearchTools
from dragoman.mcp.server.service import Service, ToolCaller
from dragoman.mcp.server.tasks import TTL, Tasks, TaskTool
from dragoman.mcp.server.transports import HttpEndpoint, serve_stdio
from dragoman.tools.arguments import format_error, format_errors
from dragoman.wire.pointer import join


class ErrorReportingServer(MCPServer[Any]):
    """The SDK's server with clearer error messages."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Run a tool; reword the SDK's errors."""
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:
            raise UnexpectedToolError(f"{name} failed with an internal error; see the log") from error.__cause__
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError(f"{name} was not run: {await self._format_validation_errors(name, cause)}") from cause
            raise ToolError(str(cause) if isinstance(cause, ToolError) else str(error)) from cause

    async def _format_validation_errors(self, name: str, error: ValidationError) -> str:
        """List the validation errors with their locations; for a missing argument also its description."""
        schemas = {tool.name: tool.input_schema for tool in await self.list_tools()}
        properties: dict[str, Any] = schemas[name].get("properties", {})
        faults: list[str] = []
        for each in error.errors():
            reason, place = each["msg"], each["loc"]
            described = properties.get(str(place[0]), {}).get("description") if len(place) == 1 else None
            faults.append(format_error(join(place), f"{reason} (expected {described})" if described else reason))
        return format_errors(faults)


def reject_unknown_tools(server: MCPServer[Any]) -> ServerMiddleware[Any]:
    """Return a middleware that rejects calls of unknown tools and malformed arguments."""

    async def refuse(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/call":
            params = ctx.params or {}
            name, arguments = params.get("name"), params.get("arguments")
            names = [tool.name for tool in await server.list_tools()]
            if not isinstance(name, str):
                raise MCPError(
                    INVALID_PARAMS, f"params.name must be the name of a tool; available tools: {', '.join(names)}"
                )
            if name not in names:
                raise MCPError(INVALID_PARAMS, f"unknown tool {name!r}; available tools: {', '.join(names)}")
            if arguments is not None and not isinstance(arguments, dict):
                raise MCPError(INVALID_PARAMS, "params.arguments must be an object of arguments by name")
        return await call_next(ctx)

    return refuse


Mount = Callable[[MCPServer[Any]], None]
_FIXTURES_MODULE = "mcp_fixtures"
"""The module with the fixtures; it is part of the project's tests, not of the package."""


class Fixtures(Struct, frozen=True, kw_only=True):
    """What MCP's conformance suite expects of a server in addition to the gateway's own tools."""

    tasks: Mapping[str, TaskTool]
    tools: Sequence[Tool]
    mount: Mount
    mount_lower: Callable[[Server[Any]], None]


def load_fixtures() -> Fixtures:
    """Import the fixtures of the conformance suite, or raise a `Problem` if they are not on the Python path."""
    try:
        return importlib.import_module(_FIXTURES_MODULE).FIXTURES
    except ModuleNotFoundError:
        message = "[mcp] fixtures needs the `tests` folder of Dragoman's source on PYTHONPATH"
        raise Problem("unsupported", message, status=501) from None


_INSTRUCTIONS = (
    "`query` asks a model that has tools of its own and may take minutes; pass the session_id it returns to go on. "
    "`search` finds web pages and `fetch` reads one of them."
)


def build_server(
    mounts: Sequence[Mount], tasks: Tasks, *, version: str = "", fixtures: Fixtures | None = None
) -> MCPServer[Any]:
    """Build the server with the tools of the mounts, and the fixtures of the conformance suite if given."""
    server = _preserve_logging(
        lambda: ErrorReportingServer(
            "dragoman",
            "Dragoman",
            version=version,
            instructions=_INSTRUCTIONS,
            extensions=[tasks],
            tools=list(fixtures.tools) if fixtures else [],
        )
    )
    server.middleware.append(reject_unknown_tools(server))
    for mount in mounts:
        mount(server)
    if fixtures:
        fixtures.mount(server)
    return server


def configure_low_level(server: MCPServer[Any], *, max_body: int, fixtures: Fixtures | None = None) -> Server[Any]:
    """Return the SDK's low-level server, with its HTTP side configured.

    Authorisation happens earlier. Without fixtures, HTTP is stateless and any process may answer any request. With
    fixtures, which are the tools of the conformance suite, it has sessions: some of them send requests to the client
    during a call, as older revisions of MCP do.
    """
    server.streamable_http_app(
        stateless_http=fixtures is None,
        max_request_body_size=max_body,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    lower = server.session_manager.app
    if fixtures:
        fixtures.mount_lower(lower)
    return lower


def _preserve_logging(build: Callable[[], MCPServer[Any]]) -> MCPServer[Any]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    server = build()
    root.handlers[:] = handlers
    root.setLevel(level)
    return server


class McpApp:
    """Serves the MCP tools over HTTP and over standard input and output."""

    def __init__(
        self, service: Service, *, version: str, max_body: int, fixtures: Fixtures | None, retention: float
    ) -> None:
        self._query = query.Query(service)
        mounts = (self._query.mount, SearchTools(service).mount)
        ttl = min(TTL, retention) if retention else TTL
        tools = {query.NAME: self._query.task, **(fixtures.tasks if fixtures else {})}
        server = build_server(mounts, Tasks(service.job_runner, tools, ttl), version=version, fixtures=fixtures)
        self._low_level_server = configure_low_level(server, max_body=max_body, fixtures=fixtures)
        self._endpoint = HttpEndpoint(server)
        self._has_sessions = fixtures is not None

    async def handle_request(self, exchange: Exchange, owner: str, allows: Callable[[str], bool]) -> None:
        """Answer one request of an authorised caller."""
        if exchange.request.method != "POST" and not self._has_sessions:
            # Without sessions there is no separate event stream to open with GET, and no session to delete.
            await exchange.send(405, {"allow": "POST"})
            return
        await self._endpoint.handle_request(exchange, ToolCaller(owner=owner, allows=allows))

    async def serve_stdio(self) -> None:
        """Serve standard input and output until the input ends."""
        await serve_stdio(self._low_level_server)

    async def close(self) -> None:
        """Stop serving requests; the job runner continues the tasks."""
        await self._endpoint.close()
        await self._query.close()
