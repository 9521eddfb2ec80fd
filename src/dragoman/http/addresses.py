"""Parse URLs, classify IP addresses as public or not, and match hosts against the operator's allow lists.

URLs and allow lists use the same parser, so that a rule and a request never interpret an address differently.
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
"""A host name whose last label matches this is an IPv4 address in one of its many notations."""
_INVALID_URL = "it is not a valid URL"
_SAFE_CHARACTERS = "%/:=&?~#+!$,;'@()*[]-._"


class LinkRefused(Exception):  # noqa: N818  the name states the outcome
    """Raised for a URL that is not fetched. The message gives the reason without revealing the local network."""


class Location(Origin, frozen=True):
    """A parsed URL: its server and its path with query."""

    target: str

    @property
    def url(self) -> str:
        """The URL in normalized form."""
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """The IP address if the URL has one instead of a host name, else None."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None


def parse_location(url: str) -> Location:
    """Parse an http or https URL; raises `LinkRefused`."""
    if len(url) > _MAX_URL or _ILLEGAL.search(url):
        raise LinkRefused(_INVALID_URL)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise LinkRefused(_INVALID_URL) from None
    if parts.scheme not in PORTS or not parts.netloc:
        raise LinkRefused("it is not an http or https URL")
    if "@" in parts.netloc or "%" in parts.netloc:
        raise LinkRefused("its URL contains a user name or an IPv6 zone ID")
    found = _AUTHORITY.fullmatch(parts.netloc)
    if found is None:
        raise LinkRefused(_INVALID_URL)
    ip_literal, name, port = found.groups()
    path = quote(parts.path or "/", safe=_SAFE_CHARACTERS)
    target = f"{path}?{quote(parts.query, safe=_SAFE_CHARACTERS)}" if parts.query else path
    host = _parse_address(ip_literal) if ip_literal else normalize_host(name)
    return Location(parts.scheme, host, _parse_port(port, parts.scheme), target)


def normalize_host(name: str) -> str:
    """Return a host name (IDNA, lower case) or an IPv4 address in normalized form; raises `LinkRefused`."""
    try:
        host = name.encode("idna").decode().lower()
    except UnicodeError:
        raise LinkRefused(_INVALID_URL) from None
    if len(host) > _MAX_HOST or not _NAME.fullmatch(host):
        raise LinkRefused(_INVALID_URL)
    last = host.rstrip(".").rpartition(".")[2]
    return _parse_address(host.rstrip(".")) if _NUMBER.fullmatch(last) else host


def _parse_address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        # Decimal, octal, hexadecimal or short notations: programs disagree on which address such a number is.
        raise LinkRefused(_INVALID_URL) from None


def _parse_port(text: str | None, scheme: str) -> int:
    port = PORTS[scheme] if text is None else int(text)
    if not 0 < port <= _MAX_PORT:
        raise LinkRefused(_INVALID_URL)
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
"""Networks that count as not public: carrier-grade NAT, addresses of cloud platforms, multicast, reserved, and IPv6
ranges that embed an IPv4 address."""
_ISATAP = 0x5EFE
_HOST_PORT = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:/@*?\s]+)):([0-9]{1,5})")
_ISATAP_SHIFT = 32


def is_public(address: Address) -> bool:
    """Return whether an address is on the public internet."""
    if isinstance(address, IPv6Address) and (address.scope_id or _is_isatap(address)):
        return False
    return address.is_global and not address.is_multicast and not any(address in network for network in _NOT_PUBLIC)


def _is_isatap(address: IPv6Address) -> bool:
    return int(address) >> _ISATAP_SHIFT & 0xFCFF_FFFF == _ISATAP


class AllowList:
    """Host patterns, networks and single `host:port` entries that may be contacted although they are not public."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._hosts: list[str] = []
        self._networks: list[IPv4Network | IPv6Network] = []
        self._host_ports: set[tuple[str, int]] = set()
        for entry in entries:
            host_port = parse_host_port(entry)
            if host_port is not None:
                self._host_ports.add(host_port)
                continue
            try:
                self._networks.append(ip_network(entry))
            except ValueError:
                self._hosts.append(entry.lower().rstrip("."))

    def allows_host(self, name: str, port: int = 0) -> bool:
        """Return whether a host name is allowed, at any port or at this one."""
        bare = name.lower().rstrip(".")
        return (bare, port) in self._host_ports or any(fnmatchcase(bare, pattern) for pattern in self._hosts)

    def allows_address(self, address: Address) -> bool:
        """Return whether an address is in an allowed network."""
        return any(address in network for network in self._networks)


def parse_host_port(entry: str) -> tuple[str, int] | None:
    """Parse `host:port` (an IPv6 address needs brackets); return None if the entry has no port or is invalid."""
    found = _HOST_PORT.fullmatch(entry.strip().lower())
    if found is None:
        return None
    ip_literal, name, port = found.groups()
    try:
        return (str(ip_address(ip_literal)) if ip_literal else normalize_host(name).rstrip(".")), int(port)
    except (LinkRefused, ValueError):
        return None


_ENTRY = re.compile(r"(\*\.)?(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:/@\s*]+))(?::([0-9]{1,5}))?")


class Destination(Struct, frozen=True):
    """One entry of a list of destinations."""

    host: str
    is_wildcard: bool
    """Whether the entry matches all subdomains of the host, and not the host itself."""
    port: int | None
    """None for the default port of the scheme."""

    def matches(self, location: Location) -> bool:
        """Return whether a URL has this destination."""
        host = location.host.rstrip(".")
        port = PORTS[location.scheme] if self.port is None else self.port
        return port == location.port and (host.endswith(f".{self.host}") if self.is_wildcard else host == self.host)


def parse_destination(entry: str) -> Destination:
    """Parse an entry of a list of destinations; raises `ValueError`."""
    bare = entry.strip()
    found = _ENTRY.fullmatch(f"[{bare}]" if _is_ipv6(bare) else bare)
    if found is None:
        raise ValueError(_explain_invalid(entry))
    wildcard, ip_literal, name, port = found.groups()
    try:
        host = str(IPv6Address(ip_literal)) if ip_literal else normalize_host(name).rstrip(".")
    except (LinkRefused, ValueError):
        raise ValueError(_explain_invalid(entry)) from None
    if (wildcard and (ip_literal or host.rpartition(".")[2].isdecimal())) or not 0 < int(port or 1) <= _MAX_PORT:
        raise ValueError(_explain_invalid(entry))
    return Destination(host, bool(wildcard), None if port is None else int(port))


def _is_ipv6(entry: str) -> bool:
    try:
        IPv6Address(entry)
    except ValueError:
        return False
    return True


def _explain_invalid(entry: str) -> str:
    return (
        f'{entry!r} is not a valid destination; use a host such as "example.com", "*.example.com" or "example.com:8443"'
    )
