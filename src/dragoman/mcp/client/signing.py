"""Signs in at an authorization server for a server of ours, with credentials of our own and no user (OAuth 2.1).

Rules: credentials go to the issuer that the configuration names, wherever a server leads. Tokens are kept as long as
the process runs, and are asked for anew when they expire; their scopes are those that the server wants.
"""

from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from dragoman.mcp.sdk import httpx2
from dragoman.mcp.settings import OAuth, ToolServer


class _Memory:
    """Keeps what signing in brings."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


def signer(settings: ToolServer, said: OAuth) -> httpx2.Auth:
    """Return what signs the requests to a server."""
    return ClientCredentialsOAuthProvider(
        server_url=settings.url,
        storage=_Memory(),
        client_id=said.client_id,
        client_secret=said.client_secret,
        issuer=said.issuer,
    )
