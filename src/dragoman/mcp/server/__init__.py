"""Dragoman as an MCP server: `query` runs an agent on a model, `search` searches the web, `fetch` reads a page.

Rules of this package: everything here needs the SDK, so other packages import it only when MCP is used, and a missing
SDK is reported here. The SDK implements the protocol, both the handshake revisions and the later ones; this package
implements the tools and the transports.
"""

from dragoman.mcp import sdk as sdk
