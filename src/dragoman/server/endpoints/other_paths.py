"""Paths of the vendors' other endpoints, which are passed on untouched: files, embeddings, audio, batches and so on.

A path that begins with `/upstreams/NAME` names the upstream, and what follows is the upstream's own path. Any other is
the vendor's plain path. Paths that several vendors have leave it to the headers whose they are.
"""

import re
from urllib.parse import unquote

from msgspec import Struct


class OtherPath(Struct, frozen=True, kw_only=True):
    """A path at an upstream."""

    dialect: str = ""
    upstream: str = ""
    """The upstream it names; "" for none."""
    path: str
    model: str = ""
    """The model it names; "" for none."""


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_NAMED = re.compile(r"/upstreams/(?P<name>[^/]+)(?P<path>/.+)")
_BELOW = r"(?:[/:].+)?"
_VERSION = r"(?:/upload|/download)?/(?:v1|v1beta|v1beta1|v1alpha)"
_MODEL = re.compile(rf"{_VERSION}/models/(?P<model>[^:]+):[A-Za-z]+")
_PLAIN = (
    (re.compile(rf"/v1/(?:files|batches){_BELOW}"), ""),
    (re.compile(rf"/v1/(?:messages/batches|complete|skills){_BELOW}"), "messages"),
    (
        re.compile(
            r"/v1/(?:assistants|audio|completions|containers|embeddings|evals|fine_tuning|images|moderations|realtime"
            rf"|rerank|threads|uploads|vector_stores|videos){_BELOW}"
        ),
        "chat",
    ),
    (
        re.compile(
            rf"{_VERSION}/(?:batches|cachedContents|corpora|fileSearchStores|files|operations|tunedModels|models/[^:/]+"
            rf"/operations){_BELOW}"
        ),
        "gemini",
    ),
)


def other_path_of(method: str, path: str) -> OtherPath | None:
    """Return where a path leads; None for one that is nobody's."""
    if method not in _METHODS or not _is_plain(path):
        return None
    named = _NAMED.fullmatch(path)
    if named is not None:
        model = _MODEL.fullmatch(named["path"])
        return OtherPath(upstream=named["name"], path=named["path"], model=model["model"] if model else "")
    model = _MODEL.fullmatch(path)
    if model is not None:
        return OtherPath(dialect="gemini", path=path, model=model["model"])
    for pattern, dialect in _PLAIN:
        if pattern.fullmatch(path) is not None:
            return OtherPath(dialect=dialect, path=path)
    return None


def _is_plain(path: str) -> bool:
    """Tell whether everybody on the way reads a path alike: nobody is to find a way up, or a second meaning."""
    if not path.isprintable() or "\\" in path or "//" in path or unquote(path) != path:
        return False
    return not any(segment in {".", ".."} for segment in path.split("/"))
