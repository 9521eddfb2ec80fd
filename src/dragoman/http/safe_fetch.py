"""Fetch untrusted URLs with protection against server-side request forgery (SSRF).

A host name is resolved once, each of its addresses is checked, and the connection goes to one of these addresses; TLS
still verifies the host name of the URL. Redirects are checked in the same way. No cookies, no credentials and no reused
connections are sent or used. Proxies are not used, because a proxy would resolve the name again. Fetched pages are
cached for some time and up to some size; the oldest is evicted first.
"""

import asyncio
import socket
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from ipaddress import ip_address
from time import monotonic
from typing import Generic, TypeVar
from urllib.parse import urljoin

from msgspec import Struct

from dragoman.http.addresses import AllowList, LinkRefused, Location, is_public, parse_location
from dragoman.http.encoding import BadEncoding, BodyTooLarge, Inflater
from dragoman.http.message import PORTS
from dragoman.http.upstream_connection import BrokenReply, ConnectionFailure, Unreachable, UpstreamConnection

T = TypeVar("T")


class ExpiringCache(Generic[T]):
    """A cache of values by URL with a lifetime in seconds and a maximum total size."""

    def __init__(self, seconds: float, max_size: int) -> None:
        self._seconds = seconds
        self._max_size = max_size
        self._entries: OrderedDict[str, tuple[float, int, T]] = OrderedDict()
        self._size = 0

    def get(self, url: str) -> T | None:
        """Return the cached value of a URL, or None if there is none or it has expired."""
        found = self._entries.get(url)
        return found[2] if found is not None and found[0] > monotonic() else None

    def put(self, url: str, value: T, size: int) -> None:
        """Cache a value of `size` bytes; a value larger than the whole cache is not cached."""
        self._evict(url)
        if size > self._max_size or self._seconds <= 0:
            return
        self._entries[url] = (monotonic() + self._seconds, size, value)
        self._size += size
        while self._size > self._max_size or next(iter(self._entries.values()))[0] <= monotonic():
            self._evict(next(iter(self._entries)))

    def _evict(self, url: str) -> None:
        _, size, _ = self._entries.pop(url, (0.0, 0, None))
        self._size -= size


Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Resolves a host and port to IP addresses."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS = 5
_MAX_HEAD = 64 << 10
_FRAMING_FACTOR = 2
"""Maximum bytes on the wire per byte of the body: a body in very small chunks consists mostly of framing."""
_SUCCESS = 200
_MAX_LOOKUPS = 8
_MAX_DIGITS = 20
_NO_TIMEOUT = 3600.0
_MAX_ADDRESSES = 3
"""How many addresses of a host are tried."""
_CONNECT_SECONDS = 5.0
"""Connect timeout for each address."""


class ByteBudget:
    """The number of bytes that several fetches may read in total."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.left = limit

    def take(self, size: int) -> None:
        """Deduct `size` bytes; raises `LinkRefused` if fewer are left."""
        self.require(size)
        self.left -= size

    def require(self, size: int) -> None:
        """Raise `LinkRefused` unless `size` bytes are left."""
        if size > self.left:
            raise self.build_error()

    def build_error(self) -> LinkRefused:
        """Return the error for content that exceeds the budget."""
        return LinkRefused(f"its content is larger than {self._limit} bytes")


def _accept_any_type(_: str) -> None:
    """Accept every media type."""


def _admit_any_location(_: Location) -> None:
    """Allow every URL."""


class FetchRules(Struct, frozen=True, kw_only=True):
    """Request headers of a fetch, and which URLs and media types it accepts."""

    headers: tuple[tuple[str, str], ...] = (("accept", "*/*"),)
    admit: Callable[[Location], None] = _admit_any_location
    """Raises `LinkRefused` for a URL that must not be requested; called for redirects too, before DNS resolution."""
    accept: Callable[[str], None] = _accept_any_type
    """Raises `LinkRefused` for an unsupported media type; called before the body is read."""
    allows_gzip: bool = False
    """Whether the body may be compressed with gzip; its decompressed size counts against the budget too."""


class LinkedPage(Struct, frozen=True):
    """The content of a fetched URL."""

    media_type: str
    """The media type in `content-type`; "" for none."""
    body: bytes
    charset: str = ""
    url: str = ""
    """The final URL after all redirects."""


_DEFAULT_RULES = FetchRules()


class GuardedFetcher:
    """Fetches untrusted URLs. `allow` lists hosts, networks and `host:port` entries that need not be public."""

    def __init__(
        self, allow: tuple[str, ...] = (), *, resolve: Resolve | None = None, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._allowed = AllowList(allow)
        self._resolve = resolve or self._look_up
        self._given_context = ssl_context

    @cached_property
    def _ssl_context(self) -> ssl.SSLContext:
        return self._given_context or ssl.create_default_context()

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        # DNS servers of untrusted hosts may be slow, and a lookup cannot be cancelled: lookups have a small thread pool
        # of their own, so that no other work waits for them.
        return ThreadPoolExecutor(_MAX_LOOKUPS, "names")

    async def _look_up(self, host: str, port: int) -> list[str]:
        """Resolve a host to its distinct addresses; raises `OSError`."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(address[0]) for *_, address in found))

    async def fetch(
        self, url: str, budget: ByteBudget, seconds: float, rules: FetchRules = _DEFAULT_RULES
    ) -> LinkedPage:
        """Fetch a URL within `seconds` and the byte budget, following redirects; raises `LinkRefused`."""
        try:
            async with asyncio.timeout(seconds):
                return await self._follow_redirects(url, budget, rules)
        except TimeoutError:
            raise LinkRefused(f"it did not load within {seconds:g} seconds") from None
        except (ConnectionFailure, OSError):
            # The precise reason would reveal details of the local network to the sender of the URL.
            raise LinkRefused("it cannot be reached") from None

    async def _follow_redirects(self, url: str, budget: ByteBudget, rules: FetchRules) -> LinkedPage:
        previous_scheme = ""
        for _ in range(_MAX_REDIRECTS + 1):
            location = parse_location(url)
            if previous_scheme == "https" and location.scheme == "http":
                raise LinkRefused("it redirects from https to http")
            rules.admit(location)
            connection = await self._connect(location, budget)
            try:
                found = await _request_page(connection, location, budget, rules)
            finally:
                connection.abort()
            if isinstance(found, LinkedPage):
                return found
            url, previous_scheme = _join_url(location.url, found), location.scheme
        raise LinkRefused("it redirects too often")

    async def _connect(self, location: Location, budget: ByteBudget) -> UpstreamConnection:
        addresses = await self._resolve_checked(location)
        for address in addresses[:_MAX_ADDRESSES]:
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    return await self._connect_to_address(address, location, budget)
            except ssl.SSLError:
                raise
            except (TimeoutError, OSError):
                continue
        raise Unreachable("no address accepted a connection")

    async def _resolve_checked(self, location: Location) -> list[str]:
        """Resolve the host of a URL; raises `LinkRefused` unless all of its addresses may be contacted."""
        try:
            texts = [str(location.address)] if location.address else await self._resolve(location.host, location.port)
        except (OSError, UnicodeError):
            texts = []
        addresses = [ip_address(text) for text in texts]
        is_allowed_host = self._allowed.allows_host(location.host, location.port)
        is_allowed = is_allowed_host or (bool(addresses) and all(map(self._allowed.allows_address, addresses)))
        if not is_allowed and not (addresses and all(map(is_public, addresses))):
            # The same message as for an unknown name: it must not reveal which names the local network has.
            raise LinkRefused("it has no public address")
        if not is_allowed and location.port not in PORTS.values():
            raise LinkRefused("its port is neither 80 nor 443")
        return [str(address) for address in addresses]

    async def _connect_to_address(self, address: str, location: Location, budget: ByteBudget) -> UpstreamConnection:
        loop = asyncio.get_running_loop()
        is_secure = location.scheme == "https"
        transport, connection = await loop.create_connection(
            lambda: _BoundedConnection(_MAX_HEAD, _MAX_HEAD + _FRAMING_FACTOR * budget.left),
            address,
            location.port,
            ssl=self._ssl_context if is_secure else None,
            server_hostname=location.host.rstrip(".") if is_secure else None,
        )
        peer = transport.get_extra_info("peername")
        if peer is None or ip_address(peer[0]) != ip_address(address):
            connection.abort()
            raise Unreachable("connected to an unexpected address")
        return connection


class _BoundedConnection(UpstreamConnection):
    """A connection to an untrusted server that accepts a limited number of bytes."""

    def __init__(self, head: int, max_bytes: int) -> None:
        super().__init__()
        self._head, self._max_bytes = head, max_bytes
        self._received = 0

    def receive(self, data: bytes) -> None:
        # The parser buffers a header until its end, and chunk extensions have no size limit: both are counted here.
        is_head_too_long = self._received > self._head and not self.has_head
        self._received += len(data)
        if is_head_too_long or self._received > self._max_bytes + len(data):
            self.failure = self.failure or BrokenReply("the response is too large")
            self.abort()
            self._wake()
            return
        super().receive(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head -= len(name) + len(value)
        if self._head < 0:
            self.failure = self.failure or BrokenReply("the response headers are too large")
            self.transport.abort()
            return
        super().on_header(name, value)


async def _request_page(
    connection: UpstreamConnection, location: Location, budget: ByteBudget, rules: FetchRules
) -> LinkedPage | str:
    """Request a URL; return its content, or the target of a redirect."""
    accepted_encoding = "gzip" if rules.allows_gzip else "identity"
    lines = [f"GET {location.target} HTTP/1.1", f"host: {location.authority}"]
    lines += [f"{name}: {value}" for name, value in rules.headers]
    head = "\r\n".join([*lines, f"accept-encoding: {accepted_encoding}", "connection: close", "", ""])
    # The only timeout is that of the whole fetch.
    await connection.send(head.encode("ascii"), b"", _NO_TIMEOUT)
    connection.check_head(_NO_TIMEOUT)
    headers = dict(reversed(connection.headers))
    if connection.status in _REDIRECTS and headers.get("location"):
        return _decode_location(headers["location"])
    if connection.status != _SUCCESS:
        raise LinkRefused(f"its server answers with status {connection.status}")
    kind, _, parameters = headers.get("content-type", "").partition(";")
    kind = kind.strip().lower()
    rules.accept(kind)
    body = await _read_body(connection, budget, rules)
    return LinkedPage(kind, body, _parse_charset(parameters), location.url)


async def _read_body(connection: UpstreamConnection, budget: ByteBudget, rules: FetchRules) -> bytes:
    encoding = ",".join(value for name, value in connection.headers if name == "content-encoding").strip().lower()
    inflater = Inflater(encoding, budget.left) if rules.allows_gzip and encoding in {"gzip", "x-gzip"} else None
    if inflater is None and encoding not in {"", "identity"}:
        raise LinkRefused("its server sends an encoding that was not requested")
    length = next((value for name, value in connection.headers if name == "content-length"), "")
    budget.require(int(length) if length.isdecimal() and len(length) < _MAX_DIGITS else 0)
    body = bytearray()
    wire_budget = ByteBudget(budget.left)
    try:
        while chunk := await connection.read_chunk():
            if inflater:
                wire_budget.take(len(chunk))
            plain = inflater.feed(chunk) if inflater else chunk
            budget.take(len(plain))
            body += plain
        if inflater:
            inflater.close()
    except BodyTooLarge:
        raise budget.build_error() from None
    except BadEncoding:
        raise LinkRefused("it cannot be decompressed") from None
    return bytes(body)


def _decode_location(value: str) -> str:
    """Decode a `location` header: headers are Latin-1, but many servers write UTF-8 into this one."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def _join_url(url: str, found: str) -> str:
    try:
        return urljoin(url, found)
    except ValueError:
        raise LinkRefused("it redirects to an invalid URL") from None


def _parse_charset(parameters: str) -> str:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'").lower()
    return ""
