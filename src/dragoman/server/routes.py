"""Which operation and dialect a path stands for.

The paths of a dialect are in its folder (`api.py`); the gateway's own are here. The vendors' other endpoints (files,
embeddings, audio, batches and so on) are passed through. A path that begins with `/upstreams/NAME` names the upstream,
and the rest is the upstream's own path.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from msgspec import Struct, structs

from dragoman.dialects.api import READ_METHODS, Endpoint, ServedPath
from dragoman.dialects.record import Dialect
from dragoman.intercept.settings import DIALECT as INTERCEPTED


class PassthroughPath(Struct, frozen=True, kw_only=True):
    """A path at an upstream."""

    dialect: str = ""
    upstream: str = ""
    """The upstream it names; "" for none."""
    path: str
    model: str = ""
    """The model it names; "" for none."""


class PathMatch(Endpoint, frozen=True, kw_only=True):
    """What a path means."""

    dialect: str = ""
    """Whose errors a client wants there; where several may ask, the headers decide."""
    model: str = ""
    item: str = ""
    passthrough: PassthroughPath | None = None
    """Another endpoint of a vendor, which is passed on untouched."""


_OWN_PATHS = (
    ServedPath("/v1/models", Endpoint(operation="models"), READ_METHODS),
    ServedPath(
        r"/v1/models/(?P<model>(?!.+/operations/).+)", Endpoint(operation="model"), READ_METHODS, is_pattern=True
    ),
    ServedPath(r"/v1/exchanges/(?P<name>[^/]+)", Endpoint(operation="exchange"), READ_METHODS, is_pattern=True),
    ServedPath("/mcp", Endpoint(operation="mcp"), ("POST", "DELETE", *READ_METHODS)),
    ServedPath("/health", Endpoint(operation="health"), READ_METHODS),
    ServedPath("/metrics", Endpoint(operation="metrics"), READ_METHODS),
)
_INTERCEPT = re.compile(r"/intercept/(?P<name>[^/@]+)(?:@(?P<session>[^/]*))?(?P<rest>/.*)?")
_PASSED_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_UPSTREAM_PATH = re.compile(r"/upstreams/(?P<name>[^/]+)(?P<path>/.+)")
_SHARED_PATHS = r"/v1/(?:files|batches)(?:[/:].+)?"
"""Paths that several vendors have: the client's headers tell whose are meant."""


class _Pattern(Struct, frozen=True):
    """A path with names in it."""

    regex: re.Pattern[str]
    path: PathMatch
    ending: str
    escaped: bool


class Paths:
    """The paths that are served, those of dialects and our own.

    Patterns of a dialect that was registered later are tried first; the dialect that was registered first answers
    where nothing tells another.
    """

    def __init__(self, dialects: Iterable[Dialect]) -> None:
        last_first = list(dialects)[::-1]
        self.fixed_paths: dict[tuple[str, str], PathMatch] = {}
        """Paths without names in them, by method."""
        self._patterns: dict[str, list[_Pattern]] = {}
        self._add_paths(_OWN_PATHS, "")
        self._passthrough_patterns = [("", re.compile(_SHARED_PATHS))]
        for dialect in last_first:
            self._add_paths(dialect.api.paths, dialect.name)
            self._passthrough_patterns.extend(
                (dialect.name, re.compile(pattern)) for pattern in dialect.api.other_paths
            )
        self._default = last_first[-1].name
        self._dialect_signs = [
            (dialect.name, dialect.api.own_headers, re.compile(dialect.api.own_paths or "(?!)"))
            for dialect in last_first
        ]

    def find(self, method: str, path: str, escaped_path: str = "") -> PathMatch | None:
        """Return what a path means; None for one that nobody serves.

        `written` is the path with its percent escapes: a name in it may hold a slash.
        """
        found = self.fixed_paths.get((method, path))
        if found is not None:
            return found
        if path.startswith("/intercept/"):
            return _parse_intercept_path(escaped_path or path)
        for pattern in self._patterns.get(method, ()):
            if not path.endswith(pattern.ending):
                continue
            named = pattern.regex.fullmatch((escaped_path or path) if pattern.escaped else path)
            if named is not None:
                names = named.groupdict()
                if pattern.escaped:
                    names = {name: unquote(value) for name, value in names.items()}
                return structs.replace(pattern.path, **names)
        other = self._find_passthrough(method, path)
        return (
            None
            if other is None
            else PathMatch(dialect=other.dialect, operation="other", model=other.model, passthrough=other)
        )

    def find_methods(self, path: str, escaped_path: str) -> tuple[str, ...]:
        """Return the methods by which something can be asked at a path."""
        return tuple(
            method for method in ("GET", "POST", "DELETE") if self.find(method, path, escaped_path) is not None
        )

    def dialect_of(self, path: str, headers: dict[str, str]) -> str:
        """Tell whose errors a client wants where the path alone does not say."""
        for name, own_headers, own_paths in self._dialect_signs:
            if not own_headers.isdisjoint(headers) or own_paths.search(path) is not None:
                return name
        return self._default

    def _add_paths(self, rows: Iterable[ServedPath], dialect: str) -> None:
        for row in rows:
            path = PathMatch(dialect=dialect, **structs.asdict(row.endpoint))
            for method in row.methods:
                if row.is_pattern:
                    pattern = _Pattern(re.compile(row.path), path, row.ending, row.escaped)
                    self._patterns.setdefault(method, []).append(pattern)
                else:
                    self.fixed_paths.setdefault((method, row.path), path)

    def _find_passthrough(self, method: str, path: str) -> PassthroughPath | None:
        """Return where a path leads that is passed through; None for one that is nobody's."""
        if method not in _PASSED_METHODS or not _is_unambiguous(path):
            return None
        named = _UPSTREAM_PATH.fullmatch(path)
        if named is not None:
            found = self._match_passthrough(named["path"])
            return PassthroughPath(upstream=named["name"], path=named["path"], model=found.model if found else "")
        return self._match_passthrough(path)

    def _match_passthrough(self, path: str) -> PassthroughPath | None:
        for dialect, pattern in self._passthrough_patterns:
            found = pattern.fullmatch(path)
            if found is not None:
                return PassthroughPath(dialect=dialect, path=path, model=found.groupdict().get("model", ""))
        return None


def _is_unambiguous(path: str) -> bool:
    """Tell whether everybody on the way reads a path alike: nobody is to find a way up, or a second meaning."""
    if not path.isprintable() or "\\" in path or "//" in path or unquote(path) != path:
        return False
    return not any(segment in {".", ".."} for segment in path.split("/"))


def _parse_intercept_path(escaped_path: str) -> PathMatch | None:
    """Read a path of an intercepted client: behind the name of its entry, or upstream, is what it asks there."""
    found = _INTERCEPT.fullmatch(escaped_path)
    if found is None:
        return None
    name, session = unquote(found["name"]), unquote(found["session"] or "")
    return PathMatch(dialect=INTERCEPTED, operation="intercept", name=name, item=session, action=found["rest"] or "/")
