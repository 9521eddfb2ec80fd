"""Which headers pass: the client's own credentials go on, nothing of ours is added, a connection's own stay behind.

Replies come plain: whoever has to look into them could not otherwise.
"""

import re
from collections.abc import Mapping

from dragoman.http.message import Headers

_PASSED = frozenset(
    [
        "accept",
        "accept-language",
        "api-revision",
        "authorization",
        "content-language",
        "content-range",
        "content-type",
        "idempotency-key",
        "if-match",
        "if-none-match",
        "range",
        "user-agent",
        "x-http-method-override",
        "x-request-id",
        "x-server-timeout",
    ]
)
_PREFIXES = ("x-goog-", "x-gemini-", "x-google-", "x-upload-")
_PLAIN = ("accept-encoding", "identity")
_UNTOLD = frozenset(
    [
        "alt-svc",
        "connection",
        "content-length",
        "keep-alive",
        "proxy-authenticate",
        "set-cookie",
        "strict-transport-security",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
_SECRET = re.compile(r"auth|cookie|credential|key|secret|token")
_KEY = re.compile(r"(?<=[?&])(?:key|(?:access|oauth|bearer)_token)=[^&]*&?", re.IGNORECASE)


def going(headers: Headers, rules: Mapping[str, str]) -> Headers:
    """Return the headers of a client that its upstream sees; `rules` set some, and take out those they leave empty."""
    kept = [
        (name, value)
        for name, value in headers
        if (name in _PASSED or name.startswith(_PREFIXES)) and name not in rules
    ]
    return (*kept, *((name, value) for name, value in rules.items() if value), _PLAIN)


def coming(headers: Headers, *, plain: bool) -> dict[str, str]:
    """Return the headers of a reply that the client sees; one that was unpacked here is not told to be packed."""
    told: dict[str, str] = {}
    for name, value in headers:
        if name in _UNTOLD or (name == "content-encoding" and not plain):
            continue
        told[name] = f"{told[name]}, {value}" if name in told else value
    return told


def shown(headers: Headers) -> Headers:
    """Return headers without those that could be a secret."""
    return tuple(header for header in headers if _SECRET.search(header[0]) is None)


def without_key(target: str) -> str:
    """Return a path and query without the key that it may show."""
    return _KEY.sub("", target).rstrip("?&")
