"""HTTP/1.1 client with a connection pool.

If a pooled connection turns out to be closed before the first byte of the response, the request is sent once more on a
new connection: the server had closed the idle connection before the request. Nothing else is sent twice here.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextvars import ContextVar
from functools import cached_property
from typing import Self

from msgspec import Struct

from dragoman.http.encoding import BadEncoding, BodyTooLarge, Inflater, is_identity
from dragoman.http.message import Headers, Origin, decode_headers, first_header
from dragoman.http.proxies import Proxies, open_tunnel, read_environment_proxies
from dragoman.http.upstream_connection import (
    BrokenReply,
    ConnectionFailure,
    DeadlineExceeded,
    ShuttingDown,
    Unreachable,
    UntrustedCertificate,
    UpstreamConnection,
)

_MAX_IDLE = 30.0
"""Seconds that an idle connection stays in the pool; most servers close theirs after a minute."""
_MAX_BODY = 64 << 20
_SUCCESS = range(200, 300)
_BODILESS_METHODS = frozenset({"GET", "HEAD", "DELETE"})
_MAX_CACHED_HEADS = 256
RECEIVED_MARKS: ContextVar[str] = ContextVar("dragoman_received_marks", default="")
"""The marks of other servers that the current request came through: `Client.mark_requests` sends them on."""


class Deadlines(Struct, frozen=True, kw_only=True):
    """Timeouts in seconds: to connect, until the first byte of the response, and between its bytes."""

    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 300.0


class Outgoing(Struct, frozen=True):
    """A request to send."""

    origin: Origin
    method: str
    target: str
    headers: Headers = ()
    body: bytes = b""


class Incoming(Struct, eq=False):
    """A response: its head, and its body as it arrives. Call `read`, or read the chunks in a `with` block."""

    status: int
    is_success: bool
    """Whether the status is 2xx."""
    _fields: list[bytes]
    _connection: UpstreamConnection
    _inflater: Inflater | None
    """The gateway requests uncompressed bodies; some servers compress them nevertheless."""
    _is_finished: bool = False

    @property
    def headers(self) -> Headers:
        """The headers, with names in lower case."""
        return decode_headers(self._fields)

    @property
    def is_uncompressed(self) -> bool:
        """Whether the server sent the body uncompressed."""
        return self._inflater is None

    def header(self, name: str, default: str = "") -> str:
        """Return the value of the first header with this lower-case name."""
        return first_header(self.headers, name, default)

    async def read_chunk(self) -> bytes:
        """Return the next bytes of the body; empty at its end."""
        if self._is_finished:
            return b""
        chunk = await self._connection.read_chunk()
        if self._inflater is not None:
            chunk = await self._inflate(self._inflater, chunk)
        if not chunk:
            self._is_finished = True
            self._connection.release()
        return chunk

    async def deliver_to(self, on_data: Callable[[bytes], bool]) -> bool:
        """Call `on_data` with each chunk as it arrives, until it returns False; return whether the body is complete."""
        if self._is_finished:
            return True
        if self._inflater is not None:
            while (chunk := await self.read_chunk()) and on_data(chunk):
                pass
            return not chunk
        is_complete = await self._connection.deliver_to(on_data)
        if is_complete:
            self._is_finished = True
            self._connection.release()
        return is_complete

    async def _inflate(self, inflater: Inflater, chunk: bytes) -> bytes:
        """Return decompressed bytes; read on while there are none, because empty bytes mean the end of the body."""
        try:
            while chunk:
                if plain := inflater.feed(chunk):
                    return plain
                chunk = await self._connection.read_chunk()
            inflater.close()
        except (BadEncoding, BodyTooLarge) as error:
            raise BrokenReply(f"the response body cannot be decompressed: {error}") from None
        return b""

    async def read(self, max_bytes: int = _MAX_BODY) -> bytes:
        """Return the whole body."""
        connection = self._connection
        if connection.is_complete and self._inflater is None and not self._is_finished:
            # The body arrived together with the head, as most do.
            self._is_finished = True
            body = connection.take()
            connection.release()
        else:
            body = await self._read_chunks(max_bytes)
        if len(body) > max_bytes:
            raise BrokenReply(f"the response is larger than {max_bytes} bytes")
        return body

    async def _read_chunks(self, max_bytes: int) -> bytes:
        chunks: list[bytes] = []
        size = 0

        def add(chunk: bytes) -> bool:
            nonlocal size
            chunks.append(chunk)
            size += len(chunk)
            return size <= max_bytes

        with self:
            await self.deliver_to(add)
        return b"".join(chunks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Return the connection to the pool, or close it after an error."""
        if kind is None:
            self.drain()
        else:
            self.close()

    def drain(self) -> None:
        """Stop reading and drop the rest of the body. The connection returns to the pool if the rest is short."""
        if not self._is_finished:
            self._is_finished = True
            self._connection.drain()

    def close(self) -> None:
        """Stop reading and close the connection."""
        if not self._is_finished:
            self._is_finished = True
            self._connection.abort()


def _build_inflater(connection: UpstreamConnection) -> Inflater | None:
    if b"content-encoding" not in map(bytes.lower, connection.fields):
        return None
    encoding = first_header(connection.headers, "content-encoding")
    return None if is_identity(encoding) else Inflater(encoding)


def _find_cause(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "dns"
    return "refused" if isinstance(error, ConnectionRefusedError) else "unreachable"


class Client:
    """Sends requests and pools connections by server."""

    def __init__(self, proxies: Proxies | None = None, ssl_context: ssl.SSLContext | None = None) -> None:
        self._pools: dict[Origin, list[UpstreamConnection]] = {}
        """Idle connections."""
        self._open: set[UpstreamConnection] = set()
        """All open connections, also those that are dropping the rest of a response."""
        self._heads: dict[tuple[Origin, str, str, Headers], bytes] = {}
        self._proxies = proxies or read_environment_proxies()
        self._given_context = ssl_context
        self._is_stopped = False
        self._marked_hosts: frozenset[str] = frozenset()
        self._mark = ""

    @cached_property
    def _ssl_context(self) -> ssl.SSLContext:
        # Loading the certificates is slow, and a client of local servers needs none.
        return self._given_context or ssl.create_default_context()

    async def send(self, request: Outgoing, deadlines: Deadlines) -> Incoming:
        """Send a request and return the response as soon as its head has arrived."""
        if self._is_stopped:
            raise ShuttingDown("the client is stopped")
        head = self._build_head(request)
        pooled = self._take_pooled(request.origin)
        connection = pooled or await self._open_connection(request.origin, deadlines.connect)
        while True:
            is_answered = False
            try:
                await connection.send(head, request.body, deadlines.first_byte)
                if not connection.is_complete:
                    connection.check_head(deadlines.idle)
                is_answered = True
                status = connection.status
                return Incoming(status, status in _SUCCESS, connection.fields, connection, _build_inflater(connection))
            except Unreachable:
                if connection is not pooled:
                    raise
            finally:
                if not is_answered:
                    connection.abort()
            connection = await self._open_connection(request.origin, deadlines.connect)

    def mark_requests(self, hosts: frozenset[str], name: str, value: str) -> None:
        """Add a header to every request to one of `hosts`, so that a server recognises its own requests.

        The marks of other servers that a request came through (`RECEIVED_MARKS`) are appended.
        """
        self._marked_hosts, self._mark = hosts, f"{name}: {value}"
        self._heads.clear()

    def fail_all(self) -> None:
        """Let all responses that are being received fail with `ShuttingDown`, and every later request."""
        self._is_stopped = True
        for connection in list(self._open):
            connection.fail(ShuttingDown("the client is stopped"))

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._open:
            connection.abort()
        self._pools.clear()
        await asyncio.sleep(0)  # the event loop closes them in its next iteration

    def _build_head(self, request: Outgoing) -> bytes:
        received = RECEIVED_MARKS.get()
        if received and request.origin.host in self._marked_hosts:
            return self._finish_head(self._build_head_without_length(request, f"{self._mark}, {received}"), request)
        # Requests to the same URL have the same head except for its content-length.
        key = (request.origin, request.method, request.target, request.headers)
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= _MAX_CACHED_HEADS:
                self._heads.clear()
            head = self._heads[key] = self._build_head_without_length(request, self._mark)
        return self._finish_head(head, request)

    def _finish_head(self, head: bytes, request: Outgoing) -> bytes:
        if request.body or request.method not in _BODILESS_METHODS:
            return b"%bcontent-length: %d\r\n\r\n" % (head, len(request.body))
        return head + b"\r\n"

    def _build_head_without_length(self, request: Outgoing, mark: str) -> bytes:
        origin = request.origin
        proxy = self._proxies.find_proxy(origin) if self._proxies else None
        is_plain_proxy = proxy is not None and not origin.is_secure
        target = origin.url + request.target if is_plain_proxy else request.target
        lines = [f"{request.method} {target} HTTP/1.1", f"host: {origin.authority}"]
        lines += [f"{name}: {value}" for name, value in request.headers]
        if origin.host in self._marked_hosts:
            lines.append(mark)
        if is_plain_proxy and proxy is not None and proxy.credentials:
            lines.append(f"proxy-authorization: {proxy.credentials}")
        head = "\r\n".join(lines)
        if head.count("\n") != len(lines) - 1 or "\0" in head:
            raise ValueError("a header or path must not contain line feeds or NUL")
        return f"{head}\r\n".encode("latin-1")

    def _take_pooled(self, origin: Origin) -> UpstreamConnection | None:
        """Return a pooled connection that is still usable, or None."""
        pool = self._pools.get(origin)
        while pool:
            connection = pool.pop()
            if connection.is_reusable and connection.idle_seconds < _MAX_IDLE:
                return connection
            connection.abort()
        return None

    async def _open_connection(self, origin: Origin, seconds: float) -> UpstreamConnection:
        """Open a connection within `seconds`; every error is a `ConnectionFailure`."""
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connect(origin)
        except TimeoutError:
            raise DeadlineExceeded(f"could not connect to {origin.authority} within {seconds:g} seconds") from None
        except ssl.SSLError as error:
            raise UntrustedCertificate(f"TLS connection to {origin.authority} failed: {error}") from None
        except ConnectionFailure:
            raise
        except OSError as error:
            reason = f"{origin.authority} cannot be reached: {error.strerror or error}"
            raise Unreachable(reason, _find_cause(error)) from None
        self._open.add(connection)
        connection.on_lost = self._open.discard
        connection.pool = self._pools.setdefault(origin, [])
        return connection

    async def _connect(self, origin: Origin) -> UpstreamConnection:
        proxy = self._proxies.find_proxy(origin) if self._proxies else None
        if proxy is not None and origin.is_secure:
            return await open_tunnel(proxy, origin, self._ssl_context)
        peer = origin if proxy is None else proxy.origin
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            UpstreamConnection, peer.host, peer.port, ssl=self._ssl_context if peer.is_secure else None
        )
        return connection
