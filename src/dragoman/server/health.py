"""What is told of how the gateway does: that it answers, and how many of its tool servers are there.

A server that is away is no sick gateway: requests are answered all the same. Which one it is, and why, is told to those
who have a key.
"""

from collections.abc import Sequence
from typing import Any

from dragoman.mcp.client import Status
from dragoman.server.toolbox import trouble_of
from dragoman.wire import json

_HEALTHY = b'{"status":"ok"}'


def health(statuses: Sequence[Status], *, known: bool) -> bytes:
    """Return the answer to who asks; `known` if it may hear of the servers by name."""
    if not statuses:
        return _HEALTHY
    connected = sum(status.connected for status in statuses)
    servers: dict[str, Any] = {"configured": len(statuses), "connected": connected}
    if known:
        servers["servers"] = [_server(status, statuses) for status in statuses]
    return json.encode({"status": "ok", "tool_servers": servers})


def _server(status: Status, statuses: Sequence[Status]) -> dict[str, Any]:
    told = {
        "name": status.name,
        "connected": status.connected,
        "tools": len(status.tools),
        "blocked": [each.tool for each in status.blocked],
        "unusable": sorted(status.unusable),
    }
    return told if status.connected else {**told, "error": trouble_of(status.name, statuses)}
