"""What is different in a child's environment: its proxy and whom it trusts, and nothing else."""

from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from dragoman.cli.intercept.hosts import without

_HERE = ("localhost", "127.0.0.1", "::1")
_BYPASS = ("NO_PROXY", "no_proxy")
_PROXY = ("HTTPS_PROXY", "https_proxy")


class ProxyError(Exception):
    """The proxy that the user already has cannot be gone through."""


class Before(Struct, frozen=True):
    """The proxy that a user already has on the way to the internet."""

    mode: str = ""
    credentials: str = ""


def proxy_before(environment: Mapping[str, str]) -> Before:
    """Return the proxy behind ours, if the user has one."""
    names = (*reversed(_PROXY), "all_proxy", "ALL_PROXY")
    said = next((environment[name] for name in names if environment.get(name)), "")
    if not said:
        return Before()
    parts = urlsplit(said if "://" in said else f"http://{said}")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ProxyError(f"mitmproxy cannot go through your proxy: it is of the kind {parts.scheme}, not http or https")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = parts.port or (443 if parts.scheme == "https" else 80)
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    return Before(f"upstream:{parts.scheme}://{host}:{port}", credentials)


def proxied(url: str, environment: Mapping[str, str], hosts: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables by which a child finds our proxy, and what had to leave its list of exceptions."""
    listed = list(hosts)
    said = next((environment[name] for name in _BYPASS if environment.get(name)), "")
    kept, taken = without(said, listed)
    bypass = ",".join(dict.fromkeys([*filter(None, kept.split(",")), *_HERE]))
    # Node's own fetch looks at these variables only if it is told to.
    return {**dict.fromkeys(_PROXY, url), **dict.fromkeys(_BYPASS, bypass), "NODE_USE_ENV_PROXY": "1"}, taken
