"""Forwards a request to an upstream unchanged, and streams its reply back.

Used for vendor endpoints that are not translated. The address and credentials are the configured ones; client headers
that may hold a secret, or that concern the connection, are not forwarded. If an upstream rejects the gateway's key,
that is an error of the gateway; any other reply is forwarded, with the key redacted from errors that quote it. The
model in a JSON body or a form is renamed; a body in which two parsers could read two different models is rejected.
"""

import re
from contextlib import closing
from urllib.parse import quote, unquote_plus

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.dialects.registry import DIALECTS, dialect_named
from dragoman.gateway.client_request import require_distinct_keys
from dragoman.gateway.errors import build_body_error, build_credentials_error, map_failure
from dragoman.gateway.record import Record, build_response_headers
from dragoman.gateway.redact import credentials_of, is_secret_header, redact_known
from dragoman.gateway.router import Target
from dragoman.gateway.upstream_call import redact_credentials
from dragoman.http.client import Client, Incoming, Outgoing
from dragoman.http.exchange import Exchange
from dragoman.http.message import Headers, Request
from dragoman.http.upstream_connection import ConnectionFailure
from dragoman.wire import json
from dragoman.wire.splice import set_member

_HOP_HEADERS = frozenset(
    [
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "forwarded",
        "host",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
    ]
)
_DROPPED_HEADERS = _HOP_HEADERS | {"origin", "referer", "x-real-ip"}
_DROPPED_PREFIXES = ("proxy-", "sec-", "x-dragoman-", "x-forwarded-", "cf-")
_DROPPED_REPLY_HEADERS = frozenset({"set-cookie", "alt-svc", "strict-transport-security", "server", "date"})
_UPLOAD_URL_HEADER = "x-goog-upload-url"
_PATH_SAFE = "/:@!$&'()*+,;=~-._"
_KEY_STATUSES = frozenset({400, 401, 403})
"""Statuses with which vendors reject an API key, among other things."""
_MAX_ERROR_BYTES = 16 << 20
_BODILESS_STATUSES = frozenset({204, 304})


class PassthroughRequest(Struct, frozen=True, kw_only=True):
    """A request to forward unchanged."""

    target: Target
    path: str
    body: bytes


def build_outgoing(passthrough: PassthroughRequest, request: Request) -> Outgoing | None:
    """Build the request to the upstream; None if the upstream has no such endpoint."""
    query = drop_key(request.target.partition("?")[2])
    target = quote(passthrough.path, safe=_PATH_SAFE) + (f"?{query}" if query else "")
    forwarded = Request(request.method, target, filter_headers(request.headers), passthrough.body)
    return passthrough.target.upstream.build_passthrough(forwarded)


async def forward_request(
    outgoing: Outgoing, passthrough: PassthroughRequest, client: Client, exchange: Exchange, record: Record
) -> None:
    """Send a request and stream the reply to the client."""
    target = passthrough.target
    try:
        with closing(await client.send(outgoing, target.deadlines)) as incoming:
            record.status = incoming.status
            headers = _build_reply_headers(incoming, outgoing, passthrough, exchange, record)
            if not incoming.is_success and exchange.request.method != "HEAD":
                await exchange.send(incoming.status, headers, await _read_error(incoming, outgoing, target))
            else:
                record.note_first_token()
                await _forward_reply(incoming, headers, exchange)
    except ConnectionFailure as failure:
        raise map_failure(failure, target.upstream.name) from None
    record.outcome = "answered" if incoming.is_success else "failed"


async def _read_error(incoming: Incoming, outgoing: Outgoing, target: Target) -> bytes:
    """Read an error reply, with the gateway's key redacted; raise a `Problem` if the error is about that key."""
    body = redact_credentials(await incoming.read(_MAX_ERROR_BYTES), outgoing)
    if incoming.status not in _KEY_STATUSES:
        return body
    problem = dialect_named(target.upstream.dialect).parse_error(incoming.status, dict(incoming.headers), body)
    if problem.kind == "authentication":
        raise build_credentials_error(target.upstream.name)
    return body


async def _forward_reply(incoming: Incoming, headers: dict[str, str], exchange: Exchange) -> None:
    if incoming.status in _BODILESS_STATUSES or exchange.request.method == "HEAD":
        await exchange.send(incoming.status, headers)
        return
    length = incoming.header("content-length") if incoming.is_uncompressed else ""
    exchange.start(incoming.status, headers, int(length) if length.isdecimal() else None)
    while chunk := await incoming.read_chunk():
        await exchange.write(chunk)
    await exchange.end()


def filter_headers(headers: Headers) -> Headers:
    """Return the client headers that may be forwarded to an upstream."""
    dropped_names = _DROPPED_HEADERS.union(*(dialect.api.account_headers for dialect in DIALECTS.values()))
    hop_names = {token.strip().lower() for name, value in headers if name == "connection" for token in value.split(",")}
    return tuple(
        (name, value)
        for name, value in headers
        if name not in dropped_names
        and name not in hop_names
        and not name.startswith(_DROPPED_PREFIXES)
        and not is_secret_header(name)
    )


def _build_reply_headers(
    incoming: Incoming, outgoing: Outgoing, passthrough: PassthroughRequest, exchange: Exchange, record: Record
) -> dict[str, str]:
    headers: dict[str, str] = {}
    secrets = credentials_of(outgoing)
    for name, value in incoming.headers:
        if name in _HOP_HEADERS or name in _DROPPED_REPLY_HEADERS or name.startswith("proxy-"):
            continue
        value_sent = (
            _rewrite_upload_url(value, outgoing, passthrough, exchange.request)
            if name == _UPLOAD_URL_HEADER
            else redact_known(value, secrets)
        )
        headers[name] = f"{headers[name]}, {value_sent}" if name in headers else value_sent
    return build_response_headers(record, headers)


def _rewrite_upload_url(url: str, outgoing: Outgoing, passthrough: PassthroughRequest, request: Request) -> str:
    """Return the URL for a file upload at the gateway, because the client has no key for the upstream's URL."""
    upstream_path = outgoing.target.partition("?")[0]
    base = outgoing.origin.url + upstream_path.removesuffix(quote(passthrough.path, safe=_PATH_SAFE))
    if not url.startswith(base):
        return url
    scheme = "https" if request.header("x-forwarded-proto") == "https" else "http"
    return f"{scheme}://{request.header('host')}/upstreams/{passthrough.target.upstream.name}{url[len(base) :]}"


def drop_key(query: str) -> str:
    """Return a query string without the `key` parameter, also if its name is percent-encoded."""
    return "&".join(pair for pair in query.split("&") if pair and unquote_plus(pair.partition("=")[0]) != "key")


_BOUNDARY = re.compile(r"boundary=\"?([^\";,]+)\"?", re.IGNORECASE)
_MODEL_FIELD = re.compile(rb"content-disposition:[^\r\n]*?;\s*name=\"?model\"?\s*(?:;|\r|$)", re.IGNORECASE)
_CRLF = b"\r\n"
_REQUESTS = "requests"


class ModelBody(Struct, frozen=True):
    """A request body that may name a model."""

    body: bytes
    model: str = ""
    span: tuple[int, int] | None = None
    """The position of the model name in a multipart form; None in JSON."""

    def with_model(self, model: str) -> bytes:
        """Return the body with another model name and no other change."""
        if not self.model or model == self.model:
            return self.body
        if self.span is not None:
            start, end = self.span
            return self.body[:start] + model.encode() + self.body[end:]
        return set_member(self.body, "model", json.encode(model))


def parse_model_body(body: bytes, content_type: str) -> ModelBody:
    """Find the model that a body names."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == "multipart/form-data":
        return _parse_multipart(body, content_type)
    if media_type == "application/json" or media_type.endswith("+json"):
        return _parse_json_body(body)
    return ModelBody(body)


def rename_nested_models(body: bytes, before: str, after: str) -> bytes:
    """Rename the model where a Gemini request repeats it: in the body, or in each of its `requests`."""
    if not body:
        return body
    try:
        members = json.decode_object(body)
        raw = members.get(_REQUESTS)
        if raw is not None:
            items = [_rename_model(bytes(item), before, after) for item in json.decode_array(raw)]
            body = set_member(body, _REQUESTS, b"[" + b",".join(items) + b"]")
        return _rename_model(body, before, after) if "model" in members else body
    except json.Malformed as error:
        raise build_body_error(error) from None


def _rename_model(body: bytes, before: str, after: str) -> bytes:
    members = json.decode_object(body)
    model = json.peek(members["model"]) if "model" in members else None
    return set_member(body, "model", json.encode(f"models/{after}")) if model in {before, f"models/{before}"} else body


def _parse_json_body(body: bytes) -> ModelBody:
    try:
        members = json.decode_object(body)
    except json.Malformed:
        return ModelBody(body)  # Google's clients also send file chunks with a JSON content type
    model_keys = [name for name in members if name.lower() == "model"]
    if not model_keys:
        return ModelBody(body)
    model = json.peek(members[model_keys[0]])
    if model_keys != ["model"] or not isinstance(model, str):
        raise Problem("invalid_request", "`model` must be given once, as a string", where="/model")
    require_distinct_keys(body)
    return ModelBody(body, model)


def _parse_multipart(body: bytes, content_type: str) -> ModelBody:
    match = _BOUNDARY.search(content_type)
    if match is None:
        raise Problem("invalid_request", "the content-type header of the form has no boundary")
    boundary = b"--" + match[1].strip().encode("latin-1", "replace")
    spans = [span for span in _find_parts(body, boundary) if _MODEL_FIELD.search(body[span[0] : span[1]])]
    if not spans:
        return ModelBody(body)
    if len(spans) > 1:
        raise Problem("invalid_request", "`model` must be given once", where="/model")
    _, start, end = spans[0]
    return ModelBody(body, body[start:end].decode("utf-8", "replace"), (start, end))


def _find_parts(body: bytes, boundary: bytes) -> list[tuple[int, int, int]]:
    """Return, for each part, where its headers start, where its content starts and where it ends."""
    parts: list[tuple[int, int, int]] = []
    start = 0 if body.startswith(boundary) else body.find(_CRLF + boundary) + len(_CRLF)
    while start >= len(_CRLF) or body.startswith(boundary, start):
        head = start + len(boundary)
        end = body.find(_CRLF + boundary, head)
        content = body.find(_CRLF * 2, head, end)
        if end < 0 or content < 0:
            break
        parts.append((head, content + 2 * len(_CRLF), end))
        start = end + len(_CRLF)
    return parts
