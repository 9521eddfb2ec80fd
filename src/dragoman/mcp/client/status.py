"""What is known of an external server, for whoever runs the gateway."""

from msgspec import Struct


class Blocked(Struct, frozen=True, kw_only=True):
    """A tool that is not what it was when it was accepted."""

    tool: str
    """The server's own name for it."""
    name: str
    """The name that models call it by."""
    accepted: str
    """The hash of the definition that was accepted."""
    found: str
    """The hash of the one that the server gives now."""


class Status(Struct, frozen=True, kw_only=True):
    """How a server does."""

    name: str
    transport: str
    """"stdio" or "http"."""
    connected: bool = False
    protocol: str = ""
    """The revision that is spoken."""
    server: str = ""
    """What it calls itself."""
    tools: dict[str, str] = {}
    """Its tools by the names that models call them by, each with the hash of its definition."""
    blocked: tuple[Blocked, ...] = ()
    unusable: dict[str, str] = {}
    """Tools that no model is told of, and why, by the server's own names."""
    error: str = ""
    """What went wrong last, while it is not connected."""
    failures: int = 0
    """How often in a row it could not be reached."""
