"""Sign-in of a user to an MCP server: OAuth's authorization code with PKCE, by the SDK's own client.

`SignIn` opens the authorization server's page in a browser and waits for the redirect to this machine. What it gets is
kept in a file that only the user can read. `SignedIn` uses and refreshes the tokens, and never opens a browser. Tokens
are sent only to the URL that they were issued for, and refreshed only at the server that issued them. Other processes
may refresh them too, so the file is read again before each refresh.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from msgspec import Struct

from dragoman.guard import attempt_async
from dragoman.mcp.client.tool_list import describe_error
from dragoman.mcp.sdk import Client, httpx2, streamable_http_client
from dragoman.mcp.settings import ToolServer, UserSignIn
from dragoman.sessions.store import state_folder

_PATH = "/callback"
_PAGE = "<!doctype html><title>Dragoman</title><p>{}</p>"
_DONE = "You are signed in. You can close this page."
_FAILED = "The sign-in failed. The terminal has the reason."
_MAX_HEAD = 64 << 10
_OTHERS = 0o077
"""The permissions of other users on a file."""


# Every failed sign-in is raised here, or shown in the server's status: a traceback in the log is noise.
logging.getLogger("mcp.client.auth.oauth2").addFilter(lambda record: record.levelno < logging.WARNING)


class SignInError(Exception):
    """The sign-in failed, or is missing."""


class _Saved(Struct, kw_only=True):
    """The content of a file: what the SDK needs to use and refresh tokens."""

    url: str
    tokens: dict[str, Any]
    expires_at: float | None = None
    client: dict[str, Any] | None = None
    authorization_server: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None


class TokenFile:
    """Keeps the tokens of one server in a file that only its owner can read."""

    def __init__(self, path: Path, url: str) -> None:
        self.path = path
        self._url = url

    def load(self) -> _Saved | None:
        """Return what was saved for this URL; None if there is nothing."""
        try:
            if os.name != "nt" and self.path.stat().st_mode & _OTHERS:
                raise SignInError(f"other users can read {self.path}; sign in again after `rm {self.path}`")
            saved = msgspec.json.decode(self.path.read_bytes(), type=_Saved)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise SignInError(f"{self.path} cannot be read: {error}") from None
        return saved if saved.url == self._url else None

    def save(self, context: OAuthContext) -> None:
        """Replace the file by the tokens of a context."""
        if context.current_tokens is None:
            return
        saved = _Saved(
            url=self._url,
            tokens=_dump(context.current_tokens),
            expires_at=context.token_expiry_time,
            client=None if context.client_info is None else _dump(context.client_info),
            authorization_server=None if context.oauth_metadata is None else _dump(context.oauth_metadata),
            resource=None
            if context.protected_resource_metadata is None
            else _dump(context.protected_resource_metadata),
        )
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self.path.with_suffix(f".{os.getpid()}")
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(msgspec.json.encode(saved))
        new.replace(self.path)

    def delete(self) -> bool:
        """Delete the file; return whether there was one."""
        found = self.path.exists()
        self.path.unlink(missing_ok=True)
        return found


def find_token_file(name: str, url: str) -> TokenFile:
    """Return the file with the tokens for a server of the configuration."""
    return TokenFile(state_folder() / "mcp" / f"{name}.json", url)


def _dump(model: Any) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_none=True)


class _Storage:
    """The SDK's storage: it starts empty, or with a client that is already registered, and saves new tokens."""

    def __init__(self, file: TokenFile, client: OAuthClientInformationFull | None = None) -> None:
        self._file = file
        self._client = client
        self.context: OAuthContext | None = None
        self.has_saved = False

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        del tokens  # the context has them, with the time at which they expire
        if self.context is not None:
            self._file.save(self.context)
            self.has_saved = True

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Do nothing: the client is saved with the tokens."""


class SignedIn(OAuthClientProvider):
    """Authenticates requests with the saved tokens of a user, and refreshes them."""

    def __init__(self, name: str, url: str, file: TokenFile) -> None:
        storage = _Storage(file)
        metadata = OAuthClientMetadata(redirect_uris=[f"http://127.0.0.1{_PATH}"])  # pyright: ignore[reportArgumentType]
        super().__init__(url, metadata, storage)
        storage.context = self.context
        self._file = file
        self._hint = f"sign in with `dragoman mcp login {name}`"

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        context = self.context
        async with context.lock:
            if not context.is_token_valid():
                self._load()
            if not context.is_token_valid():
                if not context.can_refresh_token():
                    raise SignInError(f"not signed in, or the sign-in has expired: {self._hint}")
                await self._handle_refresh_response((yield await self._refresh_token()))
            sent = context.current_tokens
            if sent is None:
                raise SignInError(f"the sign-in has ended: {self._hint}")
            self._add_auth_header(request)
        response = yield request
        if response.status_code != 401:
            return
        async with context.lock:
            if context.current_tokens is sent:
                self._load()
            current = context.current_tokens
            if current is not None and current.access_token == sent.access_token and context.can_refresh_token():
                await self._handle_refresh_response((yield await self._refresh_token()))
            if context.current_tokens is None or context.current_tokens.access_token == sent.access_token:
                raise SignInError(f"the server does not accept the sign-in any more: {self._hint}")
            self._add_auth_header(request)
        yield request

    def _load(self) -> None:
        """Take over what the file has now: another process may have refreshed the tokens."""
        saved, context = self._file.load(), self.context
        if saved is None:
            raise SignInError(f"not signed in: {self._hint}")
        context.current_tokens = OAuthToken.model_validate(saved.tokens)
        context.token_expiry_time = saved.expires_at
        if saved.client is not None:
            context.client_info = OAuthClientInformationFull.model_validate(saved.client)
        if saved.authorization_server is not None:
            context.oauth_metadata = OAuthMetadata.model_validate(saved.authorization_server)
        if saved.resource is not None:
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(saved.resource)


class _Redirect:
    """Listens on this machine for the authorization server's redirect."""

    def __init__(self) -> None:
        self.url = ""
        self._state = ""
        self._result: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    @asynccontextmanager
    async def listen(self, port: int) -> AsyncGenerator[None]:
        """Listen while the block runs."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", port, limit=_MAX_HEAD)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{_PATH}"
        async with server:
            yield

    def expect(self, authorization_url: str) -> None:
        """Accept only the redirect that belongs to this request."""
        (self._state,) = parse_qs(urlsplit(authorization_url).query).get("state", [""])
        self._result = asyncio.get_running_loop().create_future()

    async def wait(self) -> AuthorizationCodeResult:
        """Wait for the redirect."""
        return await asyncio.shield(self._result)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            status, text = self._accept(head.split(b" ")[1].decode("latin-1"))
            body = _PAGE.format(text).encode()
            lines = (
                f"HTTP/1.1 {status}",
                "content-type: text/html",
                f"content-length: {len(body)}",
                "connection: close",
            )
            writer.write("\r\n".join((*lines, "", "")).encode() + body)
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, IndexError, ConnectionError):
            pass  # no request of a browser
        finally:
            writer.close()

    def _accept(self, target: str) -> tuple[str, str]:
        """Take the parameters of a redirect; return the status and the text of the answer."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        if urlsplit(target).path != _PATH or not self._state or query.get("state") != self._state:
            return "404 Not Found", "There is nothing here."
        if self._result.done():
            return "200 OK", _DONE
        if "code" in query:
            self._result.set_result(
                AuthorizationCodeResult(code=query["code"], state=query["state"], iss=query.get("iss"))
            )
            return "200 OK", _DONE
        reason = ": ".join(filter(None, (query.get("error", "no code"), query.get("error_description", ""))))
        self._result.set_exception(SignInError(f"the authorization server refused: {reason}"))
        return "200 OK", _FAILED


class SignIn(Struct, frozen=True, kw_only=True):
    """The sign-in of a user to one server."""

    server: ToolServer
    file: TokenFile
    show_url: Callable[[str], None]
    """Called with the address that the user has to open."""
    seconds: float = 300.0
    """How long to wait for the user."""

    async def run(self) -> tuple[str, ...]:
        """Sign in; return the names of the server's tools. Raises `SignInError`."""
        settings, redirect = self.server.user_sign_in, _Redirect()
        async with redirect.listen(settings.redirect_port):
            storage = _Storage(self.file, _find_client(settings, redirect.url))
            metadata = OAuthClientMetadata(
                client_name="Dragoman",
                redirect_uris=[redirect.url],  # pyright: ignore[reportArgumentType]
                grant_types=["authorization_code", "refresh_token"],
                token_endpoint_auth_method="none",  # noqa: S106  no password
            )

            async def show(url: str) -> None:
                redirect.expect(url)
                self.show_url(url)

            provider = OAuthClientProvider(
                self.server.url, metadata, storage, show, redirect.wait, settings.client_metadata_url or None
            )
            storage.context = provider.context
            try:
                async with asyncio.timeout(self.seconds):
                    listed = await attempt_async(self._list_tools, provider)
            except TimeoutError:
                raise SignInError(f"the browser did not return within {self.seconds:g} seconds") from None
            if listed.error is not None:
                raise SignInError(describe_error(listed.error, self.server)) from listed.error
        if not storage.has_saved:
            raise SignInError("the server did not ask for a sign-in; its tools can be used without")
        return listed.value

    async def _list_tools(self, provider: OAuthClientProvider) -> tuple[str, ...]:
        timeout = httpx2.Timeout(self.server.connect, read=None)
        async with (
            httpx2.AsyncClient(headers=self.server.headers, timeout=timeout, auth=provider) as http,
            Client(streamable_http_client(self.server.url, http_client=http)) as client,
        ):
            return tuple(tool.name for tool in (await client.list_tools()).tools)


def _find_client(settings: UserSignIn, redirect_url: str) -> OAuthClientInformationFull | None:
    """Return the client that is registered already; None to register one."""
    if not settings.client_id:
        return None
    return OAuthClientInformationFull(
        client_id=settings.client_id,
        client_secret=settings.client_secret or None,
        token_endpoint_auth_method="client_secret_post" if settings.client_secret else "none",
        redirect_uris=[redirect_url],  # pyright: ignore[reportArgumentType]
    )
