"""A request as it came, and the heads of messages."""

from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

from msgspec import Struct

Headers = tuple[tuple[str, str], ...]
JSON = {"content-type": "application/json"}
"""What is said of a body that is JSON."""


class Request(Struct, frozen=True):
    """A request with its body. Names of headers are lower case, in the order and number they came."""

    method: str
    target: str
    """The path and query as they stood in the first line."""
    headers: Headers
    body: bytes = b""

    @property
    def path(self) -> str:
        """The path, with percent escapes read."""
        path = self.target.partition("?")[0]
        return unquote(path) if "%" in path else path

    @property
    def query(self) -> dict[str, str]:
        """The query; of a name that stands twice the last."""
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    @property
    def named(self) -> dict[str, str]:
        """The headers by name; of a name that stands twice the last."""
        return dict(self.headers)

    def header(self, name: str, default: str = "") -> str:
        """Return the first header called `name`, in lower case."""
        return first_header(self.headers, name, default)


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
