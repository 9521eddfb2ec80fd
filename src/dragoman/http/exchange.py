"""One request and the reply to it, written piece by piece by whoever answers.

A reply whose length is not known is sent in chunks. `abort`, `cut` and `cut_within` end a connection as broken servers
do; only a simulator wants that.
"""

import asyncio
import socket
import struct
from collections.abc import Callable, Iterable, Mapping

from dragoman.http.message import Request, status_line

_LAST_CHUNK = b"0\r\n\r\n"
_NO_BODY = frozenset({204, 304})
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time left: closing such a socket resets it."""


class Gone(ConnectionError):  # noqa: N818  it says what the client is
    """The client is no longer there."""


class Exchange:
    """A request, and the way to answer it."""

    def __init__(self, request: Request, transport: asyncio.Transport, *, keeps_alive: bool, in_chunks: bool) -> None:
        self.request = request
        self.started = False
        self.status = 0
        self.ended = False
        self.keeps_alive = keeps_alive
        self._transport = transport
        self._in_chunks = in_chunks
        self._chunked = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._gone = asyncio.Event()
        self._when_gone: Callable[[], object] | None = None

    @property
    def is_gone(self) -> bool:
        """The client has hung up."""
        return self._gone.is_set()

    def when_gone(self, do: Callable[[], object]) -> None:
        """Do something as soon as the client hangs up before its answer is whole."""
        self._when_gone = do

    async def wait_gone(self) -> None:
        """Return when the client hangs up."""
        await self._gone.wait()

    async def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Answer with a whole body."""
        fields = dict(headers)
        if status not in _NO_BODY:
            fields["content-length"] = str(len(body))
        self._head(status, fields.items())
        if body and self.request.method != "HEAD":
            self._transport.write(body)
        self.ended = True
        await self._drained()

    def start(self, status: int, headers: Mapping[str, str], length: int | None = None) -> None:
        """Begin an answer that comes piece by piece, in chunks unless its length is known."""
        fields = dict(headers)
        if length is not None:
            fields["content-length"] = str(length)
        elif self._in_chunks:
            self._chunked = True
            fields["transfer-encoding"] = "chunked"
        else:
            self.keeps_alive = False
        self._head(status, fields.items())

    async def write(self, data: bytes) -> None:
        """Send the next piece; raises `Gone` when nobody listens."""
        self._heard()
        self.push(data)
        await self._drained()

    def push(self, data: bytes) -> None:
        """Send a piece without waiting for a client that reads slowly, or is gone."""
        if data and self.request.method != "HEAD" and not self._gone.is_set():
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    async def end(self) -> None:
        """The answer is whole."""
        self._heard()
        if self._chunked and self.request.method != "HEAD":
            self._transport.write(_LAST_CHUNK)
        self.ended = True
        await self._drained()

    def cut(self) -> None:
        """Hang up in the middle of the answer."""
        self._leave()
        self._transport.close()

    def cut_within(self, data: bytes) -> None:
        """Hang up in the middle of a piece."""
        self._heard()
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
        self._writable.clear()

    def resume(self) -> None:
        """The client has caught up."""
        self._writable.set()

    def hang_up(self) -> None:
        """The client is gone."""
        self._gone.set()
        self._writable.set()
        if self._when_gone is not None and not self.ended:
            self._when_gone()

    def _leave(self) -> None:
        self.ended = True
        self.keeps_alive = False

    def _head(self, status: int, fields: Iterable[tuple[str, str]]) -> None:
        self._heard()
        self.started = True
        self.status = status
        lines = [f"{name}: {value}\r\n".encode("latin-1", "replace") for name, value in fields]
        if not self.keeps_alive:
            lines.append(b"connection: close\r\n")
        self._transport.write(b"".join([status_line(status), *lines, b"\r\n"]))

    async def _drained(self) -> None:
        if not self._writable.is_set():
            await self._writable.wait()
        self._heard()

    def _heard(self) -> None:
        if self._gone.is_set():
            raise Gone("the client hung up")
