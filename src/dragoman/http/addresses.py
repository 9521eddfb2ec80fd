"""Links and addresses: where a link leads, which addresses are public, and which an operator allows.

Links and lists of destinations are parsed in one way, so that a rule and a request never read an address differently.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import quote, urlsplit

from msgspec import Struct

from dragoman.http.message import PORTS, Origin

_MAX_URL = 8192
_MAX_HOST = 253
_MAX_PORT = 65535
_ILLEGAL = re.compile(r"[\x00-\x20\x7f-\x9f\\\ud800-\udfff]")
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:@%]+))(?::([0-9]{1,5}))?")
_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""A name that ends in such a label is an address of IPv4, in one of its many forms."""
_SAFE_CHARACTERS = "%/:=&?~#+!$,;'@()*[]-._"


class LinkRefused(Exception):  # noqa: N818  it says what became of the link
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


def parse_location(url: str) -> Location:
    """Read a link; raises `LinkRefused`."""
    if len(url) > _MAX_URL or _ILLEGAL.search(url):
        raise LinkRefused("it is no address")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise LinkRefused("it is no address") from None
    if parts.scheme not in PORTS or not parts.netloc:
        raise LinkRefused("it is no address of the web")
    if "@" in parts.netloc or "%" in parts.netloc:
        raise LinkRefused("its address holds a user name or a zone")
    found = _AUTHORITY.fullmatch(parts.netloc)
    if found is None:
        raise LinkRefused("it is no address")
    numbered, named, port = found.groups()
    path = quote(parts.path or "/", safe=_SAFE_CHARACTERS)
    target = f"{path}?{quote(parts.query, safe=_SAFE_CHARACTERS)}" if parts.query else path
    host = _parse_address(numbered) if numbered else normalize_host(named)
    return Location(parts.scheme, host, _parse_port(port, parts.scheme), target)


def normalize_host(name: str) -> str:
    """Return a host's name or its address of IPv4 in its plain form; raises `LinkRefused`."""
    try:
        host = name.encode("idna").decode().lower()
    except UnicodeError:
        raise LinkRefused("it is no address") from None
    if len(host) > _MAX_HOST or not _NAME.fullmatch(host):
        raise LinkRefused("it is no address")
    last = host.rstrip(".").rpartition(".")[2]
    return _parse_address(host.rstrip(".")) if _NUMBER.fullmatch(last) else host


def _parse_address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        # Decimal, octal, hexadecimal, short: what such a number means depends on who reads it.
        raise LinkRefused("it is no address") from None


def _parse_port(text: str | None, scheme: str) -> int:
    port = PORTS[scheme] if text is None else int(text)
    if not 0 < port <= _MAX_PORT:
        raise LinkRefused("it is no address")
    return port


Address = IPv4Address | IPv6Address
_NOT_PUBLIC = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "100.64.0.0/10",
            "168.63.129.16/32",
            "192.0.0.0/24",
            "192.88.99.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
            "::/96",
            "::ffff:0:0/96",
            "::ffff:0:0:0/96",
            "64:ff9b::/96",
            "64:ff9b:1::/48",
            "100::/64",
            "2001::/23",
            "2001:db8::/32",
            "2002::/16",
            "3fff::/20",
            "5f00::/16",
            "fc00::/7",
            "fe80::/10",
            "fec0::/10",
            "ff00::/8",
        ),
    )
)
"""Shared by carriers, kept by clouds for themselves, meant for several, or another address in disguise."""
_ISATAP = 0x5EFE
_HOST_PORT = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:/@*?\s]+)):([0-9]{1,5})")
_ISATAP_SHIFT = 32


def is_public(address: Address) -> bool:
    """Tell whether an address is one on the public internet."""
    if isinstance(address, IPv6Address) and (address.scope_id or _is_isatap(address)):
        return False
    return address.is_global and not address.is_multicast and not any(address in network for network in _NOT_PUBLIC)


def _is_isatap(address: IPv6Address) -> bool:
    return int(address) >> _ISATAP_SHIFT & 0xFCFF_FFFF == _ISATAP


class AllowList:
    """Hosts by pattern, networks, and single places (`host:port`) that may be asked though they are not public."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._hosts: list[str] = []
        self._networks: list[IPv4Network | IPv6Network] = []
        self._host_ports: set[tuple[str, int]] = set()
        for entry in entries:
            place = parse_host_port(entry)
            if place is not None:
                self._host_ports.add(place)
                continue
            try:
                self._networks.append(ip_network(entry))
            except ValueError:
                self._hosts.append(entry.lower().rstrip("."))

    def allows_host(self, name: str, port: int = 0) -> bool:
        """Tell whether a host is allowed by its name, at any port or at this one."""
        bare = name.lower().rstrip(".")
        return (bare, port) in self._host_ports or any(fnmatchcase(bare, pattern) for pattern in self._hosts)

    def allows_address(self, address: Address) -> bool:
        """Tell whether an address is in an allowed network."""
        return any(address in network for network in self._networks)


def parse_host_port(entry: str) -> tuple[str, int] | None:
    """Read `host:port`, an address of IPv6 in brackets; None for what names no port."""
    found = _HOST_PORT.fullmatch(entry.strip().lower())
    if found is None:
        return None
    numbered, named, port = found.groups()
    try:
        return (str(ip_address(numbered)) if numbered else normalize_host(named).rstrip(".")), int(port)
    except (LinkRefused, ValueError):
        return None


_ENTRY = re.compile(r"(\*\.)?(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:/@\s*]+))(?::([0-9]{1,5}))?")


class Destination(Struct, frozen=True):
    """One entry."""

    host: str
    is_wildcard: bool
    """All below the host are meant, and not the host."""
    port: int | None
    """None for the usual one."""

    def matches(self, location: Location) -> bool:
        """Tell whether a link leads there."""
        host = location.host.rstrip(".")
        port = PORTS[location.scheme] if self.port is None else self.port
        return port == location.port and (host.endswith(f".{self.host}") if self.is_wildcard else host == self.host)


def parse_destination(entry: str) -> Destination:
    """Read an entry; raises `ValueError`."""
    bare = entry.strip()
    found = _ENTRY.fullmatch(f"[{bare}]" if _is_ipv6(bare) else bare)
    if found is None:
        raise ValueError(_explain_invalid(entry))
    above, numbered, named, port = found.groups()
    try:
        host = str(IPv6Address(numbered)) if numbered else normalize_host(named).rstrip(".")
    except (LinkRefused, ValueError):
        raise ValueError(_explain_invalid(entry)) from None
    if (above and (numbered or host.rpartition(".")[2].isdecimal())) or not 0 < int(port or 1) <= _MAX_PORT:
        raise ValueError(_explain_invalid(entry))
    return Destination(host, bool(above), None if port is None else int(port))


def _is_ipv6(entry: str) -> bool:
    try:
        IPv6Address(entry)
    except ValueError:
        return False
    return True


def _explain_invalid(entry: str) -> str:
    return f'destinations are hosts like "example.com", "*.example.com" or "example.com:8443", and {entry!r} is none'
