"""Put an MCP server together of what it offers.

Rules: the SDK would set up logging for the whole process; that is undone.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from dragoman.agent import Carrier
from dragoman.mcp.server.fixtures import asking, contents, jobs, reading, rounds
from dragoman.mcp.server.refusals import SpeakingServer, refuse_unknown
from dragoman.mcp.server.tasks import TTL, Task, Tasks

Mount = Callable[[MCPServer[Any]], None]
_INSTRUCTIONS = (
    "`query` asks a model that has tools of its own and may take minutes; pass the session_id it returns to go on. "
    "`search` finds web pages and `fetch` reads one of them."
)


def build(  # noqa: PLR0913  each with its name
    mounts: Sequence[Mount],
    carrier: Carrier,
    tools: Mapping[str, Task],
    *,
    version: str = "",
    fixtures: bool = False,
    ttl: float = TTL,
) -> MCPServer[Any]:
    """Return a server with what the mounts offer, and the fixtures of the conformance suite if those are wanted."""
    tasks = Tasks(carrier, {**tools, **jobs.TASKS} if fixtures else tools, ttl)
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
