"""Which hosts may be asked: a domain stands for itself and all below it, in whatever letters it is written."""

from collections.abc import Iterable
from ipaddress import IPv6Address

from dragoman.http.locations import Location, Refused, host_of


class Domains:
    """Lists of domains. What is denied is denied, also where it is allowed too."""

    def __init__(self, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> None:
        self._allow = frozenset(map(plain, allow))
        self._deny = frozenset(map(plain, deny))

    def admit(self, place: Location) -> None:
        """Raise `Refused` for a place that must not be asked."""
        above = set(_and_above(place.host.rstrip(".")))
        if above & self._deny or (self._allow and not above & self._allow):
            raise Refused(f"{place.host} is not among the hosts that may be asked")


def plain(entry: str) -> str:
    """Return a domain in the form it is compared in; raises `ValueError`."""
    bare = entry.strip().removeprefix("*.").removeprefix("[").removesuffix("]")
    if ":" in bare:
        return str(IPv6Address(bare))
    try:
        return host_of(bare).rstrip(".")
    except Refused:
        raise ValueError(f"{entry!r} is no domain") from None


def _and_above(host: str) -> Iterable[str]:
    yield host
    if ":" in host or host.rpartition(".")[2].isdecimal():
        return
    while "." in host:
        host = host.partition(".")[2]
        yield host
