"""Wraps and unwraps Code Assist's envelope, which nests the request and the reply one level deeper, and count requests.

A request is `{"model", "project", "request": {...}}`; a reply and every chunk of a stream is `{"response": {...},
"traceId"}`. The envelope members of a reply that `MEMBERS` lists are kept in the reply's extras.
"""

import re
from collections.abc import Mapping

from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.dialects.record import Call
from dragoman.wire import json
from dragoman.wire.pointer import escape
from dragoman.wire.shape import non_null_bytes
from dragoman.wire.splice import graft, remove_member

SPELLING = "code_assist"
"""The value in `Request.spelling` that marks a request received in the envelope."""
INNER = "/request"
_WHOLE_REQUEST = "generateContentRequest"
_WRAPPED = re.compile(rb'\s*(?:data:\s*)?\{\s*"(?:response|traceId)"')
_SESSION = frozenset({"session_id", "sessionId"})
"""Members that Code Assist accepts inside the envelope and the plain API rejects."""
MEMBERS = frozenset({"/traceId", "/metadata", "/consumedCredits", "/remainingCredits"})


def uses_envelope(request: Request | None) -> bool:
    """Return whether the client sent its request in the envelope, and so expects the reply in it."""
    return request is not None and SPELLING in request.spelling


def is_wrapped(head: bytes) -> bool:
    """Return whether a reply or stream with these first bytes is in the envelope."""
    return _WRAPPED.match(head) is not None


def unwrap_request(call: Call) -> tuple[Call, tuple[str, ...]] | None:
    """Unwrap a request; return it and the pointers of members that only Code Assist has. None without an envelope."""
    try:
        outer = json.decode_object(call.body) if b'"request"' in call.body else {}
        if "request" not in outer or "contents" in outer:
            return None
        inner = json.decode_object(outer["request"])
        model = json.decode(outer["model"]) if "model" in outer else ""
    except json.Malformed:
        return None
    lost = [f"/{escape(name)}" for name in outer if name not in ("model", "request")]
    body = bytes(outer["request"])
    sessions = _SESSION & inner.keys()
    if sessions:
        body = json.encode({name: value for name, value in inner.items() if name not in sessions})
        lost.extend(f"{INNER}/{name}" for name in sorted(sessions))
    model_name = model.removeprefix("models/") if isinstance(model, str) else ""
    return Call(body, model_name or call.model, call.stream), tuple(lost)


def unwrap_count(body: bytes) -> bytes:
    """Take the request out of the `generateContentRequest` field of a count request, if it has one."""
    try:
        whole = non_null_bytes(json.decode_object(body).get(_WHOLE_REQUEST))
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    if whole is not None and json.first_byte(whole) != b"{":
        raise Problem("invalid_request", f"{_WHOLE_REQUEST} must be an object", where=f"/{_WHOLE_REQUEST}")
    return body if whole is None else whole


def wrap_count(body: bytes) -> bytes:
    """Move the model of a count request to where the envelope of all other requests has it."""
    try:
        request = bytes(json.decode_object(body)["request"])
        model = str(json.decode(json.decode_object(request)["model"]))
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    except KeyError as error:
        raise Problem("invalid_request", f"{error} is required", where="/request") from None
    return wrap_request(remove_member(request, "model"), model.removeprefix("models/"))


def wrap_request(body: bytes, model: str) -> bytes:
    """Wrap a request in the envelope."""
    return b'{"model":' + json.encode(model) + b',"request":' + body + b"}"


def wrap_response(body: bytes, members: Mapping[str, bytes] | None = None) -> bytes:
    """Wrap a reply in the envelope, with its other members (`"/traceId"`, …)."""
    wrapped = b'{"response":' + body + b"}"
    return graft(wrapped, members) if members else wrapped


def add_extras(encoded: bytes, request: Request, extras: dict[str, bytes] | None) -> bytes:
    """Insert extras, and wrap the request in Code Assist's envelope if it was received in one."""
    # Pointers of extras refer to the received body: only those of a request in the envelope start at the envelope.
    from_envelope = all(message.where.startswith(INNER + "/") for message in request.messages)
    if extras and not from_envelope:
        encoded = graft(encoded, extras)
    if SPELLING in request.spelling:
        encoded = wrap_request(encoded, request.model)
    return graft(encoded, extras) if extras and from_envelope else encoded
