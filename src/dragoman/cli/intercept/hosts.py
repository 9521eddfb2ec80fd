"""Which hosts are intercepted: names and patterns, and what mitmproxy calls them."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9*]([a-z0-9*-]*[a-z0-9*])?(\.[a-z0-9*]([a-z0-9*-]*[a-z0-9*])?)+")


def is_host(said: str) -> bool:
    """Tell whether this names hosts, and not everything: `*` stands for a part of one label."""
    return bool(_NAME.fullmatch(said.lower())) and "*" not in said.split(".")[-2:]


def expression(pattern: str) -> str:
    """Return the regular expression for a host and a port."""
    return re.escape(pattern.lower()).replace(r"\*", "[a-z0-9-]+") + ":[0-9]+"


def without(bypass: str, patterns: Iterable[str]) -> tuple[str, list[str]]:
    """Return a list of hosts that go past proxies without those that would take listed ones past ours, and these."""
    kept: list[str] = []
    taken: list[str] = []
    listed = [pattern.lower().replace("*", "x") for pattern in patterns]
    for entry in filter(None, (word.strip() for word in bypass.split(","))):
        name = entry.lower().lstrip("*").partition(":")[0].lstrip(".")
        covers = any(host == name or host.endswith(f".{name}") or not name for host in listed)
        (taken if covers or any(fnmatchcase(host, entry.lower()) for host in listed) else kept).append(entry)
    return ",".join(kept), taken
