"""What a host that knows tasks sends to our MCP server over HTTP, without a session."""

from typing import Any

TASKS = "io.modelcontextprotocol/tasks"
VERSION = "2026-07-28"


def post(method: str, target: str, **params: Any) -> dict[str, Any]:
    """Return headers and body of a request, as HTTP clients take them by name."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {TASKS: {}}},
    }
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": VERSION}
    headers |= {"mcp-method": method, "mcp-name": target}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return {"headers": headers, "json": body}
