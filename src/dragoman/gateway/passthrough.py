"""Pass a request through to an upstream as it is, and its reply back as it arrives.

For endpoints of the vendors that are not translated. Address and credentials are the configured ones; headers of the
client that could be a secret, or that concern the connection, are not forwarded. An upstream that rejects the gateway's
key is an error of the gateway; any other reply is passed on, without the key where errors repeat it. The model in a
JSON body or a form is renamed; a body that two parsers could read as two models is rejected.
"""

import re
from urllib.parse import quote, unquote_plus

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import require_distinct
from dragoman.gateway.errors import malformed_body, map_failure
from dragoman.gateway.record import Record, headers_of
from dragoman.gateway.redact import credentials_of, without
from dragoman.gateway.router import Target
from dragoman.gateway.upstream_call import UpstreamClient, without_secrets
from dragoman.http.client import Incoming, Outgoing
from dragoman.http.exchange import Exchange
from dragoman.http.link import Failure
from dragoman.http.message import Headers, Request
from dragoman.wire import json
from dragoman.wire.splice import spliced

_CONNECTION = frozenset(
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
_OWN = frozenset(["openai-organization", "openai-project", "origin", "referer", "x-goog-user-project", "x-real-ip"])
"""Headers that choose an account, or say who a client is: the account is the gateway's."""
_SECRET = re.compile(r"auth|cookie|credential|key|secret|session|token")
_NO_SECRET = frozenset({"idempotency-key"})
_PREFIXES = ("proxy-", "sec-", "x-dragoman-", "x-forwarded-", "cf-")
_UNTOLD = frozenset({"set-cookie", "alt-svc", "strict-transport-security", "server", "date"})
_UPLOAD = "x-goog-upload-url"
_IN_PATH = "/:@!$&'()*+,;=~-._"
_MAYBE_KEY = frozenset({400, 401, 403})
"""Statuses by which vendors refuse a key, among other things."""
_LARGEST_ERROR = 16 << 20
_BODILESS = frozenset({204, 304})


class Passage(Struct, frozen=True, kw_only=True):
    """A request that goes on untouched."""

    target: Target
    path: str
    body: bytes


def outgoing_of(passage: Passage, request: Request) -> Outgoing | None:
    """Address a request at its upstream; None if that has nothing but its models."""
    query = without_key(request.target.partition("?")[2])
    target = quote(passage.path, safe=_IN_PATH) + (f"?{query}" if query else "")
    going = Request(request.method, target, forwarded(request.headers), passage.body)
    return passage.target.upstream.elsewhere(going)


async def pass_on(
    outgoing: Outgoing, passage: Passage, upstreams: UpstreamClient, exchange: Exchange, record: Record
) -> None:
    """Send a request and hand its answer to the client, piece by piece."""
    target = passage.target
    incoming = await upstreams.send(outgoing, target)
    try:
        record.status = incoming.status
        headers = _answered(incoming, outgoing, passage, exchange, record)
        if not incoming.good and exchange.request.method != "HEAD":
            await exchange.send(incoming.status, headers, await _said(incoming, outgoing, target))
        else:
            record.note_first()
            await _hand_back(incoming, headers, exchange)
    except Failure as failure:
        raise map_failure(failure, target.upstream.name) from None
    finally:
        incoming.close()
    record.outcome = "answered" if incoming.good else "failed"


async def _said(incoming: Incoming, outgoing: Outgoing, target: Target) -> bytes:
    """Return what an upstream says against a request, without the gateway's key, and unless it is against that."""
    body = without_secrets(await incoming.read(_LARGEST_ERROR), outgoing)
    if incoming.status not in _MAYBE_KEY:
        return body
    problem = dialect_named(target.upstream.dialect).parse_error(incoming.status, dict(incoming.headers), body)
    if problem.kind == "authentication":
        words = f"the upstream {target.upstream.name} refuses the gateway's credentials"
        raise Problem("internal", words, status=502, code="credentials")
    return body


async def _hand_back(incoming: Incoming, headers: dict[str, str], exchange: Exchange) -> None:
    if incoming.status in _BODILESS or exchange.request.method == "HEAD":
        await exchange.send(incoming.status, headers)
        return
    length = incoming.header("content-length") if incoming.plain else ""
    exchange.start(incoming.status, headers, int(length) if length.isdecimal() else None)
    while piece := await incoming.piece():
        await exchange.write(piece)
    await exchange.end()


def forwarded(headers: Headers) -> Headers:
    """Return the headers of a client that an upstream may see."""
    named = {word.strip().lower() for name, value in headers if name == "connection" for word in value.split(",")}
    return tuple(
        (name, value)
        for name, value in headers
        if name not in _CONNECTION
        and name not in _OWN
        and name not in named
        and not name.startswith(_PREFIXES)
        and (name in _NO_SECRET or _SECRET.search(name) is None)
    )


def _answered(
    incoming: Incoming, outgoing: Outgoing, passage: Passage, exchange: Exchange, record: Record
) -> dict[str, str]:
    headers: dict[str, str] = {}
    secrets = credentials_of(outgoing)
    for name, value in incoming.headers:
        if name in _CONNECTION or name in _UNTOLD or name.startswith("proxy-"):
            continue
        shown = _through_us(value, outgoing, passage, exchange.request) if name == _UPLOAD else without(value, secrets)
        headers[name] = f"{headers[name]}, {shown}" if name in headers else shown
    return headers_of(record, headers)


def _through_us(url: str, outgoing: Outgoing, passage: Passage, request: Request) -> str:
    """Return the address to which a client is to send a file: ours, for it has no key for the upstream's."""
    here = outgoing.target.partition("?")[0]
    base = outgoing.origin.url + here.removesuffix(quote(passage.path, safe=_IN_PATH))
    if not url.startswith(base):
        return url
    scheme = "https" if request.header("x-forwarded-proto") == "https" else "http"
    return f"{scheme}://{request.header('host')}/upstreams/{passage.target.upstream.name}{url[len(base) :]}"


def without_key(query: str) -> str:
    """Return a query without the key that it may show, however its name is written."""
    return "&".join(pair for pair in query.split("&") if pair and unquote_plus(pair.partition("=")[0]) != "key")


_BOUNDARY = re.compile(r"boundary=\"?([^\";,]+)\"?", re.IGNORECASE)
_MODEL_FIELD = re.compile(rb"content-disposition:[^\r\n]*?;\s*name=\"?model\"?\s*(?:;|\r|$)", re.IGNORECASE)
_BREAK = b"\r\n"
_REQUESTS = "requests"


class ModelForm(Struct, frozen=True):
    """A body that may name a model."""

    body: bytes
    model: str = ""
    span: tuple[int, int] | None = None
    """Where the name stands in a form with files; None in JSON."""

    def renamed(self, model: str) -> bytes:
        """Return the body with another model named in it, and nothing else changed."""
        if not self.model or model == self.model:
            return self.body
        if self.span is not None:
            start, end = self.span
            return self.body[:start] + model.encode() + self.body[end:]
        return spliced(self.body, "model", json.encode(model))


def form_of(body: bytes, kind: str) -> ModelForm:
    """Read what a body names; `kind` is its content type."""
    said = kind.partition(";")[0].strip().lower()
    if said == "multipart/form-data":
        return _with_files(body, kind)
    if said == "application/json" or said.endswith("+json"):
        return _json(body)
    return ModelForm(body)


def renamed_within(body: bytes, before: str, after: str) -> bytes:
    """Rename the model that a request of Google's names once more, or that each of several in it does."""
    if not body:
        return body
    try:
        members = json.decode_object(body)
        raw = members.get(_REQUESTS)
        if raw is not None:
            items = [_renamed_one(bytes(item), before, after) for item in json.decode_array(raw)]
            body = spliced(body, _REQUESTS, b"[" + b",".join(items) + b"]")
        return _renamed_one(body, before, after) if "model" in members else body
    except json.Malformed as error:
        raise malformed_body(error) from None


def _renamed_one(body: bytes, before: str, after: str) -> bytes:
    members = json.decode_object(body)
    named = json.peek(members["model"]) if "model" in members else None
    return spliced(body, "model", json.encode(f"models/{after}")) if named in {before, f"models/{before}"} else body


def _json(body: bytes) -> ModelForm:
    try:
        members = json.decode_object(body)
    except json.Malformed:
        return ModelForm(body)  # Google's clients call the pieces of a file JSON, too
    named = [name for name in members if name.lower() == "model"]
    if not named:
        return ModelForm(body)
    model = json.peek(members[named[0]])
    if named != ["model"] or not isinstance(model, str):
        raise Problem("invalid_request", "the model must be named once, as text", where="/model")
    require_distinct(body)
    return ModelForm(body, model)


def _with_files(body: bytes, kind: str) -> ModelForm:
    found = _BOUNDARY.search(kind)
    if found is None:
        raise Problem("invalid_request", "the form names no boundary")
    mark = b"--" + found[1].strip().encode("latin-1", "replace")
    spans = [span for span in _parts(body, mark) if _MODEL_FIELD.search(body[span[0] : span[1]])]
    if not spans:
        return ModelForm(body)
    if len(spans) > 1:
        raise Problem("invalid_request", "the model must be named once", where="/model")
    _, start, end = spans[0]
    return ModelForm(body, body[start:end].decode("utf-8", "replace"), (start, end))


def _parts(body: bytes, mark: bytes) -> list[tuple[int, int, int]]:
    """Return where the head of each part begins, where its content begins and where it ends."""
    parts: list[tuple[int, int, int]] = []
    at = 0 if body.startswith(mark) else body.find(_BREAK + mark) + len(_BREAK)
    while at >= len(_BREAK) or body.startswith(mark, at):
        head = at + len(mark)
        following = body.find(_BREAK + mark, head)
        content = body.find(_BREAK * 2, head, following)
        if following < 0 or content < 0:
            break
        parts.append((head, content + 2 * len(_BREAK), following))
        at = following + len(_BREAK)
    return parts
