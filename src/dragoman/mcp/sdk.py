"""The official MCP SDK, an optional dependency: imported here first, so that a missing SDK is reported in one place."""

try:
    import anyio
    import httpx2
    import mcp_types as types
    from mcp import Client, MCPError
    from mcp.client.session import ElicitationFnT
    from mcp.client.stdio import get_default_environment
    from mcp.client.streamable_http import streamable_http_client
    from mcp.client.subscriptions import SubscriptionLost
    from mcp.shared.dispatcher import ProgressFnT
    from mcp.shared.inbound import find_invalid_x_mcp_header
    from mcp.shared.message import SessionMessage
    from mcp_types.methods import validate_server_result
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
    from pydantic import ValidationError
except ImportError as error:
    raise ImportError('The MCP SDK is not installed. Run: pip install "dragoman[mcp]"') from error

__all__ = [
    "MODERN_PROTOCOL_VERSIONS",
    "Client",
    "ElicitationFnT",
    "MCPError",
    "ProgressFnT",
    "SessionMessage",
    "SubscriptionLost",
    "ValidationError",
    "anyio",
    "find_invalid_x_mcp_header",
    "get_default_environment",
    "httpx2",
    "streamable_http_client",
    "types",
    "validate_server_result",
]
