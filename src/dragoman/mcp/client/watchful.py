"""An HTTP client that notices when the server at the other end is gone, sooner than the SDK does.

Rules: a connection that cannot be made is the end at once. A stream that is cut in the middle may be a bad line: then
the server is asked for a sign of life, and the SDK goes on if there is one. An answer has an end in bytes, too.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from msgspec import Struct

from dragoman.mcp.sdk import httpx2
from dragoman.mcp.settings import ToolServer

LARGEST = 64 << 20
"""Bytes of one message: an image is far more than the SDK's own bound, but there has to be one."""
_SIGN_OF_LIFE = 2.0


class Ends(Struct, frozen=True):
    """Whom to tell of the end of a way."""

    over: Callable[[], None]
    """Nothing more can come from the server."""
    forgotten: Callable[[], None]
    """It does not know us any more."""


class WatchfulClient(httpx2.AsyncClient):
    """A client for one server."""

    def __init__(self, settings: ToolServer, ends: Ends, auth: httpx2.Auth | None) -> None:
        # Each request ends by its own time; a stream of news may be silent for days.
        super().__init__(headers=settings.headers, timeout=httpx2.Timeout(settings.connect, read=None), auth=auth)
        self._address = settings.url
        self._ends = ends
        self._probe: asyncio.Task[None] | None = None

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """Send a request, and look at what becomes of it."""
        try:
            response = await super().send(request, **how)
        except httpx2.ConnectError:
            self._ends.over()
            raise
        if response.status_code == 404 and request.method == "POST" and "mcp-session-id" in request.headers:
            self._ends.forgotten()
        if isinstance(response.stream, httpx2.AsyncByteStream):
            endless = response.headers.get("content-type", "").startswith("text/event-stream")
            response.stream = _Watched(response.stream, self._cut, None if endless else LARGEST)
        return response

    def _cut(self) -> None:
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self._ask_for_life())

    async def _ask_for_life(self) -> None:
        try:
            async with asyncio.timeout(_SIGN_OF_LIFE):
                await super().send(self.build_request("HEAD", self._address))
        except (TimeoutError, httpx2.TransportError):
            self._ends.over()

    async def aclose(self) -> None:
        """Close, and ask nobody any more."""
        if self._probe is not None:
            self._probe.cancel()
        await super().aclose()


class _Watched(httpx2.AsyncByteStream):
    """The body of an answer."""

    def __init__(self, inner: httpx2.AsyncByteStream, cut: Callable[[], None], most: int | None) -> None:
        self._inner = inner
        self._cut = cut
        self._most = most

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        size = 0
        try:
            async for chunk in self._inner:
                size += len(chunk)
                if self._most is not None and size > self._most:
                    raise httpx2.StreamError(f"the answer has more than {self._most} bytes")
                yield chunk
        except httpx2.TransportError:
            self._cut()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()
