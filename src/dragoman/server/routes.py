"""Map paths to operations and dialects.

The paths of a dialect are in its package (`API`); the gateway's own are here. The vendors' other endpoints are in
`passthrough_paths`.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from msgspec import Struct, structs

from dragoman.dialects.api import READ_METHODS, Endpoint, ServedPath
from dragoman.dialects.record import Dialect
from dragoman.intercept.settings import DIALECT as INTERCEPTED
from dragoman.server.passthrough_paths import PassthroughPath, PassthroughPaths


class PathMatch(Endpoint, frozen=True, kw_only=True):
    """The operation, dialect and variables of a matched path."""

    dialect: str = ""
    """The dialect of errors; "" if several vendors share the path, and the headers decide."""
    model: str = ""
    passthrough: PassthroughPath | None = None
    """Set for a vendor endpoint that is forwarded unchanged."""


_OWN_PATHS = (
    ServedPath("/v1/models", Endpoint(operation="models"), READ_METHODS),
    ServedPath(
        r"/v1/models/(?P<model>(?!.+/operations/).+)", Endpoint(operation="model"), READ_METHODS, is_pattern=True
    ),
    ServedPath(r"/v1/exchanges/(?P<name>[^/]+)", Endpoint(operation="exchange"), READ_METHODS, is_pattern=True),
    ServedPath("/mcp", Endpoint(operation="mcp"), ("POST", "DELETE", *READ_METHODS)),
    ServedPath("/health", Endpoint(operation="health"), READ_METHODS),
    ServedPath("/ready", Endpoint(operation="ready"), READ_METHODS),
    ServedPath("/metrics", Endpoint(operation="metrics"), READ_METHODS),
)
_TRANSLATE = ServedPath("/v1/translate", Endpoint(operation="translate"), ("POST",))
_INTERCEPT = re.compile(r"/intercept/(?P<name>[^/@]+)(?:@(?P<session>[^/]*))?(?P<rest>/.*)?")


class _Pattern(Struct, frozen=True):
    """A path with variables."""

    regex: re.Pattern[str]
    path: PathMatch
    ending: str
    escaped: bool


class Paths:
    """All routes: those of the dialects and the gateway's own.

    Patterns of dialects that were registered later are tried first. The dialect that was registered first is the
    default for requests that match none. `translates` adds the path that translates documents.
    """

    def __init__(self, dialects: Iterable[Dialect], *, translates: bool = False) -> None:
        last_first = list(dialects)[::-1]
        self.fixed_paths: dict[tuple[str, str], PathMatch] = {}
        """Paths without variables, by method and path."""
        self._patterns: dict[str, list[_Pattern]] = {}
        self._add_paths((*_OWN_PATHS, _TRANSLATE) if translates else _OWN_PATHS, "")
        for dialect in last_first:
            self._add_paths(dialect.api.paths, dialect.name)
        self._passthrough = PassthroughPaths(last_first)
        self._default = last_first[-1].name
        self._dialect_signs = [
            (dialect.name, dialect.api.own_headers, re.compile(dialect.api.own_paths or "(?!)"))
            for dialect in last_first
        ]

    def find(self, method: str, path: str, escaped_path: str = "") -> PathMatch | None:
        """Match a path; return None if it does not exist.

        `escaped_path` is the path with its percent escapes, because a variable may contain an escaped slash.
        """
        found = self.fixed_paths.get((method, path))
        if found is not None:
            return found
        if path.startswith("/intercept/"):
            return _parse_intercept_path(escaped_path or path)
        for pattern in self._patterns.get(method, ()):
            if not path.endswith(pattern.ending):
                continue
            matched = pattern.regex.fullmatch((escaped_path or path) if pattern.escaped else path)
            if matched is not None:
                variables = matched.groupdict()
                if pattern.escaped:
                    variables = {name: unquote(value) for name, value in variables.items()}
                return structs.replace(pattern.path, **variables)
        passthrough = self._passthrough.find(method, path)
        return (
            None
            if passthrough is None
            else PathMatch(
                dialect=passthrough.dialect, operation="other", model=passthrough.model, passthrough=passthrough
            )
        )

    def find_methods(self, path: str, escaped_path: str) -> tuple[str, ...]:
        """Return the methods that a path supports."""
        return tuple(
            method for method in ("GET", "POST", "DELETE") if self.find(method, path, escaped_path) is not None
        )

    def dialect_of(self, path: str, headers: dict[str, str]) -> str:
        """Return the dialect of errors for a path that does not determine it, from the headers or parts of the path."""
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


def _parse_intercept_path(escaped_path: str) -> PathMatch | None:
    """Parse `/intercept/NAME[@SESSION]/...`: the rest after the name is the path at the upstream."""
    found = _INTERCEPT.fullmatch(escaped_path)
    if found is None:
        return None
    name, session = unquote(found["name"]), unquote(found["session"] or "")
    return PathMatch(dialect=INTERCEPTED, operation="intercept", name=name, item=session, action=found["rest"] or "/")
