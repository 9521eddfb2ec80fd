"""One connection to a server: a request out, its reply in, as often as both sides like.

Bytes of a reply are handed on as they come. When nobody takes them, reading stops; when none come for too long, the
reply ends in `TooSlow`.
"""

import asyncio
from typing import TYPE_CHECKING, cast

import httptools

from dragoman.http.message import decode_headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.http.message import Headers

_MAX_HELD = 1 << 20
_LENGTH_HEADERS = frozenset({"content-length", "transfer-encoding"})
_DRAIN_SECONDS = 1.0
_MAX_POOLED = 64
_FIRST_FINAL_STATUS = 200
"""Replies below this say that the real one follows."""


class ConnectionFailure(ConnectionError):  # noqa: N818  what a caller catches; the kinds below say which
    """A server could not be asked, or did not answer to the end."""


class Unreachable(ConnectionFailure):
    """Nobody answers there: refused, unknown host, or closed before the first byte of a reply."""


class UntrustedCertificate(ConnectionFailure):
    """The server's certificate does not prove who it is."""


class DeadlineExceeded(ConnectionFailure):
    """A deadline passed."""


class BrokenReply(ConnectionFailure):
    """The reply breaks off, or is no HTTP."""


class UpstreamConnection(asyncio.Protocol):
    """A connection and the reply that is being read from it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._held_chunks: list[bytes] = []
        """The body as far as it has arrived and nobody has taken it."""
        self.on_body = self._held_chunks.append  # the parser calls it
        self._parser = httptools.HttpResponseParser(self)
        self._held_size = 0
        """At least the bytes that are held."""
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        """When the timer is over."""
        self._timeout = 0.0
        """How many seconds it may be silent."""
        self.last_activity = 0.0
        """When the last bytes were sent or arrived."""
        self._is_paused = False
        self._is_bodiless = False
        self._is_drained = False
        """The rest of the reply is dropped."""
        self._on_data: Callable[[bytes], bool] | None = None
        """Called with each piece of the body as soon as it arrives, until it returns False."""
        self._delivery_error: Exception | None = None
        self.status = 0
        self.fields: list[bytes] = []
        """The headers of the reply: names and values in turn."""
        self.has_head = False
        self.is_complete = True
        self.failure: ConnectionFailure | None = None
        self.is_reusable = True
        self.pool: list[UpstreamConnection] = []
        """Where the connection waits for its next request."""
        self.on_lost: Callable[[UpstreamConnection], object] | None = None
        """Called when the connection closes."""

    @property
    def headers(self) -> "Headers":
        """The headers of the reply, decoded: most of its readers need none."""
        return decode_headers(self.fields)

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The server has accepted the connection."""
        self.transport = cast("asyncio.Transport", transport)  # a stream client makes no other, nor does uvloop

    def connection_lost(self, exc: Exception | None) -> None:
        """The server is gone: the end of a reply without a length, else a failure."""
        del exc
        self.is_reusable = False
        self._stop_timer()
        if not self.is_complete and self.failure is None:
            if not self.has_head:
                self._fail(Unreachable("the connection was closed before a reply came"))
            elif _LENGTH_HEADERS.isdisjoint(dict(self.headers)):
                self.is_complete = True
            else:
                self._fail(BrokenReply("the connection was closed in the middle of a reply"))
        if self.on_lost is not None:
            self.on_lost(self)
        self._wake()

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived."""
        self.last_activity = self._loop.time()
        if self.is_complete:
            self.is_reusable = False  # not requested: it must not be taken for the next reply
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.is_reusable = False
            self._fail(BrokenReply(f"the reply is no HTTP: {error}"))
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
        except Exception as error:  # noqa: BLE001  raised by `deliver_to`: it is not the connection's
            self._delivery_error = error
        self._on_data = None
        self._wake()

    def _note_held(self, size: int) -> None:
        """Note that so many bytes have arrived for nobody yet, or for a reply that is dropped."""
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
            if self._held_size > _MAX_HELD and not self._is_paused and not self.transport.is_closing():
                self._is_paused = True
                self.transport.pause_reading()

    # Called by the parser

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise httptools.HttpParserError("a second reply came behind the first")
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
            self.is_reusable = False  # the parser waits for the body that the head speaks of
        elif not self._parser.should_keep_alive():
            self.is_reusable = False

    def on_message_complete(self) -> None:
        if self.has_head:
            self.is_complete = True
            self._wake()

    # Called by the client

    def send(self, head: bytes, body: bytes, timeout: float) -> "asyncio.Future[None]":
        """Send a request; return what to await before `check_head`. The reply must begin within `timeout` seconds."""
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
        """Raise the failure if no head came; from now on the reply must not be silent for `timeout` seconds."""
        if not self.has_head and self.failure is not None:
            raise self.failure
        if not self.is_complete:
            self._set_timeout(timeout)

    async def read_chunk(self) -> bytes:
        """Return what has arrived of the body since the last time; nothing means that it is whole."""
        while not self._held_chunks:
            if self.is_complete:
                return b""
            if self.failure is not None:
                raise self.failure
            await self._wait()
        return self.take()

    def take(self) -> bytes:
        """Return what has arrived of the body and was not taken yet."""
        body = b"".join(self._held_chunks)
        self._held_chunks.clear()
        if self._held_size:
            self._release_held()
        return body

    def _release_held(self) -> None:
        """Nothing is held any more: reading goes on."""
        self._held_size = 0
        if self._is_paused:
            self._is_paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    async def deliver_to(self, on_data: "Callable[[bytes], bool]") -> bool:
        """Call `on_data` with each piece as it arrives, until it returns False; return whether the body is whole.

        A task that waits for each piece would cost more than most pieces do.
        """
        goes_on = not self._held_chunks or on_data(self.take())
        if goes_on and not self.is_complete and self.failure is None:
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
        """Keep the connection for the next request, if it can be used again."""
        if self.is_reusable and len(self.pool) < _MAX_POOLED:
            self.pool.append(self)
        else:
            self.transport.close()

    def abort(self) -> None:
        """End the connection now."""
        self.is_reusable = False
        self._stop_timer()
        self.transport.abort()

    def drain(self) -> None:
        """Drop the rest of a reply that nobody wants, and keep the connection if that is short and comes soon."""
        self._held_chunks.clear()
        if self.is_complete:
            self.release()
        elif self._is_paused:
            self.abort()  # more has arrived than anybody wants to drop
        elif self.failure is None:
            self._is_drained = True
            self._set_timeout(_DRAIN_SECONDS)

    # Deadlines

    def _set_timeout(self, seconds: float) -> None:
        self._timeout = seconds
        now = self.last_activity = self._loop.time()
        due = now + seconds
        # A timer that runs already is set anew when it is over: making one for each request would cost more.
        if self._timer is None or due < self._due:
            self._stop_timer()
            self._set_timer(due)

    def _set_timer(self, due: float) -> None:
        self._due = due
        self._timer = self._loop.call_at(due, self._check_timeout)

    def _check_timeout(self) -> None:
        """Fail if nothing arrived in all that time; bytes only note when they came, so that each costs nothing here."""
        self._timer = None
        if self.is_complete:
            return
        now = self._loop.time()
        due = self.last_activity + self._timeout
        if due > now + 0.001 or self._is_paused:
            self._set_timer(max(due, now + 1.0) if self._is_paused else due)
            return
        silence = "the reply came to a halt" if self.has_head else "no reply came"
        self._fail(DeadlineExceeded(f"{silence} within {self._timeout:g} seconds"))
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
