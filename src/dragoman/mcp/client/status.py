"""What is known of an external server, and what a program can do for it: sign in, and answer its questions."""

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from dragoman.mcp.sdk import ElicitationFnT, httpx2


class Abilities(Struct, frozen=True, kw_only=True):
    """What a program does for one server."""

    auth: "httpx2.Auth | None" = None
    """Signs requests over HTTP; the SDK has providers for OAuth."""
    elicit: "ElicitationFnT | None" = None
    """Answers when a tool asks the user."""


NO_ABILITIES = Abilities()


class BlockedTool(Struct, frozen=True, kw_only=True):
    """A tool that is not what it was when it was accepted."""

    tool: str
    """The server's own name for it."""
    name: str
    """The name that models call it by."""
    accepted: str
    """The hash of the definition that was accepted."""
    found: str
    """The hash of the one that the server gives now."""


class ServerStatus(Struct, frozen=True, kw_only=True):
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
    blocked: tuple[BlockedTool, ...] = ()
    unusable: dict[str, str] = {}
    """Tools that no model is told of, and why, by the server's own names."""
    error: str = ""
    """What went wrong last, while it is not connected."""
    failures: int = 0
    """How often in a row it could not be reached."""
