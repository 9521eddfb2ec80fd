"""HTTP messages: a client's request, the server that a request goes to, and the heads of messages."""

from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

Headers = tuple[tuple[str, str], ...]
JSON_HEADERS = {"content-type": "application/json"}
"""What is said of a body that is JSON."""


class Request(Struct):
    """A request with its body. Names of headers are lower case, in the order and number they came."""

    method: str
    target: str
    """The path and query as they stood in the first line."""
    headers: Headers
    body: bytes = b""
    path: str = ""
    """The path of the target, with percent escapes decoded."""
    headers_by_name: dict[str, str] = {}
    """The headers by name; the last one of a name that is there twice."""

    def __post_init__(self) -> None:
        path = self.target.partition("?")[0]
        self.path = unquote(path) if "%" in path else path
        self.headers_by_name = dict(self.headers)

    @property
    def query(self) -> dict[str, str]:
        """The query; the last value of a name that is there twice."""
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    def header(self, name: str, default: str = "") -> str:
        """Return the first header called `name`, in lower case."""
        return first_header(self.headers, name, default)


PORTS = {"http": 80, "https": 443}
"""The default port of each scheme."""


class Origin(Struct, frozen=True):
    """A server: what a connection is made to."""

    scheme: str
    host: str
    port: int

    @property
    def is_secure(self) -> bool:
        """Tell whether the connection uses TLS."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """The value of a `host` header: with the port only if it is not the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"{self.scheme}://{self.authority}"


def split_url(url: str) -> tuple[Origin, str]:
    """Return the server of an absolute URL and the rest of it, without a slash at its end.

    Raises `ValueError` for any other URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(f"{url!r} is no http(s) address")
    if parts.username or parts.password or parts.fragment:
        raise ValueError("an address must hold no user name, password or fragment")
    rest = f"{parts.path}?{parts.query}" if parts.query else parts.path.rstrip("/")
    return Origin(parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme]), rest


def first_header(headers: Headers, name: str, default: str = "") -> str:
    """Return the first header called `name`, in lower case."""
    for known, value in headers:
        if known == name:
            return value
    return default


def decode_headers(fields: list[bytes]) -> Headers:
    """Return header fields, given as names and values in turn, as text.

    All are decoded at once: a call for each would cost more. No field can contain a line feed, the parser rejects it.
    """
    if not fields:
        return ()
    text = b"\n".join(map(bytes.rstrip, fields)).decode("latin-1").split("\n")
    return tuple(zip(map(str.lower, text[::2]), text[1::2], strict=True))


def render_head(status: int, headers: Iterable[tuple[str, str]], ending: str) -> bytes:
    """Return the head of a reply; `ending` is its last lines, also the empty one."""
    return "\r\n".join([_status_line(status), *map(": ".join, headers), ending]).encode("latin-1", "replace")


@cache
def _status_line(status: int) -> str:
    """Return the first line of a reply."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}"
