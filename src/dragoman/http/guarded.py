"""Fetch what a stranger's link names, without lending the stranger our place in the network.

A name is resolved once, every address of it is looked at, and the connection goes to one of those and to no other; name
and certificate stay those of the link. Redirects are links of strangers too. Nothing of ours goes along: no cookies, no
credentials, no connection that was used before. A proxy is not asked, for it would resolve the name again.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable
from functools import cached_property
from ipaddress import ip_address
from urllib.parse import quote, urljoin, urlsplit

from msgspec import Struct

from dragoman.http.addresses import Allowed, is_public
from dragoman.http.link import Broken, Failure, Link, NotReached

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Return the addresses of a host."""
_PORTS = {"http": 80, "https": 443}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 5
_LONGEST_HEAD = 64 << 10
_LONGEST_URL = 8192
_ILLEGAL = re.compile(r"[\x00-\x20\x7f\\]")
_GOOD = 200
_LONGEST_NUMBER = 20
_FOREVER = 3600.0
_KEPT = "%/:=&?~#+!$,;'@()*[]-._"


class Refused(Exception):  # noqa: N818  it says what became of the link
    """A link is not fetched; the words say why, and nothing about our network."""


class Room:
    """How many bytes may be fetched, by several fetches together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most

    def take(self, size: int) -> None:
        """Take so many bytes; raises `Refused` where they are too many."""
        self.see(size)
        self._left -= size

    def see(self, size: int) -> None:
        """Raise `Refused` unless so many bytes are left."""
        if size > self._left:
            raise Refused(f"what is linked is larger than {self._most} bytes")


class Page(Struct, frozen=True):
    """What stood behind a link."""

    kind: str
    """The media type that its server named; "" for none."""
    body: bytes


class _Place(Struct, frozen=True):
    """Where a link leads."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


class Guard:
    """Fetches links. `allow` names hosts and networks that may be asked though they are not public."""

    def __init__(
        self, allow: tuple[str, ...] = (), *, resolve: Resolve | None = None, trust: ssl.SSLContext | None = None
    ) -> None:
        self._allowed = Allowed(allow)
        self._resolve = resolve or _resolve
        self._given = trust

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return self._given or ssl.create_default_context()

    async def fetch(self, url: str, room: Room, seconds: float) -> Page:
        """Return what stands behind a link, if there is room for it and it comes within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                return await self._fetch(url, room)
        except TimeoutError:
            raise Refused(f"it does not come within {seconds:g} seconds") from None
        except (Failure, OSError):
            # Which of the many reasons it was would tell strangers what there is in our network.
            raise Refused("it cannot be reached") from None

    async def _fetch(self, url: str, room: Room) -> Page:
        before = ""
        for _ in range(_MOST_REDIRECTS + 1):
            place = _read(url)
            if before == "https" and place.scheme == "http":
                raise Refused("it redirects from https to http")
            link = await self._connected(place)
            try:
                found = await _asked(link, place, room)
            finally:
                link.abort()
            if isinstance(found, Page):
                return found
            url, before = urljoin(url, found), place.scheme
        raise Refused("it redirects too often")

    async def _connected(self, place: _Place) -> Link:
        try:
            addresses = await self._resolve(place.host, place.port)
        except OSError:
            addresses = []
        allowed = self._allowed.host(place.host)
        found = [ip_address(address) for address in addresses]
        inside = allowed or (bool(found) and all(map(self._allowed.address, found)))
        if not inside and not all(map(is_public, found)):
            raise Refused("its address is not a public one")
        if not inside and place.port not in _PORTS.values():
            raise Refused("its port is not one of the web")
        if not found:
            raise NotReached("no such host")
        return await self._pinned(str(found[0]), place)

    async def _pinned(self, address: str, place: _Place) -> Link:
        loop = asyncio.get_running_loop()
        secure = place.scheme == "https"
        _, link = await loop.create_connection(
            _Bounded,
            address,
            place.port,
            ssl=self._trust if secure else None,
            server_hostname=place.host.rstrip(".") if secure else None,
        )
        return link


class _Bounded(Link):
    """A connection to a server that may say anything."""

    _size = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value)
        if self._size > _LONGEST_HEAD:
            self.failure = self.failure or Broken("the head is too long")
            self.transport.abort()
            return
        super().on_header(name, value)


async def _asked(link: Link, place: _Place, room: Room) -> Page | str:
    """Return what stands at a place, or where it says that stands."""
    lines = [f"GET {place.target} HTTP/1.1", f"host: {place.authority}", "accept: */*", "accept-encoding: identity"]
    head = "\r\n".join([*lines, "connection: close", "", ""])
    # The one deadline is that of the whole fetch.
    link.ask(head.encode("ascii"), b"", _FOREVER)
    await link.answered(_FOREVER)
    headers = dict(reversed(link.headers))
    if link.status in _REDIRECTS and headers.get("location"):
        return headers["location"]
    if link.status != _GOOD:
        raise Refused(f"its server answers with status {link.status}")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused("its server packs it, which it was asked not to")
    length = headers.get("content-length", "")
    room.see(int(length) if length.isdecimal() and len(length) < _LONGEST_NUMBER else 0)
    held = bytearray()
    while piece := await link.piece():
        room.take(len(piece))
        held += piece
    return Page(headers.get("content-type", "").partition(";")[0].strip().lower(), bytes(held))


def _read(url: str) -> _Place:
    """Read a link as every reader would; one on which readers differ is refused."""
    if len(url) > _LONGEST_URL or _ILLEGAL.search(url):
        raise Refused("it is no address")
    try:
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.netloc:
            raise Refused("it is no address of the web")
        port = parts.port
        name = parts.hostname or ""
        host = str(ip_address(name)) if ":" in name else name.encode("idna").decode().lower()
    except (ValueError, UnicodeError):
        raise Refused("it is no address") from None
    if "@" in parts.netloc or "%" in host or not host:
        raise Refused("its address holds a user name or a zone")
    path = quote(parts.path or "/", safe=_KEPT)
    target = f"{path}?{quote(parts.query, safe=_KEPT)}" if parts.query else path
    return _Place(parts.scheme, host, port or _PORTS[parts.scheme], target)


async def _resolve(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
