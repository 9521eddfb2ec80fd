"""Dragoman as an MCP server: an agent on the model of the host's choice, a search, and a page reader.

Rules of this room: all of it needs the SDK, so nothing outside imports it before somebody asks for MCP, and who misses
the extra is told so here. The SDK speaks the protocol in both of its eras; what is here says what the tools do, and
moves bytes.
"""

from dragoman.mcp import sdk as sdk
