"""What only a program can do for a server, not a configuration: sign in, and answer its questions.

Rules: a server is told only of what there is. Without these it gets the configured headers, and its questions are
refused.
"""

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
