"""The tools, resources and prompts that MCP's conformance suite expects of a server.

Names, texts and schemas are the suite's. A gateway loads this module where its configuration sets `[mcp] fixtures`.
"""

from typing import Any

from mcp.server.mcpserver import MCPServer

from dragoman.mcp.server.server import Fixtures
from mcp_fixtures import client_requests, contents, input_requests, resources, tasks


def mount(server: MCPServer[Any]) -> None:
    """Add everything that has no schema of its own."""
    for module in (contents, client_requests, input_requests, resources, tasks):
        module.mount(server)


FIXTURES = Fixtures(tasks=tasks.TASKS, tools=(contents.schema_tool(),), mount=mount, mount_lower=resources.mount_older)
