"""Upstreams from environment variables: those that the vendors' SDKs read too."""

import logging
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address
from operator import attrgetter

import msgspec

from dragoman.http.message import split_url
from dragoman.upstreams.kind import UpstreamKind, UpstreamTable
from dragoman.upstreams.registry import KINDS
from dragoman.upstreams.simulator import KIND as SIMULATOR

_LOG = logging.getLogger("dragoman.upstreams")


def read_upstreams(environment: Mapping[str, str], listen: str = "") -> dict[str, UpstreamTable]:
    """Return an upstream for each vendor whose usual variable is set; the simulator if none is set.

    A base URL with the address `listen` is that of this gateway and ignored: users set it for their clients. Raises
    `ValueError`, with the name of the variable, for a base URL that is not valid.
    """
    found: dict[str, UpstreamTable] = {}
    # API keys come before Google Cloud projects: a key belongs to one vendor, a project serves several.
    for kind in sorted(KINDS.values(), key=attrgetter("needs_project")):
        if kind.found_as and environment.get(next(iter(kind.variables.values()), "")):
            settings = {name: environment.get(variable, "").strip() for name, variable in kind.variables.items()}
            variable = kind.variables.get("base_url", "")
            if settings.get("base_url") and _is_own_address(variable, settings["base_url"], listen):
                _warn_of_own_address(variable, settings.pop("base_url"))
            given = {name: value for name, value in settings.items() if value}
            table = msgspec.convert({"kind": kind.name, **given}, UpstreamTable)
            found[kind.found_as] = msgspec.structs.replace(table, kind=_find_kind(kind, table).name)
    return found or {SIMULATOR.name: UpstreamTable(kind=SIMULATOR.name)}


def _find_kind(kind: UpstreamKind, table: UpstreamTable) -> UpstreamKind:
    """Return the kind of an upstream: for another server than the vendor's, the kind of compatible servers."""
    if not table.base_url or kind.is_vendors_server(table):
        return kind
    return next((each for each in KINDS.values() if each.compatible and each.other_kind == kind.name), kind)


def _is_own_address(variable: str, base_url: str, listen: str) -> bool:
    try:
        origin = split_url(base_url)[0]
    except ValueError as error:
        raise ValueError(f"{variable}: {error}; write a base URL such as https://host.example/v1") from None
    host, _, port = listen.rpartition(":")
    host = host.strip("[]").lower()
    return str(origin.port) == port and (origin.host == host or (_is_local(origin.host) and _is_local(host)))


def _is_local(host: str) -> bool:
    """Return whether a host is this machine; a server that listens on all addresses also listens on its own."""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified


@cache
def _warn_of_own_address(variable: str, base_url: str) -> None:
    """Say once that a variable is ignored; without a log handler, Python writes warnings to stderr."""
    _LOG.warning("dragoman: %s=%s is the address of this gateway: ignored, it is for clients", variable, base_url)
