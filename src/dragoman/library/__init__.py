"""What the Python library opens by name: models of the configuration, MCP servers and saved conversations.

`dragoman.agent` imports this package when an agent names a model or a conversation. Each opening loads
the configuration again, as the command does: from $DRAGOMAN_CONFIG, ./dragoman.toml, or the environment alone.
"""

from dragoman.library.conversation_store import open_turn
from dragoman.library.mcp_server import McpServer
from dragoman.library.models import open_model

__all__ = ["McpServer", "open_model", "open_turn"]
