"""One client connection: parse requests from its bytes and call the handler for one after the other.

An invalid request is rejected with a status, after the responses to the requests before it, and the connection is
closed. Pipelined requests are read up to a size limit and answered in order. A request must arrive in time, its head
within a timeout and its body at a minimum rate, so that slow clients do not occupy connections. A client that does not
read its response is disconnected.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal, cast

import httptools

from dragoman.http.admission import RequestPolicy
from dragoman.http.encoding import ENTITY_HEADERS, BadEncoding, BodyTooLarge, decode_body, encoding_error
from dragoman.http.exchange import ClientDisconnected, Exchange
from dragoman.http.message import Headers, Request, decode_headers, is_ambiguous
from dragoman.http.rejection import RejectionResponse, build_rejection, render_rejection, render_without_upgrade
from dragoman.http.write_deadline import CLOCK_STEP, WriteDeadline
from dragoman.tasks import start_task

RequestHandler = Callable[[Exchange], Awaitable[None]]
_MAX_PIPELINED = 256 << 10
"""Bytes of pipelined requests that are read while another request is handled."""
_REQUEST_COST = 1 << 10
"""Estimated memory in bytes that a request needs in addition to its head and body."""
_MAX_FIELDS = 2 * 256
"""Maximum number of header names and values together."""
_MIN_BODY_RATE = 16 << 10
"""Minimum rate in bytes per second at which a body may take longer than `body_seconds`."""
_LINGER_SECONDS = 2.0
"""Seconds that a rejected client has to finish sending: one that is reset while it sends never reads the response."""
_MAX_DRAINED = 256 << 10
"""Bytes that a rejected client may still send before the connection is closed."""
_WRITE_BUFFER = 32 << 10
"""Bytes of a response that a client has not taken, above which its handler waits."""
_SURPLUS = 256
"""Connections beyond the limit that are kept open until their first request is rejected."""
_SHORTEST_TICK = 0.01
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_BODY_HEADERS = frozenset({"expect", "transfer-encoding", "content-encoding"})


class Connection(asyncio.Protocol):
    """Parses the requests of one client connection and runs the handler for each."""

    def __init__(self, handler: RequestHandler, policy: RequestPolicy, connections: "set[Connection]") -> None:
        self._handler = handler
        self._policy = policy
        self._load = policy.load
        limits = self._limits = policy.load.limits
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._body: list[bytes] = []
        self.on_body = self._body.append  # the parser calls it
        self._parser = httptools.HttpRequestParser(self)
        self._headers: Headers = ()
        self._headers_by_name: dict[str, str] = {}
        self._encoding: str | None = None
        """The content-encoding ("" for none) if a header in `_BODY_HEADERS` is present, else None."""
        self._waiting: deque[Exchange] = deque()
        """Pipelined requests."""
        self._waiting_size = 0
        self._exchange: Exchange | None = None
        """The request that is being handled."""
        self._task: asyncio.Task[None] | None = None
        """The task that handles it."""
        self._timer: asyncio.TimerHandle | None = None
        shortest = min(limits.idle, limits.head_seconds, limits.body_seconds, limits.write_seconds)
        self._tick = max(_SHORTEST_TICK, shortest)
        self._stage_start = 0.0
        """Start time of the current stage, from which its timeout counts."""
        self._is_reading_paused = False
        self._write_deadline = WriteDeadline(limits.write_seconds)
        self._is_surplus = False
        """Whether there are more connections than the limit."""
        self._is_rejected = False
        self._rejection = b""
        """A rejection that waits for the responses to earlier requests."""
        self._drained = 0
        """Bytes that were received and dropped after the rejection."""
        self._is_closing = False
        self.closed = asyncio.Event()
        self.on_message_begin()

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called when a client has connected."""
        self._transport = cast("asyncio.Transport", transport)  # the only type of a stream server
        surplus = len(self._connections) - self._limits.connections
        if surplus >= _SURPLUS:
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(_WRITE_BUFFER)
        self._is_surplus = surplus >= 0
        self._connections.add(self)
        self._stage_start = self._loop.time()
        self._check_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called when the connection is closed."""
        del exc
        self._connections.discard(self)
        self.closed.set()
        self._stop_timer()
        self._load.body_bytes -= self._body_size + sum(len(waiting.request.body) for waiting in self._waiting)
        self._body_size = 0
        self._waiting.clear()
        exchange = self._exchange
        if exchange is not None:
            exchange.note_disconnect()
            if exchange.is_cancelled_on_disconnect and not exchange.ended and self._task is not None:
                self._task.cancel()

    def pause_writing(self) -> None:
        """Called when the write buffer is full because the client reads too slowly."""
        self._write_deadline.start(self._transport, self._loop.time())
        if self._exchange is not None:
            self._exchange.pause()

    def resume_writing(self) -> None:
        """Called when the client has read enough of the write buffer."""
        self._write_deadline.stop()
        if self._exchange is not None:
            self._exchange.resume()

    def data_received(self, data: bytes) -> None:
        """Parse the received bytes."""
        if self._is_rejected:
            self._drain(len(data))
            return
        before = self._stage
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._decline_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._reject(400)
        if self._stage != "quiet":
            self._check_part(before, len(data))

    def _decline_upgrade(self, rest: bytes) -> None:
        """Parse an upgrade request again as plain HTTP, without its `upgrade` header, because its body follows."""
        method, version = self._parser.get_method(), self._parser.get_http_version()
        if method == b"CONNECT":
            self._reject(400)
            return
        self._parser = httptools.HttpRequestParser(self)
        self.data_received(render_without_upgrade(method, self._url, version, self._headers) + rest)

    def _check_part(self, before: str, size: int) -> None:
        """Check the size limits of an incomplete request of which `size` more bytes have arrived."""
        if self._stage == "head":
            self._head_size += size
            if self._head_size > self._limits.head:
                self._reject(431)
        else:
            self._check_head_once()
            received = sum(map(len, self._body[self._counted_chunks :]))
            self._counted_chunks = len(self._body)
            self._body_size += received
            self._load.body_bytes += received
            if self._body_size > self._limits.body:
                self._reject(413)
            elif self._load.body_bytes > self._limits.buffered:
                self._reject(503)
            elif len(self._fields) > _MAX_FIELDS:  # with trailers, which are ignored
                self._reject(431)
        if self._exchange is not None:
            self._pause_if_full()
        elif self._stage != before:
            self._stage_start = self._loop.time()

    # Called by the parser

    def on_message_begin(self) -> None:
        self._stage: Literal["quiet", "head", "body"] = "head"
        self._url = b""
        self._fields: list[bytes] = []
        """Header names and values, alternating."""
        self._is_head_checked = False
        self._head_size = self._body_size = self._counted_chunks = 0
        """Received bytes of head and body, and counted chunks, of a request that arrives in several parts."""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += name, value

    def on_headers_complete(self) -> None:
        self._stage = "body"
        fields = self._fields
        if len(self._url) + sum(map(len, fields)) > self._limits.head or len(fields) > _MAX_FIELDS:
            self._reject(431)
            return
        self._headers = headers = decode_headers(fields)
        by_name = self._headers_by_name = dict(headers)
        if int(by_name.get("content-length", 0)) > self._limits.body:
            self._reject(413)
        elif is_ambiguous(headers, by_name):
            self._reject(400)
        elif self._is_surplus and self._url not in self._policy.unlimited_paths:
            self._reject(503)
        elif not _BODY_HEADERS.isdisjoint(by_name) and not self._parser.should_upgrade():
            self._check_body_headers(by_name)

    def _check_body_headers(self, headers: dict[str, str]) -> None:
        self._encoding = headers.get("content-encoding", "")
        status = encoding_error(headers, self._parser.get_http_version())
        if status is not None:
            self._reject(status)
        elif headers.get("expect", "").lower() == "100-continue" and self._exchange is None:
            self._check_head_once()
            if not self._is_rejected:
                self._transport.write(_CONTINUE)

    def _check_head_once(self) -> None:
        """Let the server reject a request before its body is received; a whole request is checked by its handler."""
        if self._is_head_checked or self._is_rejected or self._policy.check_head is None:
            return
        self._is_head_checked = True
        method, url = self._parser.get_method().decode(), self._url.decode("latin-1")
        rejection = self._policy.check_head(Request(method, url, self._headers))
        if rejection is not None:
            self._reject_with(rejection)

    def on_message_complete(self) -> None:
        parser = self._parser
        if self._is_rejected or parser.should_upgrade():
            return
        self._stage = "quiet"
        body = b"".join(self._body)
        self._body.clear()
        if self._encoding is not None:
            body = self._decompress(body, self._encoding)
            if self._is_rejected:
                return
        self._load.body_bytes += len(body) - self._body_size
        self._body_size = 0
        method, url = parser.get_method().decode(), self._url.decode("latin-1")
        request = Request(method, url, self._headers, body, headers_by_name=self._headers_by_name)
        exchange = Exchange(
            request,
            self._transport,
            keeps_alive=parser.should_keep_alive() and not self._is_surplus,
            supports_chunks=parser.get_http_version() != "1.0",
        )
        if self._exchange is None:
            self._exchange = exchange
            self._task = start_task(self._handle_requests(exchange), "http request", self._loop)
        else:
            self._waiting.append(exchange)
            self._waiting_size += _REQUEST_COST + len(body) + sum(map(len, self._fields))
            self._pause_if_full()

    def _decompress(self, body: bytes, encoding: str) -> bytes:
        """Return the decompressed body; reject a request whose body is too large or invalid."""
        self._encoding = None
        if encoding:
            self._headers = tuple(header for header in self._headers if header[0] not in ENTITY_HEADERS)
            self._headers_by_name = dict(self._headers)
        try:
            return decode_body(body, encoding, self._limits.body)
        except (BadEncoding, BodyTooLarge) as error:
            self._reject(error.status)
            return b""

    def _pause_if_full(self) -> None:
        """Pause reading while enough pipelined data waits for the current response."""
        is_full = self._waiting_size + self._body_size > _MAX_PIPELINED
        if is_full and not self._is_reading_paused and not self._transport.is_closing():
            self._is_reading_paused = True
            self._transport.pause_reading()

    # Responses

    async def _handle_requests(self, exchange: Exchange) -> None:
        """Handle a request and the pipelined requests after it, in order."""
        while True:
            try:
                await self._handler(exchange)
            except ClientDisconnected:
                pass  # no client to respond to
            except Exception as error:  # noqa: BLE001  an error in one handler must not affect other requests
                await self._report(error, exchange)
            finally:
                self._load.body_bytes -= len(exchange.request.body)
            if not exchange.ended or not exchange.keeps_alive:
                self._transport.close()
                break
            if not self._waiting:
                break
            exchange = self._exchange = self._waiting.popleft()
            if not self._waiting:
                self._waiting_size = 0
            if self._is_closing:
                exchange.keeps_alive = False
        self._exchange = None
        self._stage_start = self._loop.time()
        if self._rejection:
            self._send_rejection()
        if self._is_reading_paused and not self._transport.is_closing():
            self._is_reading_paused = False
            self._transport.resume_reading()

    async def _report(self, error: Exception, exchange: Exchange) -> None:
        self._loop.call_exception_handler({"message": "unhandled error in a request handler", "exception": error})
        if not exchange.started:
            exchange.keeps_alive = False
            with suppress(ClientDisconnected):
                await exchange.send(500, {"content-type": "text/plain"}, b"internal error\n")

    def close_when_idle(self) -> None:
        """Close now if no request is being handled, else after the current response."""
        self._is_closing = True
        if self._exchange is not None:
            self._exchange.keeps_alive = False
        elif not self._transport.is_closing():
            self._transport.close()

    def abort(self) -> None:
        """Cancel the current request and close the connection."""
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    def _reject(self, status: int) -> None:
        """Reject the request that is being received, after the responses to those before it, and close."""
        if not self._is_rejected:
            partial_request = Request("", self._url.decode("latin-1"), decode_headers(self._fields))
            self._reject_with(build_rejection(status, partial_request, self._policy.rejection_renderer))

    def _reject_with(self, rejection: RejectionResponse) -> None:
        self._is_rejected = True
        self._body.clear()
        self._load.body_bytes -= self._body_size
        self._body_size = 0
        self._rejection = render_rejection(rejection)
        if self._exchange is None:
            self._send_rejection()

    def _drain(self, size: int) -> None:
        """Drop what a rejected client sends; a client that is reset while it sends may not read the response."""
        self._drained += size
        if self._drained <= _MAX_DRAINED or self._transport.is_closing():
            return
        if self._exchange is None:
            self._transport.close()
        elif not self._is_reading_paused:
            self._is_reading_paused = True
            self._transport.pause_reading()

    def _send_rejection(self) -> None:
        self._is_closing = True
        if self._transport.is_closing():
            return
        self._transport.write(self._rejection)
        self._transport.write_eof()
        self._stop_timer()
        self._timer = self._loop.call_later(_LINGER_SECONDS, self._transport.abort)

    # Deadlines

    def _check_deadline(self) -> None:
        """Disconnect a client that has exceeded a timeout.

        The timer runs all the time, at least once per the shortest limit, so that the start of a timeout only has to
        store the time. No timeout for requests applies while a response is in progress.
        """
        now = self._loop.time()
        due = now + self._tick
        write_due = self._write_deadline.check(self._transport, now)
        due = due if write_due is None else min(due, write_due)
        if self._exchange is None:
            request_due = self._stage_start + self._find_time_limit()
            if request_due > now + CLOCK_STEP:
                due = min(due, request_due)
            elif self._stage == "body" and not self._transport.is_closing():
                self._reject(408)
                return
            else:
                self._transport.close()
        self._timer = self._loop.call_at(due, self._check_deadline)

    def _find_time_limit(self) -> float:
        if self._stage == "body":
            return self._limits.body_seconds + self._body_size / _MIN_BODY_RATE
        return self._limits.idle if self._stage == "quiet" else self._limits.head_seconds

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
