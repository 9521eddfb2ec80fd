"""The MCP server: its tools over HTTP and on a pipe, and its errors.

A call of a tool that is not offered is an error of the protocol. Arguments that do not fit are a failed result that
says where and what is expected; a tool's own message is returned without words of the SDK. The SDK would set up logging
for the whole process; that is undone.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, InputRequiredResult
from pydantic import ValidationError

from dragoman.http.exchange import Exchange
from dragoman.mcp.server import query
from dragoman.mcp.server.fixtures import asking, contents, jobs, reading, rounds
from dragoman.mcp.server.http import Endpoint
from dragoman.mcp.server.looking import Looking
from dragoman.mcp.server.pipe import serve_pipe
from dragoman.mcp.server.service import Service, ToolCaller
from dragoman.mcp.server.tasks import TTL, Tasks
from dragoman.tools.arguments import fault, listed, pointer

_INSTRUCTIONS = (
    "`query` asks a model that has tools of its own and may take minutes; pass the session_id it returns to go on. "
    "`search` finds web pages and `fetch` reads one of them."
)


class SpeakingServer(MCPServer[Any]):
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
                raise ToolError(f"{name} was not run: {await self._misfits(name, cause)}") from cause
            raise ToolError(str(cause) if isinstance(cause, ToolError) else str(error)) from cause

    async def _misfits(self, name: str, error: ValidationError) -> str:
        """Say what does not fit, each with its place, and of what is missing what it is."""
        schemas = {tool.name: tool.input_schema for tool in await self.list_tools()}
        properties: dict[str, Any] = schemas[name].get("properties", {})
        faults: list[str] = []
        for each in error.errors():
            words, place = each["msg"], each["loc"]
            described = properties.get(str(place[0]), {}).get("description") if len(place) == 1 else None
            faults.append(fault(pointer(place), f"{words} (expected {described})" if described else words))
        return listed(faults)


def refuse_unknown(server: MCPServer[Any]) -> ServerMiddleware[Any]:
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


def build(mounts: Sequence[Mount], tasks: Tasks, *, version: str = "", fixtures: bool = False) -> MCPServer[Any]:
    """Return a server with what the mounts offer, and the fixtures of the conformance suite if those are wanted."""
    server = _quietly(
        lambda: SpeakingServer(
            "dragoman",
            "Dragoman",
            version=version,
            instructions=_INSTRUCTIONS,
            extensions=[tasks],
            tools=[contents.schema_tool()] if fixtures else [],
        )
    )
    server.middleware.append(refuse_unknown(server))
    for mount in mounts:
        mount(server)
    if fixtures:
        for room in (contents, asking, rounds, reading, jobs):
            room.mount(server)
    return server


def beneath(server: MCPServer[Any], *, largest: int, fixtures: bool = False) -> Server[Any]:
    """Return the SDK's lower server, with the HTTP side of it set up.

    Who may come in is decided before. Without fixtures no request needs another: any process may answer it. The suite
    also has tools that ask the client in the middle of a call, as the older era does, and those need a session.
    """
    server.streamable_http_app(
        stateless_http=not fixtures,
        max_request_body_size=largest,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    lower = server.session_manager.app
    if fixtures:
        reading.mount_older(lower)
    return lower


def _quietly(make: Callable[[], MCPServer[Any]]) -> MCPServer[Any]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    made = make()
    root.handlers[:] = handlers
    root.setLevel(level)
    return made


class Serving:
    """Serves the tools."""

    def __init__(self, service: Service, *, version: str, largest: int, fixtures: bool, kept: float) -> None:
        self._query = query.Query(service)
        mounts = (self._query.mount, Looking(service).mount)
        ttl = min(TTL, kept) if kept else TTL
        tools = {query.NAME: self._query.task, **(jobs.TASKS if fixtures else {})}
        server = build(mounts, Tasks(service.carrier, tools, ttl), version=version, fixtures=fixtures)
        self._lower = beneath(server, largest=largest, fixtures=fixtures)
        self._endpoint = Endpoint(server)
        self._in_sessions = fixtures

    async def answer(self, exchange: Exchange, owner: str, allows: Callable[[str], bool]) -> None:
        """Answer one request for a caller that was let in."""
        if exchange.request.method != "POST" and not self._in_sessions:
            # Without sessions nothing is ever said on a stream of its own, and there is nothing to end.
            await exchange.send(405, {"allow": "POST"})
            return
        await self._endpoint.answer(exchange, ToolCaller(owner=owner, allows=allows))

    async def pipe(self) -> None:
        """Serve standard input and output until the input ends."""
        await serve_pipe(self._lower)

    async def close(self) -> None:
        """Let nobody in any more; tasks are carried by somebody else."""
        await self._endpoint.close()
        await self._query.close()
