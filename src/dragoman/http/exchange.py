"""One request and its response, which the handler sends at once or in pieces.

A response of unknown length is sent in chunks. A response that fails midway is truncated.
"""

import asyncio
from collections.abc import Mapping

from dragoman.http.message import Request, render_head

_LAST_CHUNK = b"0\r\n\r\n"
_NO_BODY = frozenset({204, 304})
_DISCONNECTED = "the client disconnected"
_LARGE = 64 << 10


class ClientDisconnected(ConnectionError):  # noqa: N818  the name states the event
    """The client closed the connection."""


class Exchange:
    """A request and the methods to send its response."""

    started = False
    status = 0
    ended = False
    is_disconnected = False
    """Whether the client has closed the connection."""
    is_write_paused = False
    """Whether the write buffer is full: the sender should wait."""
    _is_head_only = False
    """Whether only the head of the response is sent, because the method is HEAD."""
    is_chunked = False
    """Whether the response is sent in chunks."""
    _drain_event: asyncio.Event | None = None
    """Set when a slow client has read enough, or has disconnected."""
    _disconnect_event: asyncio.Event | None = None
    """Set when the client disconnects; exists only if a task waits for that."""
    is_cancelled_on_disconnect = False
    """Whether the task of the handler is cancelled if the client disconnects before its response is complete."""

    def __init__(
        self, request: Request, transport: asyncio.Transport, *, keeps_alive: bool, supports_chunks: bool
    ) -> None:
        self.request = request
        self.keeps_alive = keeps_alive
        """Whether the connection stays open for another request."""
        self.transport = transport
        self._supports_chunks = supports_chunks
        """Whether the client supports chunked encoding."""

    async def wait_disconnected(self) -> None:
        """Return when the client disconnects."""
        if not self.is_disconnected:
            self._disconnect_event = self._disconnect_event or asyncio.Event()
            await self._disconnect_event.wait()

    async def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a complete response."""
        head = self._build_head(status, headers, "" if status in _NO_BODY else f"content-length: {len(body)}\r\n")
        if self._is_head_only:
            body = b""
        if len(body) < _LARGE:
            self.transport.write(head + body)  # one packet
        else:
            self.transport.write(head)
            self.transport.write(body)
        self.ended = True
        if self._drain_event is not None:
            await self._wait_drained(self._drain_event)

    def start(self, status: int, headers: Mapping[str, str], length: int | None = None, first: bytes = b"") -> None:
        """Start a response, in chunks unless its length is known, and send `first` with the head."""
        framing = ""
        if length is not None:
            framing = f"content-length: {length}\r\n"
        elif self._supports_chunks:
            self.is_chunked = True
            framing = "transfer-encoding: chunked\r\n"
        else:
            self.keeps_alive = False
        head = self._build_head(status, headers, framing)
        self.transport.write(head + self._frame(first))

    async def write(self, data: bytes) -> None:
        """Send the next bytes and wait if the client reads slowly; raises `ClientDisconnected`."""
        self._require_connected()
        self.push(data)
        if self._drain_event is not None:
            await self._wait_drained(self._drain_event)

    def push(self, data: bytes) -> None:
        """Send bytes without waiting for a slow client; does nothing if the client has disconnected."""
        if data and not self.is_disconnected and not self._is_head_only:
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self.is_chunked else data)

    async def end(self, last: bytes = b"") -> None:
        """Complete the response with these `last` bytes."""
        self._require_connected()
        framed = self._frame(last)
        if self.is_chunked and not self._is_head_only:
            framed += _LAST_CHUNK
        if framed:
            self.transport.write(framed)
        self.ended = True
        if self._drain_event is not None:
            await self._wait_drained(self._drain_event)

    def _frame(self, data: bytes) -> bytes:
        if not data or self._is_head_only:
            return b""
        return b"%x\r\n%b\r\n" % (len(data), data) if self.is_chunked else data

    def truncate(self) -> None:
        """Close the connection in the middle of the response."""
        self.ended = True
        self.keeps_alive = False
        self.transport.close()

    def pause(self) -> None:
        """Make writers wait because the client reads too slowly."""
        self._drain_event = asyncio.Event()
        self.is_write_paused = True

    def resume(self) -> None:
        """Let writers continue."""
        if self._drain_event is not None:
            self._drain_event.set()
            self._drain_event = None
            self.is_write_paused = False

    def note_disconnect(self) -> None:
        """Mark the client as disconnected and wake waiting tasks."""
        self.is_disconnected = True
        self.keeps_alive = False
        if self._disconnect_event is not None:
            self._disconnect_event.set()
        self.resume()

    def _build_head(self, status: int, headers: Mapping[str, str], framing: str) -> bytes:
        if self.is_disconnected:
            raise ClientDisconnected(_DISCONNECTED)
        self.started = True
        self.status = status
        self._is_head_only = self.request.method == "HEAD"
        ending = "\r\n" if self.keeps_alive else "connection: close\r\n\r\n"
        return render_head(status, headers.items(), framing + ending)

    async def _wait_drained(self, drain_event: asyncio.Event) -> None:
        await drain_event.wait()
        self._require_connected()

    def _require_connected(self) -> None:
        if self.is_disconnected:
            raise ClientDisconnected(_DISCONNECTED)
