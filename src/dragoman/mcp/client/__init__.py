"""Connect to external MCP servers and put their tools into a registry; one task owns each connection.

Rules: a server may hang, lie, die or change at any time. The effect is a failed result or a log line, never more.
Nothing in this package is imported or started when no server is configured.
"""

from dragoman.mcp.client.servers import Servers, open_servers
from dragoman.mcp.client.status import Abilities, BlockedTool, ServerStatus
from dragoman.mcp.client.status import BlockedTool as Blocked
from dragoman.mcp.client.status import ServerStatus as Status

__all__ = ["Abilities", "Blocked", "BlockedTool", "ServerStatus", "Servers", "Status", "open_servers"]
