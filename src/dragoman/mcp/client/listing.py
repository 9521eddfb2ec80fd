"""The list of a server's tools: all pages, as far as a list of tools can be meant."""

from dragoman.mcp.sdk import Client, MCPError, types

_MOST_PAGES = 200
_MOST_TOOLS = 2000


async def all_tools(client: Client) -> list[types.Tool]:
    """Return all pages of the list, as far as a list of tools can be meant."""
    tools: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        try:
            page = await client.list_tools(cursor=cursor)
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND and cursor is None:
                return []  # it has other things to offer
            raise
        tools += page.tools
        cursor = page.next_cursor
        if not cursor or len(tools) >= _MOST_TOOLS:
            break
    return tools[:_MOST_TOOLS]
