"""Who may use the server: keys, hosts, origins, the requests that a key may have open, and the strict header.

Keys are stored as hashes and compared in constant time. Without configured keys every key is accepted, and none is
needed; the server listens on loopback then. A `host` that is not ours is rejected first: a page in a browser may reach
loopback by a name of its own. So is an `origin` that is not ours: a page may post to loopback without being able to
read the answer, and the key that it spends is the user's. A concurrency slot is taken first and released if that was
one too many, so two workers never admit both. An unknown value of the strict header is rejected: a client that asks for
strictness must not go without it because of a typing error.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from fnmatch import fnmatchcase
from urllib.parse import parse_qsl

from msgspec import Struct

from dragoman.config import ANONYMOUS_NAME, Config
from dragoman.core.problems import Problem
from dragoman.http.exchange import Exchange
from dragoman.http.message import Request
from dragoman.server.metrics import SharedCounters

_MAX_KNOWN_HOSTS = 64
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Key(Struct, frozen=True, kw_only=True):
    """A key that is let in, by its hash."""

    hash: str
    name: str
    models: tuple[str, ...] = ()
    """Patterns of the models it may ask for; empty for all."""
    tools: tuple[str, ...] = ()
    """Patterns of the gateway's own tools that it may ask for; empty for all. What an agent uses is the agent's."""
    concurrency: int = 0
    """How many requests it may have open at once; 0 for any number."""

    def allows(self, model: str) -> bool:
        """Tell whether the key may ask for a model."""
        return not self.models or any(fnmatchcase(model, pattern) for pattern in self.models)


ANONYMOUS = Key(hash="", name=ANONYMOUS_NAME)


def hash_secret(secret: str) -> str:
    """Return what is kept of a key."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Access:
    """Decides who may come in."""

    def __init__(self, keys: Iterable[Key], hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._keys = tuple(keys)
        self._hosts = frozenset(host.lower() for host in hosts)
        self._known_hosts: set[str | None] = set()
        """Host headers that were found to be ours."""
        self._origins = tuple(origin.lower().rstrip("/") for origin in origins)

    def authorize(self, request: Request, *, is_public: bool = False) -> Key:
        """Return whose request this is, or raise the `Problem` for which it is not let in."""
        self._check_host(request)
        if is_public or not self._keys:
            return ANONYMOUS
        shown = _find_keys(request)
        if not shown:
            raise Problem("authentication", "no API key was given")
        if len(shown) > 1:
            raise Problem("authentication", "two different API keys were given")
        wanted = hash_secret(shown.pop())
        found = [key for key in self._keys if hmac.compare_digest(key.hash, wanted)]
        if not found:
            raise Problem("authentication", "the API key is not known here")
        return found[0]

    def is_authorized(self, request: Request) -> bool:
        """Tell whether a request would be let in to what is not for anybody."""
        try:
            self.authorize(request)
        except Problem:
            return False
        return True

    def _check_host(self, request: Request) -> None:
        named = request.headers_by_name
        # One of each, and from no page: most requests are like that, and come to the same few names.
        if len(named) == len(request.headers) and named.get("host") in self._known_hosts and "origin" not in named:
            return
        hosts = [value for name, value in request.headers if name == "host"]
        if len(hosts) != 1:
            raise Problem("invalid_request", "a request needs one host header")
        host = _strip_port(hosts[0].strip().lower())
        if self._hosts and host not in self._hosts:
            raise Problem("permission", f"this server is not called {hosts[0]!r}", status=403)
        for name, value in request.headers:
            if name == "origin" and not self._is_allowed_origin(value.strip().lower(), host):
                words = f"a page of {value!r} may not ask here: add it to [server] origins if it should"
                raise Problem("permission", words, status=403)
        if len(self._known_hosts) < _MAX_KNOWN_HOSTS:
            self._known_hosts.add(hosts[0])

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        """Tell whether an origin is one of our own names, or one that is configured."""
        called = _strip_port(origin.partition("://")[2])
        if called and (called in self._hosts if self._hosts else called == host):
            return True
        return any(fnmatchcase(origin, pattern) for pattern in self._origins)


def find_host_names(listen_host: str, configured: Iterable[str]) -> frozenset[str]:
    """Return the host names a server is called by; none for one that cannot know them all."""
    if listen_host in {"0.0.0.0", "::"}:  # noqa: S104  compared, not bound
        return frozenset(configured)
    return frozenset({*_LOOPBACK, listen_host.lower(), *configured})


def _strip_port(host: str) -> str:
    if host.startswith("["):
        inner, _, rest = host[1:].partition("]")
        # What stands behind the bracket is a port or nothing: others may read more into it than we do.
        return inner if not rest or (rest[0] == ":" and rest[1:].isdecimal()) else host
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _find_keys(request: Request) -> set[str]:
    """Return every key a request shows, whichever way its vendor's clients do."""
    shown: set[str] = set()
    for name, value in request.headers:
        if name == "authorization":
            scheme, _, token = value.partition(" ")
            shown.add(token.strip() if scheme.lower() == "bearer" else value)
        elif name in {"x-api-key", "x-goog-api-key"}:
            shown.add(value.strip())
    if "?" in request.target:
        shown.update(value for name, value in parse_qsl(request.target.partition("?")[2]) if name == "key")
    return shown - {""}


_BOOLEAN_WORDS = (
    {"": False} | dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(("false", "0", "no", "off"), False)
)


def parse_strict(value: str, *, default: bool) -> bool:
    """Read the header; "" for none."""
    wanted = _BOOLEAN_WORDS.get(value.strip().lower())
    if wanted is None:
        words = f"x-dragoman-strict is true or false (1, yes, on; 0, no, off), not {value!r}"
        raise Problem("invalid_request", words)
    return default or wanted


class Quotas:
    """Counts the open requests of keys that may have only so many."""

    def __init__(self, config: Config, counters: SharedCounters, worker: int) -> None:
        self._key_index = {key.name: at for at, key in enumerate(config.keys, 1)}
        self._open_counts = [share.open_requests for share in counters.all_counters()]
        self._own_counts = self._open_counts[worker]

    def acquire(self, key: Key) -> None:
        """Begin a request, or raise the `Problem` that there are too many."""
        if not key.concurrency:
            return
        at = self._key_index[key.name]
        self._own_counts[at] += 1
        if sum(counted[at] for counted in self._open_counts) > key.concurrency:
            self._own_counts[at] -= 1
            raise Problem("rate_limit", f"this key has {key.concurrency} requests open already", retry_after=1)

    def release(self, key: Key) -> None:
        """End a request."""
        if key.concurrency:
            self._own_counts[self._key_index[key.name]] -= 1

    @contextmanager
    def slot(self, key: Key) -> Generator[None]:
        """Count a request of a key as open while the block runs."""
        self.acquire(key)
        try:
            yield
        finally:
            self.release(key)


def cancel_on_disconnect(exchange: Exchange) -> None:
    """Cancel the current task when the client disconnects."""
    task = asyncio.current_task()
    if task is not None:
        exchange.on_disconnect = task.cancel
