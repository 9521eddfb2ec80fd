"""Endpoints other than generation: model lists, stored responses, conversations, Code Assist, MCP, pass-through."""
