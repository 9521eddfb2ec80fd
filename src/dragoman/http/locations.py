"""Where a link leads, read as every reader would read it; a link on which readers differ is refused.

What comes out is plain: a host in lower case and in ASCII, an address of IPv4 with four numbers or of IPv6 in its short
form, a port, and a target without a byte that could end its line.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import quote, urlsplit

from dragoman.http.origin import PORTS, Origin

_LONGEST = 8192
_LONGEST_HOST = 253
_HIGHEST_PORT = 65535
_ILLEGAL = re.compile(r"[\x00-\x20\x7f-\x9f\\\ud800-\udfff]")
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:@%]+))(?::([0-9]{1,5}))?")
_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""A name that ends in such a label is an address of IPv4, in one of its many forms."""
_KEPT = "%/:=&?~#+!$,;'@()*[]-._"


class Refused(Exception):  # noqa: N818  it says what became of the link
    """A link is not fetched; the words say why, and nothing about our network."""


class Location(Origin, frozen=True):
    """Where a link leads."""

    target: str

    @property
    def url(self) -> str:
        """The link, in its plain form."""
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """The address that stands in the place of a name."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None


def location_of(url: str) -> Location:
    """Read a link; raises `Refused`."""
    if len(url) > _LONGEST or _ILLEGAL.search(url):
        raise Refused("it is no address")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise Refused("it is no address") from None
    if parts.scheme not in PORTS or not parts.netloc:
        raise Refused("it is no address of the web")
    if "@" in parts.netloc or "%" in parts.netloc:
        raise Refused("its address holds a user name or a zone")
    found = _AUTHORITY.fullmatch(parts.netloc)
    if found is None:
        raise Refused("it is no address")
    numbered, named, port = found.groups()
    path = quote(parts.path or "/", safe=_KEPT)
    target = f"{path}?{quote(parts.query, safe=_KEPT)}" if parts.query else path
    host = _address(numbered) if numbered else host_of(named)
    return Location(parts.scheme, host, _port(port, parts.scheme), target)


def host_of(name: str) -> str:
    """Return a host's name or its address of IPv4 in its plain form; raises `Refused`."""
    try:
        host = name.encode("idna").decode().lower()
    except UnicodeError:
        raise Refused("it is no address") from None
    if len(host) > _LONGEST_HOST or not _NAME.fullmatch(host):
        raise Refused("it is no address")
    last = host.rstrip(".").rpartition(".")[2]
    return _address(host.rstrip(".")) if _NUMBER.fullmatch(last) else host


def _address(said: str) -> str:
    try:
        return str(ip_address(said))
    except ValueError:
        # Decimal, octal, hexadecimal, short: what such a number means depends on who reads it.
        raise Refused("it is no address") from None


def _port(said: str | None, scheme: str) -> int:
    port = PORTS[scheme] if said is None else int(said)
    if not 0 < port <= _HIGHEST_PORT:
        raise Refused("it is no address")
    return port
