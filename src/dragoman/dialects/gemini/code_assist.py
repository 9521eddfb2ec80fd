"""Code Assist's envelope: the same request and reply, one level deeper.

A request is `{"model", "project", "request": {...}}`, a reply and every chunk of a stream `{"response": {...},
"traceId"}`. Members of the envelope of a reply are kept among the reply's extras under the names in `MEMBERS`.
"""

import re
from collections.abc import Mapping

from dragoman.core.request import Request
from dragoman.wire import json

WORD = "code_assist"
"""Stands in `Request.spelling` of a request that came in the envelope."""
INNER = "/request"
_WRAPPED = re.compile(rb'\s*(?:data:\s*)?\{\s*"(?:response|traceId)"')
MEMBERS = frozenset({"/traceId", "/metadata", "/consumedCredits", "/remainingCredits"})


def enveloped(request: Request | None) -> bool:
    """Tell whether the client speaks through the envelope."""
    return request is not None and WORD in request.spelling


def is_wrapped(head: bytes) -> bool:
    """Tell from its first bytes whether a reply or a stream comes in the envelope."""
    return _WRAPPED.match(head) is not None


def wrap_request(body: bytes, model: str) -> bytes:
    """Put a request into the envelope."""
    return b'{"model":' + json.encode(model) + b',"request":' + body + b"}"


def wrap_response(body: bytes, members: Mapping[str, bytes] | None = None) -> bytes:
    """Put a reply into the envelope, with what else belongs there (`"/traceId"`, …)."""
    wrapped = b'{"response":' + body + b"}"
    return json.graft(wrapped, members) if members else wrapped
