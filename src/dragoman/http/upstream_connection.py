"""One HTTP/1.1 connection to a server, for one request and response after another.

The body of a response is delivered as it arrives. While the caller does not read it, reading from the socket pauses. If
no bytes arrive for too long, the response fails with `DeadlineExceeded`.

All connections read into the same small buffer: event loops would read a quarter of a megabyte at once, which a client
that stalls then holds, and more once it is translated.
"""

import asyncio
from typing import TYPE_CHECKING, cast

import httptools

from dragoman.http.message import decode_headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.http.message import Headers

_MAX_UNREAD = 8 << 10
"""Bytes of a response that its reader has not taken, above which no more are read: a stalled client holds them."""
_READ_BUFFER = memoryview(bytearray(8 << 10))
"""Where all connections read: a loop calls `buffer_updated` as soon as it has read."""
_MAX_HELD = 1 << 20
_LENGTH_HEADERS = frozenset({"content-length", "transfer-encoding"})
_DRAIN_SECONDS = 1.0
_MAX_POOLED = 64
_FIRST_FINAL_STATUS = 200
"""Responses with a lower status are interim: the final response follows."""


class ConnectionFailure(ConnectionError):  # noqa: N818  the base class that callers catch
    """A request could not be sent, or its response is incomplete."""

    cause = "closed"
    """What went wrong, in a word or two that name no address."""

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause or self.cause


class Unreachable(ConnectionFailure):
    """Connection refused, unknown host, or closed before the first byte of a response."""


class UntrustedCertificate(ConnectionFailure):
    """The server's TLS certificate could not be verified."""

    cause = "tls"


class DeadlineExceeded(ConnectionFailure):
    """A timeout expired."""

    cause = "timeout: connect"


class BrokenReply(ConnectionFailure):
    """The response is incomplete, or is not valid HTTP."""

    cause = "broken reply"


class ShuttingDown(ConnectionFailure):
    """The client stops, because its program does."""

    cause = "shutdown"


class UpstreamConnection(asyncio.BufferedProtocol):
    """A connection and the response that is being read from it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._held_chunks: list[bytes] = []
        """Received chunks of the body that the caller has not read."""
        self.on_body = self._held_chunks.append  # the parser calls it
        self._parser = httptools.HttpResponseParser(self)
        self._held_size = 0
        """Upper bound of the bytes in `_held_chunks`."""
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        """When the timer fires."""
        self._timeout = 0.0
        """Seconds that may pass without bytes."""
        self.last_activity = 0.0
        """When bytes were last sent or received."""
        self._is_paused = False
        self._is_bodiless = False
        self._is_drained = False
        """Whether the rest of the response is dropped."""
        self._on_data: Callable[[bytes], bool] | None = None
        """Called with each chunk of the body as soon as it arrives, until it returns False."""
        self._delivery_error: Exception | None = None
        self.status = 0
        self.fields: list[bytes] = []
        """The headers of the response: names and values, alternating."""
        self.has_head = False
        self.is_complete = True
        self.failure: ConnectionFailure | None = None
        self.is_reusable = True
        self.pool: list[UpstreamConnection] = []
        """The idle connections to the same server, where `release` puts this one."""
        self.on_lost: Callable[[UpstreamConnection], object] | None = None
        """Called when the connection closes."""

    @property
    def headers(self) -> "Headers":
        """The headers of the response, decoded on demand because most callers need none."""
        return decode_headers(self.fields)

    @property
    def idle_seconds(self) -> float:
        """The time since bytes were last sent or received."""
        return self._loop.time() - self.last_activity

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called when the server has accepted the connection."""
        self.transport = cast("asyncio.Transport", transport)  # the only type that asyncio and uvloop use for streams

    def connection_lost(self, exc: Exception | None) -> None:
        """Called when the connection closes: the end of a response without a length, else a failure."""
        del exc
        self.is_reusable = False
        self._stop_timer()
        if not self.is_complete and self.failure is None:
            if not self.has_head:
                self._fail(Unreachable("the connection was closed before the response"))
            elif _LENGTH_HEADERS.isdisjoint(dict(self.headers)):
                self.is_complete = True
            else:
                self._fail(BrokenReply("the connection was closed in the middle of the response"))
        if self.on_lost is not None:
            self.on_lost(self)
        self._wake()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Called by the event loop for the buffer to read into."""
        del sizehint
        return _READ_BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        """Called when bytes were read into the buffer."""
        self.receive(bytes(_READ_BUFFER[:nbytes]))

    def receive(self, data: bytes) -> None:
        """Parse the received bytes."""
        self.last_activity = self._loop.time()
        if self.is_complete:
            self.is_reusable = False  # unsolicited bytes must not become part of the next response
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.is_reusable = False
            self._fail(BrokenReply(f"the response is not valid HTTP: {error}"))
        on_data = self._on_data
        if on_data is None:
            if not self.is_complete or self._is_drained:
                self._note_held(len(data))
        elif self._held_chunks:
            self._deliver(on_data)

    def _deliver(self, on_data: "Callable[[bytes], bool]") -> None:
        body = b"".join(self._held_chunks)
        self._held_chunks.clear()
        try:
            if on_data(body):
                return
        except Exception as error:  # noqa: BLE001  an error of the caller, raised again by `deliver_to`
            self._delivery_error = error
        self._on_data = None
        if not self.is_complete:
            self._pause()
        self._wake()

    def _note_held(self, size: int) -> None:
        """Account for `size` bytes that the caller has not read yet, or that are dropped."""
        self._held_size += size
        if self._is_drained:
            self._held_chunks.clear()
            if self.is_complete:
                self._is_drained = False
                self.release()
            elif self._held_size > _MAX_HELD:
                self.abort()
        elif self.has_head:
            self._wake()
            if self._held_size > _MAX_UNREAD:
                self._pause()

    def _pause(self) -> None:
        """Read no more until the reader takes what has arrived."""
        if not self._is_paused and not self.transport.is_closing():
            self._is_paused = True
            self.transport.pause_reading()

    # Called by the parser

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise httptools.HttpParserError("the server sent a second response")
        self._fields: list[bytes] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += name, value

    def on_headers_complete(self) -> None:
        status = self.status = self._parser.get_status_code()
        if status < _FIRST_FINAL_STATUS:
            return
        self.fields, self._fields = self._fields, []
        self.has_head = True
        if self._is_bodiless:
            self.on_message_complete()
            self.is_reusable = False  # the parser waits for the body that the head announces
        elif not self._parser.should_keep_alive():
            self.is_reusable = False

    def on_message_complete(self) -> None:
        if self.has_head:
            self.is_complete = True
            self._wake()

    # Called by the client

    def send(self, head: bytes, body: bytes, timeout: float) -> "asyncio.Future[None]":
        """Send a request whose response must begin within `timeout` seconds.

        Return a future to await before `check_head`.
        """
        self._is_bodiless = head.startswith(b"HEAD ")
        self.has_head = self.is_complete = False
        self._set_timeout(timeout)
        if len(body) < _MAX_HELD:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)
        waiter = self._waiter = self._loop.create_future()
        return waiter

    def check_head(self, timeout: float) -> None:
        """Raise the failure if no head arrived; from now on the timeout between bytes is `timeout` seconds."""
        if not self.has_head and self.failure is not None:
            raise self.failure
        if not self.is_complete:
            self._set_timeout(timeout)

    async def read_chunk(self) -> bytes:
        """Return the bytes of the body that arrived since the last call; empty at its end."""
        while not self._held_chunks:
            if self.is_complete:
                return b""
            if self.failure is not None:
                raise self.failure
            self._release_held()
            await self._wait()
        return self.take()

    def take(self) -> bytes:
        """Return the buffered bytes of the body and empty the buffer."""
        body = b"".join(self._held_chunks)
        self._held_chunks.clear()
        self._held_size = 0
        if self._is_paused:
            self._release_held()
        return body

    def _release_held(self) -> None:
        """Resume reading after the buffer was emptied."""
        self._held_size = 0
        if self._is_paused:
            self._is_paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    async def deliver_to(self, on_data: "Callable[[bytes], bool]") -> bool:
        """Call `on_data` with each chunk as it arrives, until it returns False; return whether the body is complete.

        Waking a task for each chunk would cost more than most chunks do.
        """
        reads_on = not self._held_chunks or on_data(self.take())
        if reads_on and not self.is_complete and self.failure is None:
            self._release_held()
            self._on_data = on_data
            try:
                await self._wait()
            finally:
                self._on_data = None
        error, self._delivery_error = self._delivery_error, None
        if error is not None:
            raise error
        if self.failure is not None and not self.is_complete and not self._held_chunks:
            raise self.failure
        return self.is_complete and not self._held_chunks

    def release(self) -> None:
        """Return the connection to the pool, or close it if it cannot be reused."""
        if self.is_reusable and len(self.pool) < _MAX_POOLED:
            self.pool.append(self)
        else:
            self.transport.close()

    def abort(self) -> None:
        """Close the connection immediately."""
        self.is_reusable = False
        self._stop_timer()
        self.transport.abort()

    def fail(self, failure: ConnectionFailure) -> None:
        """Let the response that is being received fail, if there is one, and close the connection."""
        if not self.is_complete:
            self._fail(failure)
        self.abort()

    def drain(self) -> None:
        """Drop the rest of the response; the connection returns to the pool if the rest is short and arrives soon."""
        self._held_chunks.clear()
        if self.is_complete:
            self.release()
        elif self._held_size > _MAX_UNREAD:
            self.abort()  # the rest is too long to drop
        elif self.failure is None:
            self._release_held()
            self._is_drained = True
            self._set_timeout(_DRAIN_SECONDS)

    # Deadlines

    def _set_timeout(self, seconds: float) -> None:
        self._timeout = seconds
        now = self.last_activity = self._loop.time()
        due = now + seconds
        # A running timer is extended when it fires, which is cheaper than a new timer for each request.
        if self._timer is None or due < self._due:
            self._stop_timer()
            self._set_timer(due)

    def _set_timer(self, due: float) -> None:
        self._due = due
        self._timer = self._loop.call_at(due, self._check_timeout)

    def _check_timeout(self) -> None:
        """Fail if no bytes arrived within the timeout; received bytes only store the time, which is cheap."""
        self._timer = None
        if self.is_complete:
            return
        now = self._loop.time()
        due = self.last_activity + self._timeout
        if due > now + 0.001 or self._is_paused:
            self._set_timer(max(due, now + 1.0) if self._is_paused else due)
            return
        event = "the response stalled: no bytes" if self.has_head else "no response"
        cause = "timeout: idle" if self.has_head else "timeout: first byte"
        self._fail(DeadlineExceeded(f"{event} within {self._timeout:g} seconds", cause))
        self.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fail(self, failure: ConnectionFailure) -> None:
        self.failure = failure
        self._stop_timer()
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _wait(self) -> "asyncio.Future[None]":
        self._waiter = self._loop.create_future()
        return self._waiter
