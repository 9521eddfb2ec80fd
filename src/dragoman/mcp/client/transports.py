"""Open the transport to an MCP server: a child process, or streamable HTTP with optional OAuth.

A failed connection ends the transport at once. A broken stream may be a network glitch: then the server is
probed, and the SDK continues if it responds. Response bodies are limited in size. Credentials (OAuth 2.1, client
credentials) are sent to the configured issuer only. Tokens are kept until the process exits; the server decides their
scopes.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from msgspec import Struct

from dragoman.mcp.client.stderr_log import StderrLog
from dragoman.mcp.client.stdio import Streams, open_process
from dragoman.mcp.sdk import anyio, httpx2, streamable_http_client
from dragoman.mcp.settings import OAuth, ToolServer
from dragoman.tasks import TaskSet

MAX_MESSAGE_BYTES = 64 << 20
"""The maximum size of a message over HTTP in bytes; images exceed the SDK's own limit by far."""
_PROBE_SECONDS = 2.0


class TransportCallbacks(Struct, frozen=True):
    """Callbacks for the end of a transport."""

    on_end: Callable[[], None]
    """Called when nothing more can arrive from the server."""
    on_session_lost: Callable[[], None]
    """Called when the server no longer knows the session."""
    on_misbehavior: Callable[[str], None]
    """Called with the reason when the server broke a limit and was killed."""


class MonitoredClient(httpx2.AsyncClient):
    """An HTTP client for one server that reports lost connections and lost sessions."""

    def __init__(self, settings: ToolServer, callbacks: TransportCallbacks, auth: httpx2.Auth | None) -> None:
        # Each request has its own timeout; a stream of notifications may be silent for days.
        super().__init__(headers=settings.headers, timeout=httpx2.Timeout(settings.connect, read=None), auth=auth)
        self._address = settings.url
        self._callbacks = callbacks
        self._probes = TaskSet()

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """Send a request; report a failed connection and a lost session."""
        try:
            response = await super().send(request, **how)
        except httpx2.ConnectError:
            self._callbacks.on_end()
            raise
        if response.status_code == 404 and request.method == "POST" and "mcp-session-id" in request.headers:
            self._callbacks.on_session_lost()
        if isinstance(response.stream, httpx2.AsyncByteStream):
            endless = response.headers.get("content-type", "").startswith("text/event-stream")
            response.stream = _MonitoredStream(response.stream, self._on_cut, None if endless else MAX_MESSAGE_BYTES)
        return response

    def _on_cut(self) -> None:
        if not self._probes:
            self._probes.start(self._probe(), "probe of an mcp server")

    async def _probe(self) -> None:
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                await super().send(self.build_request("HEAD", self._address))
        except (TimeoutError, httpx2.TransportError):
            self._callbacks.on_end()

    async def aclose(self) -> None:
        """Stop probing, and close the client."""
        await self._probes.stop()
        await super().aclose()


class _MonitoredStream(httpx2.AsyncByteStream):
    """A response body with a size limit that reports a broken connection."""

    def __init__(self, inner: httpx2.AsyncByteStream, on_cut: Callable[[], None], max_bytes: int | None) -> None:
        self._inner = inner
        self._on_cut = on_cut
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        size = 0
        try:
            async for chunk in self._inner:
                size += len(chunk)
                if self._max_bytes is not None and size > self._max_bytes:
                    raise httpx2.StreamError(f"the response is larger than {self._max_bytes} bytes")
                yield chunk
        except httpx2.TransportError:
            self._on_cut()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()


class _TokenStorage:
    """Keeps OAuth tokens and client information in memory."""

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


def build_auth(settings: ToolServer, oauth: OAuth) -> httpx2.Auth:
    """Return the OAuth provider that authenticates requests to a server."""
    return ClientCredentialsOAuthProvider(
        server_url=settings.url,
        storage=_TokenStorage(),
        client_id=oauth.client_id,
        client_secret=oauth.client_secret,
        issuer=oauth.issuer,
    )


# Invalid messages also reach `_on_message`; a traceback for each invalid line of a server is noise.
logging.getLogger("mcp.client.streamable_http").addFilter(lambda record: record.levelno < logging.WARNING)


@asynccontextmanager
async def open_transport(
    settings: ToolServer,
    callbacks: TransportCallbacks,
    stderr_log: StderrLog,
    on_message: Callable[[Any], None],
    auth: httpx2.Auth | None = None,
) -> AsyncGenerator[Streams]:
    """Open the transport to a server; `on_message` sees each incoming message first."""
    async with AsyncExitStack() as stack:
        if settings.command:
            process = open_process(settings, stderr_log, callbacks.on_misbehavior)
            reading, writing = await stack.enter_async_context(process)
        else:
            client = await stack.enter_async_context(MonitoredClient(settings, callbacks, auth))
            streams = streamable_http_client(settings.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES)
            reading, writing = await stack.enter_async_context(streams)
        yield _MonitoredReader(reading, callbacks.on_end, on_message), writing


class _MonitoredReader:
    """A message stream that calls `on_message` for each message and `on_end` at its end."""

    def __init__(self, inner: Any, on_end: Callable[[], None], on_message: Callable[[Any], None]) -> None:
        self._inner = inner
        self._on_end = on_end
        self._on_message = on_message

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            message = await self._inner.__anext__()
        except (StopAsyncIteration, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._on_end()
            raise
        self._on_message(message)
        return message

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._inner.aclose()
