"""Places that somebody wrote on a list, read as links are read, so that both sides are compared in one form.

An entry is a host, `*.` before it for all below, and a port behind it if it is not the usual one of a link. Letters
beyond ASCII, addresses of IPv6 and dots at the end are read as in a link. What can never match is no entry.
"""

import re
from ipaddress import IPv6Address

from msgspec import Struct

from dragoman.http.locations import Location, Refused, host_of
from dragoman.http.origin import PORTS

_ENTRY = re.compile(r"(\*\.)?(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:/@\s*]+))(?::([0-9]{1,5}))?")
_HIGHEST_PORT = 65535


class Destination(Struct, frozen=True):
    """One entry."""

    host: str
    is_above: bool
    """All below the host are meant, and not the host."""
    port: int | None
    """None for the usual one."""

    def takes(self, place: Location) -> bool:
        """Tell whether a link leads there."""
        host = place.host.rstrip(".")
        port = PORTS[place.scheme] if self.port is None else self.port
        return port == place.port and (host.endswith(f".{self.host}") if self.is_above else host == self.host)


def destination_of(entry: str) -> Destination:
    """Read an entry; raises `ValueError`."""
    bare = entry.strip()
    found = _ENTRY.fullmatch(f"[{bare}]" if _is_address(bare) else bare)
    if found is None:
        raise ValueError(_none(entry))
    above, numbered, named, port = found.groups()
    try:
        host = str(IPv6Address(numbered)) if numbered else host_of(named).rstrip(".")
    except (Refused, ValueError):
        raise ValueError(_none(entry)) from None
    if (above and (numbered or host.rpartition(".")[2].isdecimal())) or not 0 < int(port or 1) <= _HIGHEST_PORT:
        raise ValueError(_none(entry))
    return Destination(host, bool(above), None if port is None else int(port))


def _is_address(entry: str) -> bool:
    try:
        IPv6Address(entry)
    except ValueError:
        return False
    return True


def _none(entry: str) -> str:
    return f'destinations are hosts like "example.com", "*.example.com" or "example.com:8443", and {entry!r} is none'
