"""The status of an external MCP server, and what a program does for it: sign in, and answer its questions."""

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from dragoman.mcp.sdk import ElicitationFnT, httpx2


class Abilities(Struct, frozen=True, kw_only=True):
    """What the embedding program does for one server."""

    auth: "httpx2.Auth | None" = None
    """Authenticates HTTP requests; the SDK has providers for OAuth."""
    elicit: "ElicitationFnT | None" = None
    """Answers an elicitation: a question that a tool asks the user."""


NO_ABILITIES = Abilities()


class BlockedTool(Struct, frozen=True, kw_only=True):
    """A tool whose definition has changed since it was accepted."""

    tool: str
    """The server's own name of the tool."""
    name: str
    """The name that models use to call it."""
    accepted: str
    """The hash of the accepted definition."""
    found: str
    """The hash of the current definition."""


class ServerStatus(Struct, frozen=True, kw_only=True):
    """The state of one external MCP server."""

    name: str
    transport: str
    """"stdio" or "http"."""
    connected: bool = False
    protocol: str = ""
    """The protocol revision in use."""
    server: str = ""
    """The name and version that the server reports."""
    tools: dict[str, str] = {}
    """Tools by the names that models use, each with the hash of its definition."""
    blocked: tuple[BlockedTool, ...] = ()
    unusable: dict[str, str] = {}
    """Tools that are not offered to models, by the server's own names, each with the reason."""
    error: str = ""
    """The last error, while the server is not connected."""
    failures: int = 0
    """The number of failed connection attempts in a row."""
