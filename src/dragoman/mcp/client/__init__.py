"""External servers: their tools in a registry of ours, each server kept by a task of its own.

Rules: a server may hang, lie, die or change at any time, and that is a failed result or a line in the log, never more.
Nothing here is loaded, and nothing started, where no server is configured.
"""

from dragoman.mcp.client.servers import Servers, open_servers
from dragoman.mcp.client.status import Abilities, BlockedTool, ServerStatus

__all__ = ["Abilities", "BlockedTool", "ServerStatus", "Servers", "open_servers"]
