"""Checks of a configuration: credentials, connection and a tool call at each upstream, and tool servers."""
