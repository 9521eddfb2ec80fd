"""The tools of an MCP server for an agent, from one line: a command, or a URL."""

import re
import shlex
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import msgspec

from dragoman.core.problems import Problem
from dragoman.mcp.client import open_servers
from dragoman.mcp.settings import SettingsError, ToolServer, check_server
from dragoman.tools import Registry, ToolDefinitionError

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9-]+")
_MAX_NAME = 31


class McpServer:
    """An MCP server whose tools an agent uses; they are named `NAME__TOOL`.

    `target` is a URL, or a command line that starts the server in the current directory. `options` are the keys of a
    `[tools.NAME]` table, such as `env`, `headers`, `allow` or `trusted`. Without `trusted=True` its results count as
    untrusted.
    """

    def __init__(self, target: str, *, name: str = "", **options: Any) -> None:
        is_url = target.startswith(("http://", "https://"))
        words = [target] if is_url else shlex.split(target)
        if not words:
            raise ToolDefinitionError("McpServer needs a URL or the command that starts the server")
        # A program starts its own servers where it runs; the gateway gives each an empty directory instead.
        address = (
            {"url": target} if is_url else {"command": words[0], "args": words[1:], "cwd": options.get("cwd", ".")}
        )
        self.name = name or _name_of(words)
        try:
            self._server = msgspec.convert({**options, **address}, ToolServer)
            check_server(self.name, self._server)
        except (msgspec.ValidationError, SettingsError) as error:
            key = f"{error.key}: " if isinstance(error, SettingsError) and error.key else ""
            raise ToolDefinitionError(f"MCP server {self.name!r}: {key}{error}") from None

    def __repr__(self) -> str:
        return f"<McpServer {self.name}>"

    @asynccontextmanager
    async def open_tools(self, registry: Registry) -> AsyncGenerator[None]:
        """Start or reach the server while the block runs; raises `Problem` if that fails."""
        async with open_servers({self.name: self._server}, registry, patience=self._server.connect) as servers:
            (status,) = servers.status()
            if not status.connected:
                reason = status.error or f"no answer in {self._server.connect:g} seconds"
                raise Problem("unreachable", f"MCP server {self.name!r} is not available: {reason}", code="mcp")
            yield


def _name_of(words: list[str]) -> str:
    """Return a name for a server: its host, or the first word of the command that names it rather than a launcher."""
    host = urlsplit(words[0]).hostname
    if host:
        named = host.removeprefix("mcp.").removeprefix("www.").partition(".")[0]
    else:
        # In `uvx mcp-server-time` and `python -m time_server`, the last word that is no option or path names it.
        plain = [word for word in words if not word.startswith("-") and word not in ("run", "-m")]
        named = plain[1] if len(plain) > 1 else plain[0]
        named = named.rstrip("/").rpartition("/")[2].removesuffix(".py").removesuffix(".js").partition("@")[0]
    return _NOT_A_NAME.sub("-", named).strip("-")[:_MAX_NAME].strip("-") or "mcp"
