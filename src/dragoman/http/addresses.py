"""Which addresses are on the public internet, and which hosts and networks an operator allows beside them.

Python's own tables are not complete: forms of IPv6 that hold an address of IPv4 are refused whole, for what they reach
is decided elsewhere.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from dragoman.http.locations import Refused, host_of

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
_PLACE = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:/@*?\s]+)):([0-9]{1,5})")
_ISATAP_SHIFT = 32


def is_public(address: Address) -> bool:
    """Tell whether an address is one on the public internet."""
    if isinstance(address, IPv6Address) and (address.scope_id or _is_isatap(address)):
        return False
    return address.is_global and not address.is_multicast and not any(address in network for network in _NOT_PUBLIC)


def _is_isatap(address: IPv6Address) -> bool:
    return int(address) >> _ISATAP_SHIFT & 0xFCFF_FFFF == _ISATAP


class Allowed:
    """Hosts by pattern, networks, and single places (`host:port`) that may be asked though they are not public."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._hosts: list[str] = []
        self._networks: list[IPv4Network | IPv6Network] = []
        self._places: set[tuple[str, int]] = set()
        for entry in entries:
            place = place_of(entry)
            if place is not None:
                self._places.add(place)
                continue
            try:
                self._networks.append(ip_network(entry))
            except ValueError:
                self._hosts.append(entry.lower().rstrip("."))

    def host(self, name: str, port: int = 0) -> bool:
        """Tell whether a host is allowed by its name, at any port or at this one."""
        bare = name.lower().rstrip(".")
        return (bare, port) in self._places or any(fnmatchcase(bare, pattern) for pattern in self._hosts)

    def address(self, address: Address) -> bool:
        """Tell whether an address is in an allowed network."""
        return any(address in network for network in self._networks)


def place_of(entry: str) -> tuple[str, int] | None:
    """Read `host:port`, an address of IPv6 in brackets; None for what names no port."""
    found = _PLACE.fullmatch(entry.strip().lower())
    if found is None:
        return None
    numbered, named, port = found.groups()
    try:
        return (str(ip_address(numbered)) if numbered else host_of(named).rstrip(".")), int(port)
    except (Refused, ValueError):
        return None
