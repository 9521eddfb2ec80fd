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

from dragoman.http.addresses import Allowed, Location, Refused, is_public, location_of
from dragoman.http.encoding import BadEncoding, Inflater, TooLarge
from dragoman.http.link import Broken, Failure, NotReached, UpstreamConnection
from dragoman.http.message import PORTS

T = TypeVar("T")


class Lately(Generic[T]):
    """Values by their link."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._kept: OrderedDict[str, tuple[float, int, T]] = OrderedDict()
        self._size = 0

    def get(self, url: str) -> T | None:
        """Return what is known of a link, if that is not too old."""
        found = self._kept.get(url)
        return found[2] if found is not None and found[0] > monotonic() else None

    def keep(self, url: str, value: T, size: int) -> None:
        """Keep a value of so many bytes; one that is too large on its own is not kept."""
        self._forget(url)
        if size > self._most or self._seconds <= 0:
            return
        self._kept[url] = (monotonic() + self._seconds, size, value)
        self._size += size
        while self._size > self._most or next(iter(self._kept.values()))[0] <= monotonic():
            self._forget(next(iter(self._kept)))

    def _forget(self, url: str) -> None:
        _, size, _ = self._kept.pop(url, (0.0, 0, None))
        self._size -= size


Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Return the addresses of a host."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 5
_LONGEST_HEAD = 64 << 10
_FRAMING = 2
"""Bytes on the wire for one of a body, at most: a body in very small chunks is mostly something else."""
_GOOD = 200
_LOOKUPS_AT_ONCE = 8
_LONGEST_NUMBER = 20
_FOREVER = 3600.0
_MOST_TRIED = 3
_CONNECTING = 5.0
"""How many addresses of a host are tried, and for how many seconds each."""


class Room:
    """How many bytes may be fetched, by several fetches together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.left = most

    def take(self, size: int) -> None:
        """Take so many bytes; raises `Refused` where they are too many."""
        self.see(size)
        self.left -= size

    def see(self, size: int) -> None:
        """Raise `Refused` unless so many bytes are left."""
        if size > self.left:
            raise self.full()

    def full(self) -> Refused:
        """Return what is said where there is no room."""
        return Refused(f"what is linked is larger than {self._most} bytes")


def _anything(_: str) -> None:
    """Take every kind."""


def _anywhere(_: Location) -> None:
    """Go everywhere."""


class Terms(Struct, frozen=True, kw_only=True):
    """What is asked for, and what is taken."""

    headers: tuple[tuple[str, str], ...] = (("accept", "*/*"),)
    admit: Callable[[Location], None] = _anywhere
    """Raises `Refused` for a place that must not be asked; it is shown every place before its name is resolved."""
    accept: Callable[[str], None] = _anything
    """Raises `Refused` for a media type that is of no use, before the body is read."""
    packed: bool = False
    """Whether the body may come packed by gzip; unpacked, it has to fit into the room too."""


class Page(Struct, frozen=True):
    """What stood behind a link."""

    kind: str
    """The media type that its server named; "" for none."""
    body: bytes
    charset: str = ""
    url: str = ""
    """Where it stood in the end, behind all redirects."""


_USUAL = Terms()


class Guard:
    """Fetches links. `allow` names hosts, networks and places that may be asked though they are not public."""

    def __init__(
        self, allow: tuple[str, ...] = (), *, resolve: Resolve | None = None, trust: ssl.SSLContext | None = None
    ) -> None:
        self._allowed = Allowed(allow)
        self._resolve = resolve or self._look_up
        self._given = trust

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return self._given or ssl.create_default_context()

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        # The servers of strangers answer a lookup as slowly as they like, and it cannot be cancelled: it has threads of
        # its own, so that no other work waits for them, and few.
        return ThreadPoolExecutor(_LOOKUPS_AT_ONCE, "names")

    async def _look_up(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host, each once; raises `OSError`."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(address[0]) for *_, address in found))

    async def fetch(self, url: str, room: Room, seconds: float, terms: Terms = _USUAL) -> Page:
        """Return what stands behind a link, if there is room for it and it comes within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                return await self._fetch(url, room, terms)
        except TimeoutError:
            raise Refused(f"it does not come within {seconds:g} seconds") from None
        except (Failure, OSError):
            # Which of the many reasons it was would tell strangers what there is in our network.
            raise Refused("it cannot be reached") from None

    async def _fetch(self, url: str, room: Room, terms: Terms) -> Page:
        before = ""
        for _ in range(_MOST_REDIRECTS + 1):
            place = location_of(url)
            if before == "https" and place.scheme == "http":
                raise Refused("it redirects from https to http")
            terms.admit(place)
            link = await self._connected(place, room)
            try:
                found = await _asked(link, place, room, terms)
            finally:
                link.abort()
            if isinstance(found, Page):
                return found
            url, before = _joined(place.url, found), place.scheme
        raise Refused("it redirects too often")

    async def _connected(self, place: Location, room: Room) -> UpstreamConnection:
        addresses = await self._vetted(place)
        for address in addresses[:_MOST_TRIED]:
            try:
                async with asyncio.timeout(_CONNECTING):
                    return await self._pinned(address, place, room)
            except ssl.SSLError:
                raise
            except (TimeoutError, OSError):
                continue
        raise NotReached("nobody answers")

    async def _vetted(self, place: Location) -> list[str]:
        """Return the addresses of a place, all of which may be asked; raises `Refused`."""
        try:
            told = [str(place.address)] if place.address else await self._resolve(place.host, place.port)
        except (OSError, UnicodeError):
            told = []
        found = [ip_address(address) for address in told]
        allowed = self._allowed.host(place.host, place.port)
        inside = allowed or (bool(found) and all(map(self._allowed.address, found)))
        if not inside and not (found and all(map(is_public, found))):
            # The same words for a name that nobody has: which names our network knows is nobody's business.
            raise Refused("it has no public address")
        if not inside and place.port not in PORTS.values():
            raise Refused("its port is not one of the web")
        return [str(address) for address in found]

    async def _pinned(self, address: str, place: Location, room: Room) -> UpstreamConnection:
        loop = asyncio.get_running_loop()
        secure = place.scheme == "https"
        transport, link = await loop.create_connection(
            lambda: _Bounded(_LONGEST_HEAD, _LONGEST_HEAD + _FRAMING * room.left),
            address,
            place.port,
            ssl=self._trust if secure else None,
            server_hostname=place.host.rstrip(".") if secure else None,
        )
        peer = transport.get_extra_info("peername")
        if peer is None or ip_address(peer[0]) != ip_address(address):
            link.abort()
            raise NotReached("somebody else answers")
        return link


class _Bounded(UpstreamConnection):
    """A connection to a server that may say anything, and is heard for so many bytes."""

    def __init__(self, head: int, most: int) -> None:
        super().__init__()
        self._head, self._most = head, most
        self._heard = 0

    def data_received(self, data: bytes) -> None:
        # The parser keeps a header until its end, and an extension of a chunk has none: both are counted here.
        enough = self._heard > self._head and not self.headed
        self._heard += len(data)
        if enough or self._heard > self._most + len(data):
            self.failure = self.failure or Broken("it says too much")
            self.abort()
            self._wake()
            return
        super().data_received(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head -= len(name) + len(value)
        if self._head < 0:
            self.failure = self.failure or Broken("the head is too long")
            self.transport.abort()
            return
        super().on_header(name, value)


async def _asked(link: UpstreamConnection, place: Location, room: Room, terms: Terms) -> Page | str:
    """Return what stands at a place, or where it says that stands."""
    packing = "gzip" if terms.packed else "identity"
    lines = [f"GET {place.target} HTTP/1.1", f"host: {place.authority}"]
    lines += [f"{name}: {value}" for name, value in terms.headers]
    head = "\r\n".join([*lines, f"accept-encoding: {packing}", "connection: close", "", ""])
    # The one deadline is that of the whole fetch.
    await link.send(head.encode("ascii"), b"", _FOREVER)
    link.check_head(_FOREVER)
    headers = dict(reversed(link.headers))
    if link.status in _REDIRECTS and headers.get("location"):
        return _read_location(headers["location"])
    if link.status != _GOOD:
        raise Refused(f"its server answers with status {link.status}")
    kind, _, parameters = headers.get("content-type", "").partition(";")
    kind = kind.strip().lower()
    terms.accept(kind)
    body = await _body(link, room, terms)
    return Page(kind, body, _charset(parameters), place.url)


async def _body(link: UpstreamConnection, room: Room, terms: Terms) -> bytes:
    packing = ",".join(value for name, value in link.headers if name == "content-encoding").strip().lower()
    inflater = Inflater(packing, room.left) if terms.packed and packing in {"gzip", "x-gzip"} else None
    if inflater is None and packing not in {"", "identity"}:
        raise Refused("its server packs it, which it was asked not to")
    length = next((value for name, value in link.headers if name == "content-length"), "")
    room.see(int(length) if length.isdecimal() and len(length) < _LONGEST_NUMBER else 0)
    held = bytearray()
    wire = Room(room.left)
    try:
        while piece := await link.piece():
            if inflater:
                wire.take(len(piece))
            plain = inflater.feed(piece) if inflater else piece
            room.take(len(plain))
            held += plain
        if inflater:
            inflater.close()
    except TooLarge:
        raise room.full() from None
    except BadEncoding:
        raise Refused("it is not packed in the way its server says") from None
    return bytes(held)


def _read_location(said: str) -> str:
    """Return where a reply leads: headers are read byte by byte, and many servers write UTF-8 into this one."""
    try:
        return said.encode("latin-1").decode()
    except UnicodeError:
        return said


def _joined(url: str, found: str) -> str:
    try:
        return urljoin(url, found)
    except ValueError:
        raise Refused("it redirects to what is no address") from None


def _charset(parameters: str) -> str:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'").lower()
    return ""
