"""The MCP server: its tools over HTTP and on a pipe, and its errors.

A call of a tool that is not offered is an error of the protocol. Arguments that do not fit are a failed result that
says where and what is expected; a tool's own message is returned without words of the SDK. The SDK would set up logging
for the whole process; that is undone.
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
from dragoman.mcp.server.http import HttpEndpoint
from dragoman.mcp.server.looking import SearchTools
from dragoman.mcp.server.pipe import serve_stdio
from dragoman.mcp.server.service import Service, ToolCaller
from dragoman.mcp.server.tasks import TTL, Tasks, TaskTool
from dragoman.tools.arguments import format_error, format_errors, format_pointer


class ErrorReportingServer(MCPServer[Any]):
    """The SDK's server, with our own words for what goes wrong."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Run a tool."""
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:
            raise UnexpectedToolError(f"{name} failed, for a reason that stands in the log") from error.__cause__
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError(f"{name} was not run: {await self._format_validation_errors(name, cause)}") from cause
            raise ToolError(str(cause) if isinstance(cause, ToolError) else str(error)) from cause

    async def _format_validation_errors(self, name: str, error: ValidationError) -> str:
        """Say what does not fit, each with its place, and of what is missing what it is."""
        schemas = {tool.name: tool.input_schema for tool in await self.list_tools()}
        properties: dict[str, Any] = schemas[name].get("properties", {})
        faults: list[str] = []
        for each in error.errors():
            words, place = each["msg"], each["loc"]
            described = properties.get(str(place[0]), {}).get("description") if len(place) == 1 else None
            faults.append(
                format_error(format_pointer(place), f"{words} (expected {described})" if described else words)
            )
        return format_errors(faults)


def reject_unknown_tools(server: MCPServer[Any]) -> ServerMiddleware[Any]:
    """Return what looks at each call before anybody else does."""

    async def refuse(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/call":
            params = ctx.params or {}
            name, arguments = params.get("name"), params.get("arguments")
            names = [tool.name for tool in await server.list_tools()]
            if not isinstance(name, str):
                raise MCPError(INVALID_PARAMS, f"params.name must be the name of a tool; there are {', '.join(names)}")
            if name not in names:
                raise MCPError(INVALID_PARAMS, f"there is no tool named {name!r}; there are {', '.join(names)}")
            if arguments is not None and not isinstance(arguments, dict):
                raise MCPError(INVALID_PARAMS, "params.arguments must be an object: the arguments by their names")
        return await call_next(ctx)

    return refuse


Mount = Callable[[MCPServer[Any]], None]
_FIXTURES_MODULE = "mcp_fixtures"
"""The module with the fixtures: part of the project's tests, not of the package."""


class Fixtures(Struct, frozen=True, kw_only=True):
    """What MCP's conformance suite expects of a server beside the gateway's own tools."""

    tasks: Mapping[str, TaskTool]
    tools: Sequence[Tool]
    mount: Mount
    mount_lower: Callable[[Server[Any]], None]


def load_fixtures() -> Fixtures:
    """Import the fixtures of the conformance suite, or raise a `Problem` if they are not on the Python path."""
    try:
        return importlib.import_module(_FIXTURES_MODULE).FIXTURES
    except ModuleNotFoundError:
        message = "[mcp] fixtures needs the folder tests of Dragoman's source on PYTHONPATH"
        raise Problem("unsupported", message, status=501) from None


_INSTRUCTIONS = (
    "`query` asks a model that has tools of its own and may take minutes; pass the session_id it returns to go on. "
    "`search` finds web pages and `fetch` reads one of them."
)


def build_server(
    mounts: Sequence[Mount], tasks: Tasks, *, version: str = "", fixtures: Fixtures | None = None
) -> MCPServer[Any]:
    """Return a server with what the mounts offer, and the fixtures of the conformance suite if there are any."""
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
    """Return the SDK's lower server, with the HTTP side of it set up.

    Who may come in is decided before. Without fixtures no request needs another: any process may answer it. The suite
    also has tools that ask the client in the middle of a call, as the older era does, and those need a session.
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
    made = build()
    root.handlers[:] = handlers
    root.setLevel(level)
    return made


class McpApp:
    """Serves the tools."""

    def __init__(
        self, service: Service, *, version: str, max_body: int, fixtures: Fixtures | None, retention: float
    ) -> None:
        self._query = query.Query(service)
        mounts = (self._query.mount, SearchTools(service).mount)
        ttl = min(TTL, retention) if retention else TTL
        tools = {query.NAME: self._query.task, **(fixtures.tasks if fixtures else {})}
        server = build_server(mounts, Tasks(service.carrier, tools, ttl), version=version, fixtures=fixtures)
        self._low_level_server = configure_low_level(server, max_body=max_body, fixtures=fixtures)
        self._endpoint = HttpEndpoint(server)
        self._has_sessions = fixtures is not None

    async def handle_request(self, exchange: Exchange, owner: str, allows: Callable[[str], bool]) -> None:
        """Answer one request for a caller that was let in."""
        if exchange.request.method != "POST" and not self._has_sessions:
            # Without sessions nothing is ever said on a stream of its own, and there is nothing to end.
            await exchange.send(405, {"allow": "POST"})
            return
        await self._endpoint.handle_request(exchange, ToolCaller(owner=owner, allows=allows))

    async def serve_stdio(self) -> None:
        """Serve standard input and output until the input ends."""
        await serve_stdio(self._low_level_server)

    async def close(self) -> None:
        """Let nobody in any more; tasks are carried by somebody else."""
        await self._endpoint.close()
        await self._query.close()
