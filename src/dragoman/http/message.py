"""HTTP messages: client requests, origins (scheme, host and port), headers and response heads."""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

Headers = tuple[tuple[str, str], ...]
JSON_HEADERS = {"content-type": "application/json"}
"""Headers of a JSON body."""


class Request(Struct):
    """A request with its body. Header names are lower case; order and duplicates are kept."""

    method: str
    target: str
    """The path and query as in the request line."""
    headers: Headers
    body: bytes = b""
    path: str = ""
    """The path of the target, with percent escapes decoded."""
    headers_by_name: dict[str, str] = {}
    """The headers by name; of duplicates the last one."""
    is_large: bool = False
    """Whether the body has so many values that another process handles it."""

    def __post_init__(self) -> None:
        path = self.target.partition("?")[0]
        self.path = unquote(path) if "%" in path else path
        if not self.headers_by_name:
            self.headers_by_name = dict(self.headers)

    @property
    def query(self) -> dict[str, str]:
        """The query parameters; of duplicates the last one."""
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    def header(self, name: str, default: str = "") -> str:
        """Return the value of the first header with this lower-case name."""
        return first_header(self.headers, name, default)


_HOST = re.compile(r"(?:\[[0-9a-f:.]+\]|[^\s\[\]:/?#@\\,]*)(?::[0-9]{1,5})?", re.IGNORECASE)
_SINGLE_HEADERS = ("host", "transfer-encoding")


def is_ambiguous(headers: Headers, headers_by_name: dict[str, str]) -> bool:
    """Return whether two servers could read the headers differently.

    So are a missing, repeated or invalid `host`, and two transfer-encodings.
    """
    if not _is_valid_host(headers_by_name.get("host")):
        return True
    if len(headers_by_name) == len(headers):
        return False
    names = [name for name, _ in headers]
    return any(names.count(name) > 1 for name in _SINGLE_HEADERS)


@lru_cache(256)
def _is_valid_host(host: str | None) -> bool:
    return host is not None and _HOST.fullmatch(host) is not None


PORTS = {"http": 80, "https": 443}
"""The default port of each scheme."""


class Origin(Struct, frozen=True):
    """A server: scheme, host and port."""

    scheme: str
    host: str
    port: int

    @property
    def is_secure(self) -> bool:
        """Whether the connection uses TLS."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """The value of a `host` header, with the port only if it is not the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL without a path."""
        return f"{self.scheme}://{self.authority}"


def split_url(url: str) -> tuple[Origin, str]:
    """Return the origin of an absolute http(s) URL and its path with query, without a trailing slash.

    Raises `ValueError` for any other URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(f"{url!r} is not an http(s) URL")
    if parts.username or parts.password or parts.fragment:
        raise ValueError("a URL must not contain a user name, password or fragment")
    rest = f"{parts.path}?{parts.query}" if parts.query else parts.path.rstrip("/")
    return Origin(parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme]), rest


def first_header(headers: Headers, name: str, default: str = "") -> str:
    """Return the value of the first header with this lower-case name."""
    for header, value in headers:
        if header == name:
            return value
    return default


def decode_headers(fields: list[bytes]) -> Headers:
    """Decode header fields, given as alternating names and values.

    All are decoded at once, because a call for each is slower. No field contains a line feed: the parser rejects it.
    """
    if not fields:
        return ()
    text = b"\n".join(map(bytes.rstrip, fields)).decode("latin-1").split("\n")
    return tuple([(text[at].lower(), text[at + 1]) for at in range(0, len(text), 2)])


def render_head(status: int, headers: Iterable[tuple[str, str]], ending: str) -> bytes:
    """Return the head of a response; `ending` is its last lines, including the empty one."""
    return "\r\n".join([_status_line(status), *map(": ".join, headers), ending]).encode("latin-1", "replace")


@cache
def _status_line(status: int) -> str:
    """Return the status line of a response."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}"
