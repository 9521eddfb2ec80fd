"""Try the external servers of a configuration: whether they come up, and what they offer.

The hashes of their tools are told in the form in which the configuration takes them as pins.
"""

import time
from collections.abc import AsyncGenerator

from dragoman.config import Config
from dragoman.doctor.checks import Check
from dragoman.gateway.redact import redact
from dragoman.mcp.client import Servers, Status, open_servers


async def examine_tools(config: Config, patience: float = 60.0) -> AsyncGenerator[Check]:
    """Check every external server."""
    if not config.tools:
        return
    began = time.monotonic()
    try:
        async with open_servers(config.tools, patience=patience) as servers:
            seconds = round(time.monotonic() - began, 3)
            for status in servers.status():
                for check in _checks(status, servers, seconds):
                    yield check
    except ImportError as error:
        yield Check(check="tools", ok=False, detail=str(error), remedy='pip install "dragoman[mcp]"')


def _checks(status: Status, servers: Servers, seconds: float) -> list[Check]:
    if not status.connected:
        key = "command, args, env and cwd" if status.transport == "stdio" else "url and headers"
        remedy = f"check {key} in [tools.{status.name}], or its entry in GEMINI_MCP_SERVERS"
        detail = redact(status.error)
        return [Check(check="tools", server=status.name, ok=False, detail=detail, remedy=remedy, seconds=seconds)]
    words = [f"{len(status.tools)} tools over {status.transport}", status.protocol, status.server]
    said = ", ".join(word for word in words if word)
    checks = [Check(check="tools", server=status.name, ok=True, detail=said, seconds=seconds)]
    pins = [f'"{origin[1]}" = "{found}"' for name, found in status.tools.items() if (origin := servers.origin(name))]
    if pins:
        checks.append(
            Check(check="definitions", server=status.name, ok=True, detail=f"pinned = {{ {', '.join(pins)} }}")
        )
    for blocked in status.blocked:
        detail = f"{blocked.tool} is pinned to {blocked.accepted} and is now {blocked.found}"
        remedy = f"look at what it says of itself now; to accept it, write the new hash in [tools.{status.name}] pinned"
        checks.append(Check(check="definitions", server=status.name, ok=False, detail=detail, remedy=remedy))
    for tool, reason in status.unusable.items():
        remedy = f"nothing, if you can do without it; else tell whoever makes {status.name}"
        checks.append(
            Check(check="definitions", server=status.name, ok=False, detail=f"{tool}: {reason}", remedy=remedy)
        )
    return checks
