"""Responses that reject invalid requests, and requests without their `upgrade` header."""

from collections.abc import Callable

from msgspec import Struct

from dragoman.http.encoding import ACCEPTED_ENCODINGS
from dragoman.http.message import Headers, Request, render_head


class RejectionResponse(Struct, frozen=True):
    """A response to a request that is not handled; the connection is closed after it."""

    status: int
    headers: Headers = ()
    body: bytes = b""


RejectionRenderer = Callable[[int, Request], tuple[Headers, bytes]]
"""Renders an error in the client's dialect: from a status and an incomplete request to headers and body."""
_UNSUPPORTED_ENCODING = 415


def build_rejection(status: int, request: Request, rejection_renderer: RejectionRenderer | None) -> RejectionResponse:
    """Build the response to an invalid request."""
    headers, body = rejection_renderer(status, request) if rejection_renderer is not None else ((), b"")
    if status == _UNSUPPORTED_ENCODING:
        headers = (*headers, ("accept-encoding", ACCEPTED_ENCODINGS))
    return RejectionResponse(status, headers, body)


def render_rejection(rejection: RejectionResponse) -> bytes:
    """Render a response after which the connection is closed."""
    ending = f"connection: close\r\ncontent-length: {len(rejection.body)}\r\n\r\n"
    return render_head(rejection.status, rejection.headers, ending) + rejection.body


def render_without_upgrade(method: bytes, url: bytes, version: str, headers: Headers) -> bytes:
    """Return the head of a request without its `upgrade` header, to be parsed again."""
    kept = [(name, value) for name, value in headers if name != "upgrade"]
    head = "".join([f"{name}: {value}\r\n" for name, value in kept]).encode("latin-1")
    return method + b" " + url + f" HTTP/{version}\r\n".encode() + head + b"\r\n"
