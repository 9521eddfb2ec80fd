"""The MCP server of the programs `mcp_server.py`."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("weather")


@server.tool()
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"Sun in {city}."


server.run()
