"""Model Context Protocol: `client` uses external MCP servers as tools, `server` is Dragoman's own MCP server.

Rules of this package: the official SDK is an optional dependency and slow to import, so modules that need it
are imported where they are used, and `sdk` before all others. Data from other programs is untrusted: `bridge` converts
it to core values, and nothing else reads it.
"""
