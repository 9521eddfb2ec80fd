"""What a host is told of a call that cannot be run, in words that its model can act on.

Rules: a call of a tool that is not offered, or that is none, is an error of the protocol. Arguments that do not fit are
a failed result that says where and what is expected; what a tool itself says is told without words of the SDK's around.
"""

from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, InputRequiredResult
from pydantic import ValidationError

from dragoman.tools.arguments import fault, listed, pointer


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
