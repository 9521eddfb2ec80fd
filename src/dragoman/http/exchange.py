"""One request and the reply to it, written piece by piece by whoever answers.

A reply whose length is not known is sent in chunks. `abort`, `cut` and `cut_within` end a connection as broken servers
do; only a simulator wants that.
"""

import asyncio
import socket
import struct
from collections.abc import Callable, Mapping

from dragoman.http.message import Request, render_head

_LAST_CHUNK = b"0\r\n\r\n"
_NO_BODY = frozenset({204, 304})
_DISCONNECTED = "the client hung up"
_LARGE = 64 << 10
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time left: closing such a socket resets it."""


class ClientDisconnected(ConnectionError):  # noqa: N818  it says what the client is
    """The client is no longer there."""


class Exchange:
    """A request, and the way to answer it."""

    started = False
    status = 0
    ended = False
    is_disconnected = False
    """The client has hung up."""
    is_write_paused = False
    """The client reads too slowly: whoever writes should wait."""
    _is_head_only = False
    """Nothing but the head of the reply is sent."""
    _chunked = False
    _drain_event: asyncio.Event | None = None
    """Is set when a client that reads too slowly has caught up, or is gone."""
    _disconnect_event: asyncio.Event | None = None
    """Is set when the client hangs up, if somebody waits for that."""
    on_disconnect: Callable[[], object] | None = None
    """Called if the client disconnects before its answer is whole."""

    def __init__(
        self, request: Request, transport: asyncio.Transport, *, keeps_alive: bool, supports_chunks: bool
    ) -> None:
        self.request = request
        self.keeps_alive = keeps_alive
        """Whether the connection stays open for another request."""
        self._transport = transport
        self._supports_chunks = supports_chunks
        """Whether the client understands chunks."""

    async def wait_disconnected(self) -> None:
        """Return when the client hangs up."""
        if not self.is_disconnected:
            self._disconnect_event = self._disconnect_event or asyncio.Event()
            await self._disconnect_event.wait()

    async def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a reply with a whole body."""
        head = self._build_head(status, headers, "" if status in _NO_BODY else f"content-length: {len(body)}\r\n")
        if self._is_head_only:
            body = b""
        if len(body) < _LARGE:
            self._transport.write(head + body)  # one packet
        else:
            self._transport.write(head)
            self._transport.write(body)
        self.ended = True
        if self._drain_event is not None:
            await self._wait_drained(self._drain_event)

    def start(self, status: int, headers: Mapping[str, str], length: int | None = None, first: bytes = b"") -> None:
        """Begin a reply that comes piece by piece, in chunks unless its length is known; `first` goes at once."""
        framing = ""
        if length is not None:
            framing = f"content-length: {length}\r\n"
        elif self._supports_chunks:
            self._chunked = True
            framing = "transfer-encoding: chunked\r\n"
        else:
            self.keeps_alive = False
        head = self._build_head(status, headers, framing)
        self._transport.write(head + self._frame(first))

    async def write(self, data: bytes) -> None:
        """Send the next piece; raises `Gone` when nobody listens."""
        self._require_connected()
        self.push(data)
        if self._drain_event is not None:
            await self._wait_drained(self._drain_event)

    def push(self, data: bytes) -> None:
        """Send a piece without waiting for a client that reads slowly, or is gone."""
        if data and not self.is_disconnected and not self._is_head_only:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    async def end(self, last: bytes = b"") -> None:
        """The answer is whole with this `last` piece."""
        self._require_connected()
        framed = self._frame(last)
        if self._chunked and not self._is_head_only:
            framed += _LAST_CHUNK
        if framed:
            self._transport.write(framed)
        self.ended = True
        if self._drain_event is not None:
            await self._wait_drained(self._drain_event)

    def _frame(self, data: bytes) -> bytes:
        if not data or self._is_head_only:
            return b""
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data

    def truncate(self) -> None:
        """Hang up in the middle of the answer."""
        self._mark_ended()
        self._transport.close()

    def truncate_within(self, data: bytes) -> None:
        """Hang up in the middle of a piece."""
        self._require_connected()
        self._transport.write((b"%x\r\n" % len(data) if self._chunked else b"") + data[: len(data) // 2])
        self.truncate()

    def abort(self) -> None:
        """Reset the connection."""
        self._mark_ended()
        connection = self._transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    def pause(self) -> None:
        """The client reads too slowly."""
        self._drain_event = asyncio.Event()
        self.is_write_paused = True

    def resume(self) -> None:
        """The client has caught up."""
        if self._drain_event is not None:
            self._drain_event.set()
            self._drain_event = None
            self.is_write_paused = False

    def note_disconnect(self) -> None:
        """The client is gone."""
        self.is_disconnected = True
        self.keeps_alive = False
        if self._disconnect_event is not None:
            self._disconnect_event.set()
        self.resume()
        if self.on_disconnect is not None and not self.ended:
            self.on_disconnect()

    def _mark_ended(self) -> None:
        self.ended = True
        self.keeps_alive = False

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
