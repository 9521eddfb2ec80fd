"""What the server sends and reads again when a request cannot be handled as it came."""

from collections.abc import Callable

from dragoman.http.encoding import ACCEPTED_ENCODINGS
from dragoman.http.message import Headers, Request, render_head

RejectionRenderer = Callable[[int, Request], tuple[Headers, bytes]]
"""Renders a rejection in the client's dialect: the status, and what is known of the request, to headers and body."""
_UNSUPPORTED_ENCODING = 415


def render_rejection(status: int, request: Request, rejection_renderer: RejectionRenderer | None) -> bytes:
    """Return the reply to something that is no valid request; the connection is closed behind it."""
    headers, body = rejection_renderer(status, request) if rejection_renderer is not None else ((), b"")
    accepted = f"accept-encoding: {ACCEPTED_ENCODINGS}\r\n" if status == _UNSUPPORTED_ENCODING else ""
    ending = f"{accepted}connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    return render_head(status, headers, ending) + body


def render_without_upgrade(method: bytes, url: bytes, version: str, headers: Headers) -> bytes:
    """Return the head of a request without the wish for another protocol, to be parsed once more."""
    kept = [(name, value) for name, value in headers if name != "upgrade"]
    head = "".join([f"{name}: {value}\r\n" for name, value in kept]).encode("latin-1")
    return method + b" " + url + f" HTTP/{version}\r\n".encode() + head + b"\r\n"
