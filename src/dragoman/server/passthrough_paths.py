"""The vendors' other endpoints, which are passed through: files, embeddings, audio, batches and so on.

A path that begins with `/upstreams/NAME` selects the upstream, and the rest is the upstream's own path.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from msgspec import Struct

from dragoman.dialects.record import Dialect

_PASSED_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_UPSTREAM_PATH = re.compile(r"/upstreams/(?P<name>[^/]+)(?P<path>/.+)")
_SHARED_PATHS = r"/v1/(?:files|batches)(?:[/:].+)?"
"""Paths that several vendors have: the client's headers decide which vendor is meant."""


class PassthroughPath(Struct, frozen=True, kw_only=True):
    """A path that is forwarded to an upstream."""

    dialect: str = ""
    upstream: str = ""
    """The upstream in the path; "" for none."""
    path: str
    model: str = ""
    """The model in the path; "" for none."""


class PassthroughPaths:
    """The passed-through paths of all dialects, in the order in which they are tried."""

    def __init__(self, dialects: Iterable[Dialect]) -> None:
        self._patterns = [("", re.compile(_SHARED_PATHS))]
        for dialect in dialects:
            self._patterns.extend((dialect.name, re.compile(pattern)) for pattern in dialect.api.other_paths)

    def find(self, method: str, path: str) -> PassthroughPath | None:
        """Return the upstream path of a passed-through path; None if the path matches no vendor's endpoint."""
        if method not in _PASSED_METHODS or not _is_unambiguous(path):
            return None
        matched = _UPSTREAM_PATH.fullmatch(path)
        if matched is not None:
            found = self._match(matched["path"])
            return PassthroughPath(upstream=matched["name"], path=matched["path"], model=found.model if found else "")
        return self._match(path)

    def _match(self, path: str) -> PassthroughPath | None:
        for dialect, pattern in self._patterns:
            found = pattern.fullmatch(path)
            if found is not None:
                return PassthroughPath(dialect=dialect, path=path, model=found.groupdict().get("model", ""))
        return None


def _is_unambiguous(path: str) -> bool:
    """Return whether all servers interpret a path alike: no dot segments, `//`, backslashes or nested escapes."""
    if not path.isprintable() or "\\" in path or "//" in path or unquote(path) != path:
        return False
    return not any(segment in {".", ".."} for segment in path.split("/"))
