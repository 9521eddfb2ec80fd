"""Ask servers over HTTP/1.1, keeping connections for the next request.

A kept connection that turns out to be closed before a byte of the reply came is replaced once by a fresh one: the
server had given it up before the request. Nothing else is sent twice here.
"""

import asyncio
import ssl
from collections.abc import Callable
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
    Unreachable,
    UntrustedCertificate,
    UpstreamConnection,
)

_MAX_IDLE = 30.0
"""Seconds a connection is kept unused; most servers close theirs after a minute."""
_MAX_BODY = 64 << 20
_SUCCESS = range(200, 300)
_BODILESS_METHODS = frozenset({"GET", "HEAD", "DELETE"})
_MAX_CACHED_HEADS = 256


class Deadlines(Struct, frozen=True, kw_only=True):
    """Seconds to wait for a connection, for the first byte of a reply, and between its bytes."""

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
    """A reply: its head, and its body as it arrives. `read` it, or take its pieces in a `with` block."""

    status: int
    is_success: bool
    """The status is a success."""
    _fields: list[bytes]
    _connection: UpstreamConnection
    _inflater: Inflater | None
    """The gateway asks for plain bodies; some servers compress them nevertheless."""
    _is_finished: bool = False

    @property
    def headers(self) -> Headers:
        """The headers; their names are lower case."""
        return decode_headers(self._fields)

    @property
    def is_uncompressed(self) -> bool:
        """Tell whether the body comes as it was sent, not unpacked here."""
        return self._inflater is None

    def header(self, name: str, default: str = "") -> str:
        """Return the first header called `name`, in lower case."""
        return first_header(self.headers, name, default)

    async def read_chunk(self) -> bytes:
        """Return the next bytes; nothing means that the body is whole."""
        if self._is_finished:
            return b""
        piece = await self._connection.read_chunk()
        if self._inflater is not None:
            piece = await self._inflate(self._inflater, piece)
        if not piece:
            self._is_finished = True
            self._connection.release()
        return piece

    async def deliver_to(self, on_data: Callable[[bytes], bool]) -> bool:
        """Call `on_data` with each piece as it comes, until it returns False; return whether the body is whole."""
        if self._is_finished:
            return True
        if self._inflater is not None:
            while (piece := await self.read_chunk()) and on_data(piece):
                pass
            return not piece
        is_whole = await self._connection.deliver_to(on_data)
        if is_whole:
            self._is_finished = True
            self._connection.release()
        return is_whole

    async def _inflate(self, inflater: Inflater, chunk: bytes) -> bytes:
        """Return decompressed bytes; read on while there are none yet, which must not look like the end."""
        try:
            while chunk:
                if plain := inflater.feed(chunk):
                    return plain
                chunk = await self._connection.read_chunk()
            inflater.close()
        except (BadEncoding, BodyTooLarge) as error:
            raise BrokenReply(f"the reply cannot be unpacked: {error}") from None
        return b""

    async def read(self, max_bytes: int = _MAX_BODY) -> bytes:
        """Return the whole body."""
        link = self._connection
        if link.is_complete and self._inflater is None and not self._is_finished:
            # It came with its head, as most do.
            self._is_finished = True
            body = link.take()
            link.release()
        else:
            body = await self._read_chunks(max_bytes)
        if len(body) > max_bytes:
            raise BrokenReply(f"the reply is larger than {max_bytes} bytes")
        return body

    async def _read_chunks(self, max_bytes: int) -> bytes:
        pieces: list[bytes] = []
        size = 0
        with self:
            while size <= max_bytes and (piece := await self.read_chunk()):
                pieces.append(piece)
                size += len(piece)
        return b"".join(pieces)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Return the connection to the pool, or close it after an error."""
        if kind is None:
            self.drain()
        else:
            self.close()

    def drain(self) -> None:
        """Take no more of it: all that matters has come. The connection is kept if the rest is short."""
        if not self._is_finished:
            self._is_finished = True
            self._connection.drain()

    def close(self) -> None:
        """Take no more of it. What has not come yet ends with the connection."""
        if not self._is_finished:
            self._is_finished = True
            self._connection.abort()


def _build_inflater(connection: UpstreamConnection) -> Inflater | None:
    if b"content-encoding" not in map(bytes.lower, connection.fields):
        return None
    encoding = first_header(connection.headers, "content-encoding")
    return None if is_identity(encoding) else Inflater(encoding)


class Client:
    """Asks servers, and keeps connections to them."""

    def __init__(self, proxies: Proxies | None = None, trust: ssl.SSLContext | None = None) -> None:
        self._pools: dict[Origin, list[UpstreamConnection]] = {}
        """Connections that wait for their next request."""
        self._open: set[UpstreamConnection] = set()
        """All connections there are: also those that let the rest of a reply go by."""
        self._heads: dict[tuple[Origin, str, str, Headers], bytes] = {}
        self._proxies = proxies or read_environment_proxies()
        self._given_trust = trust

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        # Reading the certificates takes long, and a client of local servers needs none.
        return self._given_trust or ssl.create_default_context()

    async def send(self, request: Outgoing, deadlines: Deadlines) -> Incoming:
        """Send a request and return its reply as soon as the head is there."""
        head = self._build_head(request)
        kept = self._take_pooled(request.origin)
        link = kept or await self._open_connection(request.origin, deadlines.connect)
        while True:
            is_answered = False
            try:
                await link.send(head, request.body, deadlines.first_byte)
                if not link.is_complete:
                    link.check_head(deadlines.idle)
                is_answered = True
                return Incoming(link.status, link.status in _SUCCESS, link.fields, link, _build_inflater(link))
            except Unreachable:
                if link is not kept:
                    raise
            finally:
                if not is_answered:
                    link.abort()
            link = await self._open_connection(request.origin, deadlines.connect)

    async def close(self) -> None:
        """Give up all connections."""
        for link in self._open:
            link.abort()
        self._pools.clear()
        await asyncio.sleep(0)  # they are closed when the loop comes round

    def _build_head(self, request: Outgoing) -> bytes:
        # All but the length of a head is alike for every request to the same place.
        key = (request.origin, request.method, request.target, request.headers)
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= _MAX_CACHED_HEADS:
                self._heads.clear()
            head = self._heads[key] = self._build_head_without_length(request)
        if request.body or request.method not in _BODILESS_METHODS:
            return b"%bcontent-length: %d\r\n\r\n" % (head, len(request.body))
        return head + b"\r\n"

    def _build_head_without_length(self, request: Outgoing) -> bytes:
        origin = request.origin
        proxy = self._proxies.find_proxy(origin) if self._proxies else None
        plain = proxy is not None and not origin.is_secure
        target = origin.url + request.target if plain else request.target
        lines = [f"{request.method} {target} HTTP/1.1", f"host: {origin.authority}"]
        lines += [f"{name}: {value}" for name, value in request.headers]
        if plain and proxy is not None and proxy.credentials:
            lines.append(f"proxy-authorization: {proxy.credentials}")
        head = "\r\n".join(lines)
        if head.count("\n") != len(lines) - 1 or "\0" in head:
            raise ValueError("a header or path must be one line")
        return f"{head}\r\n".encode("latin-1")

    def _take_pooled(self, origin: Origin) -> UpstreamConnection | None:
        """Return a kept connection that can be used again."""
        pool = self._pools.get(origin)
        while pool:
            link = pool.pop()
            if link.is_reusable and asyncio.get_running_loop().time() - link.last_activity < _MAX_IDLE:
                return link
            link.abort()
        return None

    async def _open_connection(self, origin: Origin, seconds: float) -> UpstreamConnection:
        """Open a connection within so many seconds; every error is a `Failure`."""
        try:
            async with asyncio.timeout(seconds):
                link = await self._connect(origin)
        except TimeoutError:
            raise DeadlineExceeded(f"{origin.authority} did not take a connection within {seconds:g} seconds") from None
        except ssl.SSLError as error:
            raise UntrustedCertificate(f"no trusted connection to {origin.authority}: {error}") from None
        except ConnectionFailure:
            raise
        except OSError as error:
            raise Unreachable(f"{origin.authority} cannot be reached: {error.strerror or error}") from None
        self._open.add(link)
        link.on_lost = self._open.discard
        link.pool = self._pools.setdefault(origin, [])
        return link

    async def _connect(self, origin: Origin) -> UpstreamConnection:
        proxy = self._proxies.find_proxy(origin) if self._proxies else None
        if proxy is not None and origin.is_secure:
            return await open_tunnel(proxy, origin, self._trust)
        peer = origin if proxy is None else proxy.origin
        loop = asyncio.get_running_loop()
        _, link = await loop.create_connection(
            UpstreamConnection, peer.host, peer.port, ssl=self._trust if peer.is_secure else None
        )
        return link
