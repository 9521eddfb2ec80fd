"""Authorization: API keys, allowed hosts and origins, the concurrency limit of a key, and the strict header.

Keys are stored as hashes and compared in constant time. Without configured keys every key is accepted and none is
needed; the server listens on loopback then. A request with a foreign `host` is rejected first, because a web page can
reach loopback through its own host name (DNS rebinding). A foreign `origin` is rejected too: a page can post to
loopback without reading the response, and would spend the user's quota. A concurrency slot is taken first and released
if that exceeds the limit, so that two workers never both admit the last request. An unknown value of the strict header
is rejected: a client that requires strict mode must not lose it because of a typing error.
"""

import hashlib
import hmac
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from fnmatch import fnmatchcase
from urllib.parse import parse_qsl

from msgspec import Struct

from dragoman.config import ANONYMOUS_NAME, Config
from dragoman.core.losses import Strict
from dragoman.core.problems import Problem
from dragoman.http.message import Request
from dragoman.server.metrics import SharedCounters

_MAX_KNOWN_HOSTS = 64
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class Key(Struct, frozen=True, kw_only=True):
    """A configured API key, stored as a hash, and what it may use."""

    hash: str
    name: str
    models: tuple[str, ...] = ()
    """Patterns of the models it may use; empty for all."""
    tools: tuple[str, ...] = ()
    """Patterns of the gateway's tools it may use; empty for all. The tools of an agent are not restricted by this."""
    concurrency: int = 0
    """Maximum number of concurrent requests; 0 for no limit."""

    def allows(self, model: str) -> bool:
        """Return whether the key may use a model."""
        return not self.models or any(fnmatchcase(model, pattern) for pattern in self.models)


ANONYMOUS = Key(hash="", name=ANONYMOUS_NAME)


def hash_secret(secret: str) -> str:
    """Return the SHA-256 hash that is stored for a key."""
    return hashlib.sha256(secret.encode()).hexdigest()


_NO_KEY = "no API key was given; send one as a bearer token, in x-api-key or in x-goog-api-key"


class Access:
    """Checks the API key, host and origin of requests."""

    def __init__(self, keys: Iterable[Key], hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._keys = tuple(keys)
        self._hosts = frozenset(host.lower() for host in hosts)
        self._known_hosts: set[str | None] = set()
        """Host headers that passed the check."""
        self._origins = tuple(origin.lower().rstrip("/") for origin in origins)

    def authorize(self, request: Request, *, is_public: bool = False) -> Key:
        """Return the key of a request; raises a `Problem` if the request is not authorized."""
        self._check_host(request)
        if is_public or not self._keys:
            return ANONYMOUS
        keys = _find_keys(request)
        if not keys:
            raise Problem("authentication", _NO_KEY)
        if len(keys) > 1:
            raise Problem("authentication", "two different API keys were given; send only one")
        hashed = hash_secret(keys.pop())
        found = [key for key in self._keys if hmac.compare_digest(key.hash, hashed)]
        if not found:
            raise Problem("authentication", "the API key is not one of this gateway's keys (`keys` in [server])")
        return found[0]

    def is_authorized(self, request: Request) -> bool:
        """Return whether a request is authorized to use paths that are not public."""
        try:
            self.authorize(request)
        except Problem:
            return False
        return True

    def _check_host(self, request: Request) -> None:
        by_name = request.headers_by_name
        # Fast path for most requests: no duplicate headers, a known host and no origin.
        if (
            len(by_name) == len(request.headers)
            and by_name.get("host") in self._known_hosts
            and "origin" not in by_name
        ):
            return
        hosts = [value for name, value in request.headers if name == "host"]
        if len(hosts) != 1:
            raise Problem("invalid_request", "a request must have exactly one host header")
        host = _strip_port(hosts[0].strip().lower())
        if self._hosts and host not in self._hosts:
            raise Problem("permission", f"Host {hosts[0]!r} is not allowed; add it to `hosts` in [server]", status=403)
        for name, value in request.headers:
            if name == "origin" and not self._is_allowed_origin(value.strip().lower(), host):
                message = f"Origin {value!r} is not allowed; add it to `origins` in [server]"
                raise Problem("permission", message, status=403)
        if len(self._known_hosts) < _MAX_KNOWN_HOSTS:
            self._known_hosts.add(hosts[0])

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        """Return whether an origin is one of the server's own host names or is configured."""
        origin_host = _strip_port(origin.partition("://")[2])
        if origin_host and (origin_host in self._hosts if self._hosts else origin_host == host):
            return True
        return any(fnmatchcase(origin, pattern) for pattern in self._origins)


def find_host_names(listen_host: str, configured: Iterable[str]) -> frozenset[str]:
    """Return the allowed host names; empty (all are allowed) for a wildcard address without configured hosts."""
    if listen_host in {"0.0.0.0", "::"}:  # noqa: S104  compared, not bound
        return frozenset(configured)
    return frozenset({*LOOPBACK_HOSTS, listen_host.lower(), *configured})


def _strip_port(host: str) -> str:
    if host.startswith("["):
        inner, bracket, rest = host[1:].partition("]")
        # Only a port may follow the bracket: other parsers may interpret anything else differently.
        return inner if bracket and (not rest or (rest[0] == ":" and rest[1:].isdecimal())) else host
    name, _, port = host.partition(":")
    return name if port.isdecimal() else host


def _find_keys(request: Request) -> set[str]:
    """Return the distinct API keys of a request, in the headers and the query parameter of all vendors."""
    keys: set[str] = set()
    for name, value in request.headers:
        if name == "authorization":
            scheme, _, token = value.partition(" ")
            keys.add(token.strip() if scheme.lower() == "bearer" else value)
        elif name in {"x-api-key", "x-goog-api-key"}:
            keys.add(value.strip())
    if "?" in request.target:
        keys.update(value for name, value in parse_qsl(request.target.partition("?")[2]) if name == "key")
    return keys - {""}


_STRICT_VALUES: dict[str, Strict] = {
    "": False,
    "all": "all",
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}


def parse_strict(value: str | None, *, default: Strict) -> Strict:
    """Parse the x-dragoman-strict header; it can make a request stricter than the default, but not less strict."""
    if value is None:
        return default
    parsed = _STRICT_VALUES.get(value.strip().lower())
    if parsed is None:
        message = f"x-dragoman-strict must be true, false (or 1, yes, on; 0, no, off) or all, not {value!r}"
        raise Problem("invalid_request", message)
    return "all" if "all" in (default, parsed) else default or parsed


class Quotas:
    """Enforces the concurrency limit of keys."""

    def __init__(self, config: Config, counters: SharedCounters, worker: int) -> None:
        self._key_index = {key.name: at for at, key in enumerate(config.keys, 1)}
        self._open_counts = [share.open_requests for share in counters.all_counters()]
        self._own_counts = self._open_counts[worker]

    def acquire(self, key: Key) -> None:
        """Take a slot for a request; raises a `Problem` if the key has none left."""
        if not key.concurrency:
            return
        at = self._key_index[key.name]
        self._own_counts[at] += 1
        if self._count_open(key) > key.concurrency:
            self._own_counts[at] -= 1
            raise _build_quota_error(key)

    def require_free(self, key: Key) -> None:
        """Raise a `Problem` if a key has no slot left; take none."""
        if key.concurrency and self._count_open(key) >= key.concurrency:
            raise _build_quota_error(key)

    def _count_open(self, key: Key) -> float:
        at = self._key_index[key.name]
        return sum(counts[at] for counts in self._open_counts)

    def release(self, key: Key) -> None:
        """Release the slot of a request."""
        if key.concurrency:
            self._own_counts[self._key_index[key.name]] -= 1

    @contextmanager
    def slot(self, key: Key) -> Generator[None]:
        """Hold a slot of a key while the block runs."""
        self.acquire(key)
        try:
            yield
        finally:
            self.release(key)


def _build_quota_error(key: Key) -> Problem:
    message = f"this key already has {key.concurrency} open requests, which is its limit"
    return Problem("rate_limit", message, retry_after=1)
