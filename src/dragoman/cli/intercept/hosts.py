"""Map hosts to the `[intercept.*]` entries of the configuration, for the proxy and for environment variables.

The default hosts of an entry are those that clients of its upstream contact. A host belongs to one entry only.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from urllib.parse import quote, urlsplit

from dragoman.config import Config, ConfigError, UpstreamTable
from dragoman.intercept.settings import DIALECT, InterceptTable
from dragoman.upstreams.registry import KINDS

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9*]([a-z0-9*-]*[a-z0-9*])?(\.[a-z0-9*]([a-z0-9*-]*[a-z0-9*])?)+")


def is_host(text: str) -> bool:
    """Return whether a text is a host name or a pattern: `*` matches within one label, and not in the last two."""
    return bool(_NAME.fullmatch(text.lower())) and "*" not in text.split(".")[-2:]


def host_expression(pattern: str) -> str:
    """Return the regular expression that matches `host:port` for a host pattern."""
    return re.escape(pattern.lower()).replace(r"\*", "[a-z0-9-]+") + ":[0-9]+"


def drop_bypassed_hosts(bypass: str, patterns: Iterable[str]) -> tuple[str, list[str]]:
    """Remove from a NO_PROXY list the entries that cover intercepted hosts; return the rest and the removed entries."""
    kept: list[str] = []
    taken: list[str] = []
    listed = [pattern.lower().replace("*", "x") for pattern in patterns]
    for entry in filter(None, (word.strip() for word in bypass.split(","))):
        name = entry.lower().lstrip("*").partition(":")[0].lstrip(".")
        covers = any(host == name or host.endswith(f".{name}") or not name for host in listed)
        (taken if covers or any(fnmatchcase(host, entry.lower()) for host in listed) else kept).append(entry)
    return ",".join(kept), taken


def find_entries(config: Config, name: str = "") -> dict[str, InterceptTable]:
    """Return the entry with that name, or all entries; without any, an entry for each upstream with the Gemini API."""
    upstreams = {
        named: InterceptTable(upstream=named)
        for named, table in config.upstreams.items()
        if DIALECT in KINDS[table.kind].dialects
    }
    known = {**upstreams, **config.intercept}
    if name:
        if name not in known:
            raise ConfigError(
                config.source,
                "intercept",
                f"no entry or Gemini upstream {name!r}; known names are {', '.join(known) or 'none'}",
            )
        return {name: known[name]}
    found = dict(config.intercept) or upstreams
    if not found:
        raise ConfigError(config.source, "intercept", "no upstream has the Gemini API; add one to [upstreams]")
    return found


def build_routes(config: Config, name: str = "", session: str = "") -> dict[str, str]:
    """Return the gateway path for each host pattern."""
    found: dict[str, str] = {}
    for entry, table in find_entries(config, name).items():
        for host in table.hosts or _default_hosts(config.upstreams[table.upstream]):
            if not is_host(host):
                raise ConfigError(config.source, f"intercept.{entry}.hosts", f"{host!r} is not a host name")
            _add_unique(config, found, host, path_of(entry, session))
    return found


def build_variables(config: Config, base_url: str, name: str = "", session: str = "") -> list[tuple[str, str, str]]:
    """Return, for each entry, the variables that set the base URL of the vendor's clients to the gateway.

    A row has the entry, the variable and its value. Several entries may have the same variable.
    """
    return [
        (entry, variable, base_url + path_of(entry, session))
        for entry, table in find_entries(config, name).items()
        for variable in KINDS[config.upstreams[table.upstream].kind].client_variables
    ]


def path_of(entry: str, session: str) -> str:
    """Return the gateway path of an entry, with the session if there is one."""
    return f"/intercept/{entry}@{quote(session, safe='')}" if session else f"/intercept/{entry}"


def _add_unique(config: Config, found: dict[str, str], key: str, value: str) -> None:
    if key in found:
        raise ConfigError(config.source, "intercept", f"{key} belongs to several entries: choose one with --name")
    found[key] = value


def _default_hosts(upstream: UpstreamTable) -> list[str]:
    """Return the vendor's hosts that clients of this upstream kind contact, whatever its `base_url` is."""
    urls = KINDS[upstream.kind].client_urls
    return [urlsplit(url).hostname or "" for url in urls(upstream)] if urls is not None else []
