"""Converts Messages errors (HTTP replies and `event: error` frames) to a `Problem`, and back.

The vendor's error type determines the kind. The status is the fallback, because proxies answer in their own formats
(Google's on Vertex, HTML, an empty body). Text of a body that is not an API error is not passed on.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any, cast

from msgspec import Raw

from dragoman.core.problems import Kind, Problem
from dragoman.dialects.messages.wire import NAME
from dragoman.dialects.record import STATUS_KINDS, ErrorReply
from dragoman.wire.json import Malformed, decode, decode_object, encode, get_text, with_members
from dragoman.wire.pointer import split

_KINDS: dict[str, Kind] = {
    "invalid_request_error": "invalid_request",
    "authentication_error": "authentication",
    "billing_error": "billing",
    "permission_error": "permission",
    "not_found_error": "not_found",
    "conflict_error": "conflict",
    "request_too_large": "too_large",
    "rate_limit_error": "rate_limit",
    "api_error": "internal",
    "timeout_error": "timeout",
    "overloaded_error": "overloaded",
}
MAPPED_ERROR_TYPES = frozenset({"error", *_KINDS})
_TYPES: dict[Kind, str] = {
    **{kind: error_type for error_type, kind in _KINDS.items()},
    "unsupported": "invalid_request_error",
    "context_length": "invalid_request_error",
    "cancelled": "api_error",
    "malformed_reply": "api_error",
    "unreachable": "api_error",
    "policy": "permission_error",
}
_STATUSES: dict[Kind, int] = {
    "invalid_request": 400,
    "unsupported": 400,
    "context_length": 400,
    "too_large": 413,
    "authentication": 401,
    "billing": 402,
    "permission": 403,
    "not_found": 404,
    "conflict": 409,
    "rate_limit": 429,
    "overloaded": 529,
    "timeout": 504,
    "cancelled": 499,
    "internal": 500,
    "malformed_reply": 502,
    "unreachable": 502,
    "policy": 403,
}
_KEPT_STATUSES: dict[Kind, Collection[int]] = {
    "invalid_request": range(400, 500),
    "internal": range(500, 600),
    "timeout": (408, 504),
}
_TOO_LONG = "prompt is too long"
_TOO_LONG_PHRASES = (_TOO_LONG, "exceed context limit", "exceeds the context window")
_NO_CREDIT = "credit balance is too low"
_MAX_TEXT = 500


def parse_error(status: int, headers: Mapping[str, str], body: bytes) -> Problem:
    """Parse an error reply of any format; never raises."""
    error = _find_error(body)
    kind = _KINDS.get(get_text(error, "type")) or STATUS_KINDS.get(status)
    if kind is None:
        kind = "internal" if status >= 500 else "invalid_request"
    message = (
        get_text(error, "message")
        or _read_plain_text(body)
        or f"the upstream returned HTTP status {status} without an error message"
    )
    return Problem(
        _refine_kind(kind, message),
        message,
        status=status,
        code=_find_code(error),
        retry_after=_read_retry_after(headers),
        detail=body,
        detail_dialect=NAME,
    )


def read_error_event(data: bytes) -> Problem:
    """Parse an `event: error` frame, which has no HTTP status."""
    error = _find_error(data)
    message = get_text(error, "message") or "the upstream reported an error without a message"
    kind = _refine_kind(_KINDS.get(get_text(error, "type"), "internal"), message)
    return Problem(kind, message, status=_STATUSES[kind], code=_find_code(error), detail=data, detail_dialect=NAME)


def _find_error(body: bytes) -> dict[str, Any]:
    try:
        value = decode(body)
    except Malformed:
        return {}
    if isinstance(value, list) and value:
        value = cast("list[Any]", value)[0]
    if not isinstance(value, dict):
        return {}
    members = cast("dict[str, Any]", value)
    error = members.get("error")
    if isinstance(error, str):
        return {"message": error}
    return cast("dict[str, Any]", error) if isinstance(error, dict) else members


def _find_code(error: dict[str, Any]) -> str | None:
    details = error.get("details")
    code = cast("dict[str, Any]", details).get("error_code") if isinstance(details, dict) else None
    return code if isinstance(code, str) else None


def _read_plain_text(body: bytes) -> str:
    text = body[:_MAX_TEXT].decode("utf-8", "replace").strip()
    return "" if text.startswith(("<", "{", "[")) or "\ufffd" in text else text


def _refine_kind(kind: Kind, message: str) -> Kind:
    """Return a more specific kind for an `invalid_request_error` whose cause only the message text shows."""
    if kind != "invalid_request":
        return kind
    text = message.lower()
    if any(phrase in text for phrase in _TOO_LONG_PHRASES):
        return "context_length"
    return "billing" if _NO_CREDIT in text else kind


def _read_retry_after(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def build_error(problem: Problem) -> ErrorReply:
    """Render an error reply."""
    kind = _map_client_kind(problem)
    status = _STATUSES[kind]
    if problem.status in _KEPT_STATUSES.get(kind, ()):
        status = problem.status
    headers = {"content-type": "application/json"}
    if kind != problem.kind:
        headers["x-should-retry"] = "false"
    if problem.retry_after is not None:
        headers["retry-after"] = str(math.ceil(problem.retry_after))
    return ErrorReply(status, headers, render_error_body(problem))


def _map_client_kind(problem: Problem) -> Kind:
    """Return the kind for the client: "rate_limit" if another vendor's account is out of credit.

    `billing_error` would make the user check their Anthropic account.
    """
    return "rate_limit" if problem.kind == "billing" and problem.detail_dialect not in ("", NAME) else problem.kind


def render_error_body(problem: Problem) -> bytes:
    """Render the error body, with the other members of an error that came from Anthropic."""
    members, request_id = _read_own_detail(problem)
    error_type = _TYPES[_map_client_kind(problem)]
    error = encode({"type": error_type, "message": _render_message(problem)})
    if problem.code is not None and "details" not in members:
        members["details"] = encode({"error_code": problem.code})
    envelope = {"type": "error", "error": Raw(with_members(error, members)), "request_id": request_id}
    return encode(envelope)


def _render_message(problem: Problem) -> str:
    # Clients compact their history only if the message contains this phrase.
    if problem.kind == "context_length" and not any(phrase in problem.message.lower() for phrase in _TOO_LONG_PHRASES):
        return f"{_TOO_LONG}: {problem.message}"
    if problem.kind == "invalid_request" and problem.detail is None and problem.code is None and problem.where:
        # Anthropic's errors have no field for the place of a wrong value.
        return f"{'.'.join(split(problem.where))}: {problem.message}"
    return problem.message


def _read_own_detail(problem: Problem) -> tuple[dict[str, bytes], Raw | None]:
    if problem.detail is None or problem.detail_dialect != NAME:
        return {}, None
    try:
        envelope = decode_object(problem.detail)
        error = decode_object(envelope["error"])
    except (Malformed, KeyError):
        return {}, None
    members = {name: bytes(raw) for name, raw in error.items() if name not in ("type", "message")}
    return members, envelope.get("request_id")
