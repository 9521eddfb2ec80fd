"""Code Assist's envelope: the same request and reply, one level deeper.

A request is `{"model", "project", "request": {...}}`, a reply and every chunk of a stream `{"response": {...},
"traceId"}`. Members of the envelope of a reply are kept among the reply's extras under the names in `MEMBERS`.
"""

import re
from collections.abc import Mapping

from dragoman.core.request import Request
from dragoman.dialects.record import Call
from dragoman.wire import json
from dragoman.wire.pointer import escape
from dragoman.wire.splice import graft

SPELLING = "code_assist"
"""Stands in `Request.spelling` of a request that came in the envelope."""
INNER = "/request"
_WRAPPED = re.compile(rb'\s*(?:data:\s*)?\{\s*"(?:response|traceId)"')
_SESSION = frozenset({"session_id", "sessionId"})
"""What Code Assist takes inside the envelope and the plain API does not."""
MEMBERS = frozenset({"/traceId", "/metadata", "/consumedCredits", "/remainingCredits"})


def uses_envelope(request: Request | None) -> bool:
    """Tell whether the client speaks through the envelope."""
    return request is not None and SPELLING in request.spelling


def is_wrapped(head: bytes) -> bool:
    """Tell from its first bytes whether a reply or a stream comes in the envelope."""
    return _WRAPPED.match(head) is not None


def unwrap_request(call: Call) -> tuple[Call, tuple[str, ...]] | None:
    """Take a request out of the envelope, and tell what only Code Assist knows; None if it stands in none."""
    try:
        outer = json.decode_object(call.body) if b'"request"' in call.body else {}
        if "request" not in outer or "contents" in outer:
            return None
        inner = json.decode_object(outer["request"])
        model = json.decode(outer["model"]) if "model" in outer else ""
    except json.Malformed:
        return None
    left = [f"/{escape(name)}" for name in outer if name not in ("model", "request")]
    body = bytes(outer["request"])
    sessions = _SESSION & inner.keys()
    if sessions:
        body = json.encode({name: value for name, value in inner.items() if name not in sessions})
        left.extend(f"{INNER}/{name}" for name in sorted(sessions))
    named = model.removeprefix("models/") if isinstance(model, str) else ""
    return Call(body, named or call.model, call.stream), tuple(left)


def wrap_request(body: bytes, model: str) -> bytes:
    """Put a request into the envelope."""
    return b'{"model":' + json.encode(model) + b',"request":' + body + b"}"


def wrap_response(body: bytes, members: Mapping[str, bytes] | None = None) -> bytes:
    """Put a reply into the envelope, with what else belongs there (`"/traceId"`, …)."""
    wrapped = b'{"response":' + body + b"}"
    return graft(wrapped, members) if members else wrapped
