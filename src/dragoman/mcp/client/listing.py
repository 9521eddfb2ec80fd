"""The list of a server's tools: all pages, as far as a list of tools can be meant."""

from msgspec import Struct

from dragoman.mcp.client.sieve import Sieve
from dragoman.mcp.sdk import Client, MCPError, types

_MOST_PAGES = 200
_MOST_TOOLS = 2000


class Listed(Struct, frozen=True):
    """What a server offers."""

    tools: list[types.Tool]
    left_out: dict[str, str]
    """What is no tool though it is listed, and why."""


async def all_tools(client: Client, sieve: Sieve) -> Listed:
    """Return all pages of the list, as far as a list of tools can be meant."""
    sieve.version, sieve.left_out = client.protocol_version, {}
    tools: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        try:
            page = await client.list_tools(cursor=cursor)
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND and cursor is None:
                return Listed([], {})  # it has other things to offer
            raise
        tools += page.tools
        cursor = page.next_cursor
        if not cursor or len(tools) >= _MOST_TOOLS:
            break
    return Listed(tools[:_MOST_TOOLS], sieve.left_out)
