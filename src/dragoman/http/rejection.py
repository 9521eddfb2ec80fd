"""Render responses that reject invalid requests, and requests without their `upgrade` header."""

from collections.abc import Callable

from dragoman.http.encoding import ACCEPTED_ENCODINGS
from dragoman.http.message import Headers, Request, render_head

RejectionRenderer = Callable[[int, Request], tuple[Headers, bytes]]
"""Renders an error in the client's dialect: from a status and an incomplete request to headers and body."""
_UNSUPPORTED_ENCODING = 415


def render_rejection(status: int, request: Request, rejection_renderer: RejectionRenderer | None) -> bytes:
    """Return the response to an invalid request; the connection is closed after it."""
    headers, body = rejection_renderer(status, request) if rejection_renderer is not None else ((), b"")
    accepted = f"accept-encoding: {ACCEPTED_ENCODINGS}\r\n" if status == _UNSUPPORTED_ENCODING else ""
    ending = f"{accepted}connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    return render_head(status, headers, ending) + body


def render_without_upgrade(method: bytes, url: bytes, version: str, headers: Headers) -> bytes:
    """Return the head of a request without its `upgrade` header, to be parsed again."""
    kept = [(name, value) for name, value in headers if name != "upgrade"]
    head = "".join([f"{name}: {value}\r\n" for name, value in kept]).encode("latin-1")
    return method + b" " + url + f" HTTP/{version}\r\n".encode() + head + b"\r\n"
