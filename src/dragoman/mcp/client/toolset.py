"""Turn the tools of one MCP server into handlers.

Rules: definitions and results are forwarded unchanged. A server's hints about its tools are used only if the server is
trusted, and then only to mark a tool as read-only. A tool whose definition has changed is still listed with the
accepted definition, but its calls are refused.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

import msgspec
from msgspec import structs

from dragoman.core.parts import Text, ToolResult
from dragoman.core.request import Tool
from dragoman.mcp.bridge import result_from
from dragoman.mcp.client.connection import UnavailableError
from dragoman.mcp.client.status import BlockedTool
from dragoman.mcp.client.tool_list import Pins, ToolList, fingerprint_tool, make_tool_name
from dragoman.mcp.sdk import MCPError, ProgressFnT, ValidationError, types
from dragoman.mcp.settings import ToolServer
from dragoman.tools import Handler, Registry, ToolDefinitionError, ToolFailure, reporter
from dragoman.tools.arguments import InvalidArgumentsError, read_arguments

_LOG = logging.getLogger("dragoman.mcp")
_UNSUPPORTED_REQUESTS = frozenset({"Elicitation not supported", "Sampling not supported", "List roots not supported"})
CallTool = Callable[[str, Any, ProgressFnT | None], Awaitable[types.CallToolResult]]


class ServerToolset:
    """The tools that a server offers, and which of them are used."""

    def __init__(self, server: str, settings: ToolServer, call_tool: CallTool) -> None:
        self.handlers: dict[str, Handler] = {}
        """Handlers by the server's own tool names."""
        self.fingerprints: dict[str, str] = {}
        self.blocked: tuple[BlockedTool, ...] = ()
        self.unusable: dict[str, str] = {}
        self._server = server
        self._settings = settings
        self._call_tool = call_tool
        self._pins = Pins(settings.pinned)
        self._tool_list = ToolList([], {})

    def update(self, tool_list: ToolList) -> None:
        """Replace the tools with those of a new list."""
        before, blocked = {each.tool: each.found for each in self.blocked}, list[BlockedTool]()
        known, self.handlers = self.handlers, {}
        self._tool_list, self.fingerprints = tool_list, {}
        self._report_rejected(tool_list)
        for tool in sorted(tool_list.tools, key=lambda tool: tool.name):
            if not self._is_offered(tool.name):
                continue
            found = fingerprint_tool(tool)
            if self._pins.admit(tool.name, found):
                self._add_handler(tool, found)
                continue
            handler = known.get(tool.name)
            if handler is not None:
                self.handlers[tool.name] = structs.replace(handler, run=_make_refusal(handler.name))
            name = make_tool_name(self._server, tool.name)
            accepted = self._pins.get_accepted(tool.name)
            blocked.append(BlockedTool(tool=tool.name, name=name, accepted=accepted, found=found))
            if before.get(tool.name) != found:
                _LOG.warning(
                    "tool %s is blocked: its definition changed from %s to %s; accept it, or pin it with `pinned`",
                    name,
                    accepted or "none",
                    found,
                )
        self.blocked = tuple(blocked)

    def accept(self, tool: str, found: str) -> None:
        """Accept the current definition of a blocked tool; `found` is the hash of the definition that was reviewed."""
        if not any((each.tool, each.found) == (tool, found) for each in self.blocked):
            raise ValueError(f"{self._server} has no blocked tool {tool!r} with the hash {found}: list its tools again")
        self._pins.accept(tool, found)
        self.update(self._tool_list)

    def _is_offered(self, tool: str) -> bool:
        allow, deny = self._settings.allow, self._settings.deny
        return (not allow or _matches(tool, allow)) and not _matches(tool, deny)

    def _report_rejected(self, tool_list: ToolList) -> None:
        before, self.unusable = self.unusable, {}
        for tool, reason in tool_list.rejected.items():
            if self._is_offered(tool):
                self.unusable[tool] = reason
                if before.get(tool) != reason:
                    _LOG.warning("a tool of MCP server %s is not offered: %s: %s", self._server, tool, reason)

    def _add_handler(self, tool: types.Tool, found: str) -> None:
        if tool.name in self.handlers:
            self.unusable[tool.name] = "the name is listed twice; the first entry is used"
            return
        try:
            handler = self._build_handler(tool)
            Registry(handler)  # raises if models cannot be offered this tool
        except ToolDefinitionError as error:
            self.unusable[tool.name] = str(error)
            _LOG.warning("a tool of MCP server %s is not offered: %s", self._server, error)
            return
        self.handlers[tool.name] = handler
        self.fingerprints[tool.name] = found

    def _build_handler(self, tool: types.Tool) -> Handler:
        trusted = self._settings.trusted
        harmless = trusted and tool.annotations is not None and bool(tool.annotations.read_only_hint)
        return Handler(
            definition=Tool(
                name=make_tool_name(self._server, tool.name),
                description=tool.description or tool.title or "",
                parameters=msgspec.json.encode(tool.input_schema),
            ),
            run=_ServerTool(self._server, tool, self._call_tool),
            timeout=self._settings.timeout,
            side_effects=not harmless,
            untrusted=not trusted,
            sends_out=not (trusted or self._settings.local),
        )


class _ServerTool:
    """Calls one tool of a server."""

    def __init__(self, server: str, tool: types.Tool, call_tool: CallTool) -> None:
        self._server = server
        self._tool = tool
        self._call_tool = call_tool

    async def __call__(self, arguments: Any) -> ToolResult:
        report_progress = reporter()

        async def report(progress: float, total: float | None, message: str | None) -> None:
            if report_progress is not None:
                report_progress(progress, total, message or "")

        try:
            result = await self._call_tool(self._tool.name, arguments, None if report_progress is None else report)
        except UnavailableError as error:
            raise ToolFailure(
                f"The server {self._server} is not available: {error}. Go on without it, or try again later."
            ) from None
        except MCPError as error:
            raise ToolFailure(self._describe_error(error)) from None
        except ValidationError:
            raise ToolFailure(f"The server {self._server} answered with what is no result. Go on without it.") from None
        converted = result_from(result)
        note = "" if result.is_error else self._check_output(result)
        return structs.replace(converted, content=(*converted.content, Text(text=note))) if note else converted

    def _describe_error(self, error: MCPError) -> str:
        if error.message in _UNSUPPORTED_REQUESTS:
            return (
                f"The tool asks back before it answers, which is not supported here ({error.message}). Do without it."
            )
        if error.code == types.CONNECTION_CLOSED:
            return f"The server {self._server} ended while the tool ran, which may or may not have done what was asked."
        return f"The server {self._server} did not run the tool: {error.message} ({error.code})"

    def _check_output(self, result: types.CallToolResult) -> str:
        """Describe how the output violates the declared schema; "" if it does not, or if it cannot be checked."""
        schema = self._tool.output_schema
        if not schema or schema.get("type") != "object":
            return ""
        output: Any = result.structured_content
        if not isinstance(output, dict):
            return "[no structured output came, though the server declares one]"
        text = msgspec.json.encode(cast("Any", output)).decode()
        try:
            read_arguments(Tool(name=self._tool.name, parameters=msgspec.json.encode(schema)), text)
        except InvalidArgumentsError as error:
            reason = str(error).replace("in the arguments", "in the output", 1)
            return f"[the structured output is not what the server declares: {reason}]"
        except ToolDefinitionError as error:
            _LOG.debug("cannot validate the output of %s: %s", self._tool.name, error)
        return ""


def _make_refusal(name: str) -> Callable[[Any], Awaitable[ToolResult]]:
    async def refuse(_: Any) -> ToolResult:
        raise ToolFailure(
            f"{name} is blocked: its server changed what the tool is after it was accepted. Go on without it."
        )

    return refuse


def _matches(tool: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)
