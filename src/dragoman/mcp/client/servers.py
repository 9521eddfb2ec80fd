"""Manage all configured MCP servers: one registry with their tools, and the status of each.

Rules: a disconnected server keeps its tools, and their calls fail at once, so that a conversation that uses them
continues. Tools are sorted by name, whichever server connects first, because the model's prompt cache depends on the
order.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from dragoman.mcp.client.status import NO_ABILITIES, Abilities, ServerStatus
from dragoman.mcp.settings import ToolServer
from dragoman.tasks import run_all, start_task
from dragoman.tools import Handler, Registry

if TYPE_CHECKING:
    from dragoman.mcp.client.connection import ServerConnection
    from dragoman.mcp.client.tool_list import ToolList
    from dragoman.mcp.client.toolset import ServerToolset

PATIENCE = 10.0


class _Member(Struct, frozen=True):
    connection: "ServerConnection"
    tools: "ServerToolset"


class Servers:
    """The external MCP servers that are open."""

    def __init__(
        self, configured: Mapping[str, ToolServer], registry: Registry, abilities: Mapping[str, Abilities]
    ) -> None:
        self._abilities = abilities
        self.registry = registry
        """Contains the tools of all servers, and is updated when they change."""
        self._published: dict[str, tuple[str, str]] = {}
        self._conflicts: dict[str, dict[str, str]] = {}
        self._members = {name: self._build_member(name, settings) for name, settings in configured.items()}

    def _build_member(self, name: str, settings: ToolServer) -> _Member:
        from dragoman.mcp.client.connection import ServerConnection  # noqa: PLC0415  the SDK is slow to load, and may be missing
        from dragoman.mcp.client.toolset import ServerToolset  # noqa: PLC0415

        link = ServerConnection(name, settings, partial(self._on_tools, name), self._abilities.get(name, NO_ABILITIES))
        return _Member(link, ServerToolset(name, settings, link.call))

    def _on_tools(self, name: str, tool_list: "ToolList") -> None:
        self._members[name].tools.update(tool_list)
        self._publish()

    def _publish(self) -> None:
        """Replace the servers' tools in the registry with the current ones."""
        gone, self._published, self._conflicts = tuple(self._published), {}, {}
        others = {handler.name for handler in self.registry} - set(gone)
        found: dict[str, Handler] = {}
        for server, member in self._members.items():
            for tool, handler in member.tools.handlers.items():
                if handler.name in found or handler.name in others:
                    self._conflicts.setdefault(server, {})[tool] = f"another tool already has the name {handler.name}"
                    continue
                found[handler.name] = handler
                self._published[handler.name] = (server, tool)
        self.registry.exchange(gone, [found[name] for name in sorted(found)])

    def origin(self, name: str) -> tuple[str, str] | None:
        """Return the server, and its own name for the tool that models call `name`; None if it is no server's tool."""
        return self._published.get(name)

    def status(self) -> tuple[ServerStatus, ...]:
        """Return the status of each server."""
        return tuple(self._build_status(name, member) for name, member in self._members.items())

    def _build_status(self, name: str, member: _Member) -> ServerStatus:
        link, tools = member.connection, member.tools
        return ServerStatus(
            name=name,
            transport="stdio" if link.settings.command else "http",
            connected=link.is_connected,
            protocol=link.protocol,
            server=link.server,
            tools={
                offered: tools.fingerprints.get(tool, "")
                for offered, (server, tool) in sorted(self._published.items())
                if server == name
            },
            blocked=tools.blocked,
            unusable={**tools.unusable, **self._conflicts.get(name, {})},
            error="" if link.is_connected else link.error or "not connected yet",
            failures=0 if link.is_connected else link.failures,
        )

    def accept(self, server: str, tool: str, found: str) -> None:
        """Accept the current definition of a blocked tool; the status of its server lists all three arguments.

        The acceptance lasts as long as these servers are open. To keep it, set `pinned` in the configuration.
        """
        if server not in self._members:
            raise ValueError(f"there is no MCP server named {server!r}")
        self._members[server].tools.accept(tool, found)
        self._publish()

    async def run(self) -> None:
        """Keep all servers connected, until cancelled or closed."""
        await run_all((member.connection.run() for member in self._members.values()), "mcp server")

    async def wait_for_first_attempts(self, seconds: float) -> None:
        """Wait until each server is connected or has failed once, at most `seconds` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for member in self._members.values():
                    await member.connection.first_attempt.wait()

    def unregister_tools(self) -> None:
        """Remove the tools of all servers from the registry."""
        self.registry.exchange(self._published, ())
        self._published = {}

    def close(self) -> None:
        """Ask all connections to close."""
        for member in self._members.values():
            member.connection.close()


@asynccontextmanager
async def open_servers(
    configured: Mapping[str, ToolServer],
    registry: Registry | None = None,
    patience: float = PATIENCE,
    abilities: Mapping[str, Abilities] | None = None,
) -> AsyncGenerator[Servers]:
    """Open the servers, with their tools in `registry` or in a new one.

    A server that is not connected after `patience` seconds is added when it connects. `abilities` are what the program
    does for a server, by the server's name.
    """
    servers = Servers(configured, Registry() if registry is None else registry, abilities or {})
    running = start_task(servers.run(), "mcp servers")
    try:
        await servers.wait_for_first_attempts(patience)
        yield servers
    finally:
        servers.close()
        await asyncio.wait({running})
        servers.unregister_tools()
