"""An MCP server that wants a user to sign in, with the authorization server of the official SDK, over loopback."""

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from secrets import token_hex
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import build_metadata
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.responses import JSONResponse
from starlette.routing import Route


class Provider:
    """Gives codes without asking anybody, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.challenges: list[str] = []
        self.refreshed = 0
        self.lifetime = 3600
        self.documents: dict[str, OAuthClientInformationFull] = {}
        """The client id metadata documents by their addresses, as if they had been fetched."""
        self.refuses = False

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id) or self.documents.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.refuses:
            return construct_redirect_uri(str(params.redirect_uri), error="access_denied", state=params.state)
        self.challenges.append(params.code_challenge)
        code = token_hex(16)
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=str(client.client_id),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, _client: Any, code: str) -> AuthorizationCode | None:
        return self.codes.get(code)

    async def exchange_authorization_code(self, client: Any, code: AuthorizationCode) -> OAuthToken:
        del self.codes[code.code]
        return self._issue(client.client_id, code.scopes, code.resource)

    async def load_refresh_token(self, _client: Any, token: str) -> RefreshToken | None:
        return self.refresh.get(token)

    async def exchange_refresh_token(self, client: Any, token: RefreshToken, scopes: list[str]) -> OAuthToken:
        del self.refresh[token.token]
        self.refreshed += 1
        return self._issue(client.client_id, scopes, token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: Any) -> None:
        self.access.pop(token.token, None)

    def _issue(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = token_hex(16), token_hex(16)
        common = {"client_id": client_id, "scopes": scopes, "resource": resource}
        self.access[access] = AccessToken(token=access, expires_at=int(time.time()) + 3600, **common)
        self.refresh[refresh] = RefreshToken(token=refresh, **common)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.lifetime, token_type="Bearer")  # noqa: S106


@contextmanager
def run_authorized_server(*, takes_documents: bool = False) -> Generator[tuple[str, Provider]]:
    """Run the server while the block runs; yield the URL of its MCP endpoint, and who gives the tokens.

    With `takes_documents` it registers no client, and its clients are named by the addresses of metadata documents.
    """
    bound = socket.create_server(("127.0.0.1", 0))
    base, provider = f"http://127.0.0.1:{bound.getsockname()[1]}", Provider()
    auth = AuthSettings(
        issuer_url=base,  # pyright: ignore[reportArgumentType]
        resource_server_url=f"{base}/mcp",  # pyright: ignore[reportArgumentType]
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(enabled=not takes_documents),
    )
    server: Any = MCPServer("guarded", auth_server_provider=provider, auth=auth)  # pyright: ignore[reportArgumentType]

    @server.tool()
    def whoami() -> str:
        """Tell who is signed in."""
        return "you"

    app = server.streamable_http_app()
    if takes_documents:
        metadata = build_metadata(auth.issuer_url, None, ClientRegistrationOptions(), RevocationOptions())
        metadata.client_id_metadata_document_supported = True
        metadata.token_endpoint_auth_methods_supported = ["none"]
        answer = JSONResponse(metadata.model_dump(mode="json", exclude_none=True))
        app.router.routes.insert(0, Route("/.well-known/oauth-authorization-server", lambda _: answer))
    running = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield f"{base}/mcp", provider
    finally:
        running.should_exit = True
        thread.join()
        bound.close()
