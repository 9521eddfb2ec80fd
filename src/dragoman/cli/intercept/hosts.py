"""Which hosts are intercepted for which entry of the configuration, and the variables that need no proxy.

The hosts of an entry are those by which clients reach its upstream. One host belongs to one entry.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from urllib.parse import quote, urlsplit

from dragoman.config import Config, ConfigError, UpstreamTable
from dragoman.intercept.settings import DIALECT, InterceptTable
from dragoman.upstreams.registry import KINDS

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9*]([a-z0-9*-]*[a-z0-9*])?(\.[a-z0-9*]([a-z0-9*-]*[a-z0-9*])?)+")


def is_host(text: str) -> bool:
    """Tell whether this names hosts, and not everything: `*` stands for a part of one label."""
    return bool(_NAME.fullmatch(text.lower())) and "*" not in text.split(".")[-2:]


def host_expression(pattern: str) -> str:
    """Return the regular expression for a host and a port."""
    return re.escape(pattern.lower()).replace(r"\*", "[a-z0-9-]+") + ":[0-9]+"


def drop_bypassed_hosts(bypass: str, patterns: Iterable[str]) -> tuple[str, list[str]]:
    """Return a list of hosts that go past proxies without those that would take listed ones past ours, and these."""
    kept: list[str] = []
    taken: list[str] = []
    listed = [pattern.lower().replace("*", "x") for pattern in patterns]
    for entry in filter(None, (word.strip() for word in bypass.split(","))):
        name = entry.lower().lstrip("*").partition(":")[0].lstrip(".")
        covers = any(host == name or host.endswith(f".{name}") or not name for host in listed)
        (taken if covers or any(fnmatchcase(host, entry.lower()) for host in listed) else kept).append(entry)
    return ",".join(kept), taken


def find_entries(config: Config, name: str = "") -> dict[str, InterceptTable]:
    """Return the entries that are meant: the one that is named, or all; without any, the upstreams of Google's."""
    upstreams = {
        named: InterceptTable(upstream=named)
        for named, table in config.upstreams.items()
        if DIALECT in KINDS[table.kind].dialects
    }
    known = {**upstreams, **config.intercept}
    if name:
        if name not in known:
            raise ConfigError(config.source, "intercept", f"there is no {name!r}: it may be {_format_names(known)}")
        return {name: known[name]}
    found = dict(config.intercept) or upstreams
    if not found:
        raise ConfigError(config.source, "intercept", "there is no upstream of Google's to stand before")
    return found


def build_routes(config: Config, name: str = "", session: str = "") -> dict[str, str]:
    """Return the path of the surface for each pattern of hosts."""
    found: dict[str, str] = {}
    for entry, table in find_entries(config, name).items():
        for host in table.hosts or _default_hosts(config.upstreams[table.upstream]):
            if not is_host(host):
                raise ConfigError(config.source, f"intercept.{entry}.hosts", f"{host!r} is no name of a host")
            _add_unique(config, found, host, path_of(entry, session))
    return found


def build_variables(config: Config, base_url: str, name: str = "", session: str = "") -> dict[str, str]:
    """Return the variables by which clients that can be told ask the surface themselves."""
    found: dict[str, str] = {}
    for entry, table in find_entries(config, name).items():
        for variable in KINDS[config.upstreams[table.upstream].kind].client_variables:
            _add_unique(config, found, variable, base_url + path_of(entry, session))
    return found


def path_of(entry: str, session: str) -> str:
    """Return the path of the surface for an entry."""
    return f"/intercept/{entry}@{quote(session, safe='')}" if session else f"/intercept/{entry}"


def _add_unique(config: Config, found: dict[str, str], key: str, value: str) -> None:
    if key in found:
        raise ConfigError(config.source, "intercept", f"{key} belongs to several entries: choose one with --name")
    found[key] = value


def _default_hosts(upstream: UpstreamTable) -> list[str]:
    """Return the hosts by which clients reach such an upstream, wherever it is configured to be."""
    urls = KINDS[upstream.kind].client_urls
    return [urlsplit(url).hostname or "" for url in urls(upstream)] if urls is not None else []


def _format_names(names: Mapping[str, object]) -> str:
    return ", ".join(names) or "nothing yet"
