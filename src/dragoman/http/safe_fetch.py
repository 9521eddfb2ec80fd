"""Fetch what a stranger's link names, without lending the stranger our place in the network.

A name is resolved once, every address of it is checked, and the connection goes to one of those and to no other; name
and certificate stay those of the link. Redirects are links of strangers too. Nothing of ours is sent: no cookies, no
credentials, no connection that was used before. A proxy is not used, for it would resolve the name again. What was
fetched is cached for some time and up to some size; the oldest is evicted first.
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
    """Values by their link."""

    def __init__(self, seconds: float, max_size: int) -> None:
        self._seconds = seconds
        self._max_size = max_size
        self._entries: OrderedDict[str, tuple[float, int, T]] = OrderedDict()
        self._size = 0

    def get(self, url: str) -> T | None:
        """Return what is known of a link, if that is not too old."""
        found = self._entries.get(url)
        return found[2] if found is not None and found[0] > monotonic() else None

    def put(self, url: str, value: T, size: int) -> None:
        """Keep a value of so many bytes; one that is too large on its own is not kept."""
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
"""Return the addresses of a host."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS = 5
_MAX_HEAD = 64 << 10
_FRAMING_FACTOR = 2
"""Bytes on the wire for one of a body, at most: a body in very small chunks is mostly something else."""
_SUCCESS = 200
_MAX_LOOKUPS = 8
_MAX_DIGITS = 20
_NO_TIMEOUT = 3600.0
_MAX_ADDRESSES = 3
_CONNECT_SECONDS = 5.0
"""How many addresses of a host are tried, and for how many seconds each."""


class ByteBudget:
    """How many bytes may be fetched, by several fetches together."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.left = limit

    def take(self, size: int) -> None:
        """Take so many bytes; raises `Refused` where they are too many."""
        self.require(size)
        self.left -= size

    def require(self, size: int) -> None:
        """Raise `Refused` unless so many bytes are left."""
        if size > self.left:
            raise self.build_error()

    def build_error(self) -> LinkRefused:
        """Return what is said where there is no room."""
        return LinkRefused(f"what is linked is larger than {self._limit} bytes")


def _accept_any_type(_: str) -> None:
    """Take every kind."""


def _admit_any_location(_: Location) -> None:
    """Go everywhere."""


class FetchRules(Struct, frozen=True, kw_only=True):
    """What is asked for, and what is taken."""

    headers: tuple[tuple[str, str], ...] = (("accept", "*/*"),)
    admit: Callable[[Location], None] = _admit_any_location
    """Raises `Refused` for a place that must not be asked; it is shown every place before its name is resolved."""
    accept: Callable[[str], None] = _accept_any_type
    """Raises `Refused` for a media type that is of no use, before the body is read."""
    allows_gzip: bool = False
    """Whether the body may come packed by gzip; unpacked, it has to fit into the room too."""


class LinkedPage(Struct, frozen=True):
    """What stood behind a link."""

    media_type: str
    """The media type that its server named; "" for none."""
    body: bytes
    charset: str = ""
    url: str = ""
    """Where it stood in the end, behind all redirects."""


_DEFAULT_RULES = FetchRules()


class GuardedFetcher:
    """Fetches links. `allow` names hosts, networks and places that may be asked though they are not public."""

    def __init__(
        self, allow: tuple[str, ...] = (), *, resolve: Resolve | None = None, trust: ssl.SSLContext | None = None
    ) -> None:
        self._allowed = AllowList(allow)
        self._resolve = resolve or self._look_up
        self._given_trust = trust

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return self._given_trust or ssl.create_default_context()

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        # The servers of strangers answer a lookup as slowly as they like, and it cannot be cancelled: it has threads of
        # its own, so that no other work waits for them, and few.
        return ThreadPoolExecutor(_MAX_LOOKUPS, "names")

    async def _look_up(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host, each once; raises `OSError`."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(address[0]) for *_, address in found))

    async def fetch(
        self, url: str, budget: ByteBudget, seconds: float, rules: FetchRules = _DEFAULT_RULES
    ) -> LinkedPage:
        """Return what stands behind a link, if there is room for it and it comes within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                return await self._follow_redirects(url, budget, rules)
        except TimeoutError:
            raise LinkRefused(f"it does not come within {seconds:g} seconds") from None
        except (ConnectionFailure, OSError):
            # Which of the many reasons it was would tell strangers what there is in our network.
            raise LinkRefused("it cannot be reached") from None

    async def _follow_redirects(self, url: str, budget: ByteBudget, rules: FetchRules) -> LinkedPage:
        before = ""
        for _ in range(_MAX_REDIRECTS + 1):
            place = parse_location(url)
            if before == "https" and place.scheme == "http":
                raise LinkRefused("it redirects from https to http")
            rules.admit(place)
            link = await self._connect(place, budget)
            try:
                found = await _request_page(link, place, budget, rules)
            finally:
                link.abort()
            if isinstance(found, LinkedPage):
                return found
            url, before = _join_url(place.url, found), place.scheme
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
        raise Unreachable("nobody answers")

    async def _resolve_checked(self, location: Location) -> list[str]:
        """Return the addresses of a place, all of which may be asked; raises `Refused`."""
        try:
            told = [str(location.address)] if location.address else await self._resolve(location.host, location.port)
        except (OSError, UnicodeError):
            told = []
        found = [ip_address(address) for address in told]
        allowed = self._allowed.allows_host(location.host, location.port)
        inside = allowed or (bool(found) and all(map(self._allowed.allows_address, found)))
        if not inside and not (found and all(map(is_public, found))):
            # The same words for a name that nobody has: which names our network knows is nobody's business.
            raise LinkRefused("it has no public address")
        if not inside and location.port not in PORTS.values():
            raise LinkRefused("its port is not one of the web")
        return [str(address) for address in found]

    async def _connect_to_address(self, address: str, location: Location, budget: ByteBudget) -> UpstreamConnection:
        loop = asyncio.get_running_loop()
        secure = location.scheme == "https"
        transport, link = await loop.create_connection(
            lambda: _BoundedConnection(_MAX_HEAD, _MAX_HEAD + _FRAMING_FACTOR * budget.left),
            address,
            location.port,
            ssl=self._trust if secure else None,
            server_hostname=location.host.rstrip(".") if secure else None,
        )
        peer = transport.get_extra_info("peername")
        if peer is None or ip_address(peer[0]) != ip_address(address):
            link.abort()
            raise Unreachable("somebody else answers")
        return link


class _BoundedConnection(UpstreamConnection):
    """A connection to a server that may say anything, and is heard for so many bytes."""

    def __init__(self, head: int, max_bytes: int) -> None:
        super().__init__()
        self._head, self._max_bytes = head, max_bytes
        self._received = 0

    def data_received(self, data: bytes) -> None:
        # The parser keeps a header until its end, and an extension of a chunk has none: both are counted here.
        enough = self._received > self._head and not self.has_head
        self._received += len(data)
        if enough or self._received > self._max_bytes + len(data):
            self.failure = self.failure or BrokenReply("it says too much")
            self.abort()
            self._wake()
            return
        super().data_received(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head -= len(name) + len(value)
        if self._head < 0:
            self.failure = self.failure or BrokenReply("the head is too long")
            self.transport.abort()
            return
        super().on_header(name, value)


async def _request_page(
    connection: UpstreamConnection, location: Location, budget: ByteBudget, rules: FetchRules
) -> LinkedPage | str:
    """Return what stands at a place, or where it says that stands."""
    packing = "gzip" if rules.allows_gzip else "identity"
    lines = [f"GET {location.target} HTTP/1.1", f"host: {location.authority}"]
    lines += [f"{name}: {value}" for name, value in rules.headers]
    head = "\r\n".join([*lines, f"accept-encoding: {packing}", "connection: close", "", ""])
    # The one deadline is that of the whole fetch.
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
    packing = ",".join(value for name, value in connection.headers if name == "content-encoding").strip().lower()
    inflater = Inflater(packing, budget.left) if rules.allows_gzip and packing in {"gzip", "x-gzip"} else None
    if inflater is None and packing not in {"", "identity"}:
        raise LinkRefused("its server packs it, which it was asked not to")
    length = next((value for name, value in connection.headers if name == "content-length"), "")
    budget.require(int(length) if length.isdecimal() and len(length) < _MAX_DIGITS else 0)
    held = bytearray()
    wire = ByteBudget(budget.left)
    try:
        while piece := await connection.read_chunk():
            if inflater:
                wire.take(len(piece))
            plain = inflater.feed(piece) if inflater else piece
            budget.take(len(plain))
            held += plain
        if inflater:
            inflater.close()
    except BodyTooLarge:
        raise budget.build_error() from None
    except BadEncoding:
        raise LinkRefused("it is not packed in the way its server says") from None
    return bytes(held)


def _decode_location(value: str) -> str:
    """Return where a reply leads: headers are read byte by byte, and many servers write UTF-8 into this one."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def _join_url(url: str, found: str) -> str:
    try:
        return urljoin(url, found)
    except ValueError:
        raise LinkRefused("it redirects to what is no address") from None


def _parse_charset(parameters: str) -> str:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'").lower()
    return ""
