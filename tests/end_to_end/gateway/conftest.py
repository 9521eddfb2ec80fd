"""The fixtures of the server's own tests."""

from server.conftest import gateway, serve

__all__ = ["gateway", "serve"]
