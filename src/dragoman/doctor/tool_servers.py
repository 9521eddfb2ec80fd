"""Try the external servers of a configuration: whether they come up, and what they offer.

The hashes of their tools are told in the form in which the configuration takes them as pins.
"""

import time
from collections.abc import AsyncGenerator, Iterable

from dragoman.config import Config
from dragoman.doctor.checks import Check
from dragoman.gateway.agents.toolset import Roster, unmeant
from dragoman.gateway.redact import redact
from dragoman.mcp.client import Servers, Status, open_servers
from dragoman.tools.handler import JOINT


async def examine_tools(config: Config, patience: float = 60.0) -> AsyncGenerator[Check]:
    """Check every external server, and whether agents name tools that are there."""
    for key, words in unmeant(config.agents, config.tools):
        yield Check(
            check=key, ok=False, detail=words, remedy="name a server of [tools.*], one of its tools, or web_fetch"
        )
    if not config.tools:
        return
    began = time.monotonic()
    try:
        async with open_servers(config.tools, patience=patience) as servers:
            seconds = round(time.monotonic() - began, 3)
            for status in servers.status():
                for check in _checks(status, servers, seconds):
                    yield check
            for check in _agents(config, servers):
                yield check
    except ImportError as error:
        yield Check(check="tools", ok=False, detail=str(error), remedy='pip install "dragoman[mcp]"')


def _agents(config: Config, servers: Servers) -> Iterable[Check]:
    """Check the words of agents for tools of servers that are there."""
    roster = Roster(servers.registry, origin=servers.origin)
    there = {status.name for status in servers.status() if status.connected}
    for name, agent in config.agents.items():
        for word in agent.tools:
            if word.partition(JOINT)[0] in there and not roster.meant(word):
                near = " or ".join(servers.registry.nearest(word))
                yield Check(
                    check=f"agents.{name}.tools",
                    ok=False,
                    detail=f"{word!r} means no tool that its server has",
                    remedy=f"did you mean {near}?" if near else "name tools that the server has",
                )


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
