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
_GONE = "the client hung up"
_LARGE = 64 << 10
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time left: closing such a socket resets it."""


class Gone(ConnectionError):  # noqa: N818  it says what the client is
    """The client is no longer there."""


class Exchange:
    """A request, and the way to answer it."""

    started = False
    status = 0
    ended = False
    is_gone = False
    """The client has hung up."""
    is_behind = False
    """The client reads too slowly: whoever writes should wait."""
    _is_mute = False
    """Nothing but the head of the reply is sent."""
    _chunked = False
    _waited: asyncio.Event | None = None
    """Is set when a client that reads too slowly has caught up, or is gone."""
    _gone: asyncio.Event | None = None
    """Is set when the client hangs up, if somebody waits for that."""
    on_gone: Callable[[], object] | None = None
    """Called if the client disconnects before its answer is whole."""

    def __init__(self, request: Request, transport: asyncio.Transport, *, keeps_alive: bool, in_chunks: bool) -> None:
        self.request = request
        self.keeps_alive = keeps_alive
        """Whether the connection stays open for another request."""
        self._transport = transport
        self._in_chunks = in_chunks
        """Whether the client understands chunks."""

    async def wait_gone(self) -> None:
        """Return when the client hangs up."""
        if not self.is_gone:
            self._gone = self._gone or asyncio.Event()
            await self._gone.wait()

    async def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a reply with a whole body."""
        head = self._head(status, headers, "" if status in _NO_BODY else f"content-length: {len(body)}\r\n")
        if self._is_mute:
            body = b""
        if len(body) < _LARGE:
            self._transport.write(head + body)  # one packet
        else:
            self._transport.write(head)
            self._transport.write(body)
        self.ended = True
        if self._waited is not None:
            await self._drained(self._waited)

    def start(self, status: int, headers: Mapping[str, str], length: int | None = None, first: bytes = b"") -> None:
        """Begin a reply that comes piece by piece, in chunks unless its length is known; `first` goes at once."""
        framing = ""
        if length is not None:
            framing = f"content-length: {length}\r\n"
        elif self._in_chunks:
            self._chunked = True
            framing = "transfer-encoding: chunked\r\n"
        else:
            self.keeps_alive = False
        head = self._head(status, headers, framing)
        self._transport.write(head + self._framed(first))

    async def write(self, data: bytes) -> None:
        """Send the next piece; raises `Gone` when nobody listens."""
        self._check_gone()
        self.push(data)
        if self._waited is not None:
            await self._drained(self._waited)

    def push(self, data: bytes) -> None:
        """Send a piece without waiting for a client that reads slowly, or is gone."""
        if data and not self.is_gone and not self._is_mute:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    async def end(self, last: bytes = b"") -> None:
        """The answer is whole with this `last` piece."""
        self._check_gone()
        framed = self._framed(last)
        if self._chunked and not self._is_mute:
            framed += _LAST_CHUNK
        if framed:
            self._transport.write(framed)
        self.ended = True
        if self._waited is not None:
            await self._drained(self._waited)

    def _framed(self, data: bytes) -> bytes:
        if not data or self._is_mute:
            return b""
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data

    def cut(self) -> None:
        """Hang up in the middle of the answer."""
        self._leave()
        self._transport.close()

    def cut_within(self, data: bytes) -> None:
        """Hang up in the middle of a piece."""
        self._check_gone()
        self._transport.write((b"%x\r\n" % len(data) if self._chunked else b"") + data[: len(data) // 2])
        self.cut()

    def abort(self) -> None:
        """Reset the connection."""
        self._leave()
        connection = self._transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    def pause(self) -> None:
        """The client reads too slowly."""
        self._waited = asyncio.Event()
        self.is_behind = True

    def resume(self) -> None:
        """The client has caught up."""
        if self._waited is not None:
            self._waited.set()
            self._waited = None
            self.is_behind = False

    def hang_up(self) -> None:
        """The client is gone."""
        self.is_gone = True
        self.keeps_alive = False
        if self._gone is not None:
            self._gone.set()
        self.resume()
        if self.on_gone is not None and not self.ended:
            self.on_gone()

    def _leave(self) -> None:
        self.ended = True
        self.keeps_alive = False

    def _head(self, status: int, headers: Mapping[str, str], framing: str) -> bytes:
        if self.is_gone:
            raise Gone(_GONE)
        self.started = True
        self.status = status
        self._is_mute = self.request.method == "HEAD"
        ending = "\r\n" if self.keeps_alive else "connection: close\r\n\r\n"
        return render_head(status, headers.items(), framing + ending)

    async def _drained(self, waited: asyncio.Event) -> None:
        await waited.wait()
        self._check_gone()

    def _check_gone(self) -> None:
        if self.is_gone:
            raise Gone(_GONE)
