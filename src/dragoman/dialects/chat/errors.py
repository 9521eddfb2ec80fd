"""Parses and renders errors in OpenAI's envelope `{"error":{"message","type","param","code"}}` and in variants of it.

Rules: the kind of an error follows from the vendor's code, then its type, then the HTTP status. Any body is accepted; a
body that is not JSON is never quoted in the message, because it may be an HTML page of a proxy.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from dragoman.core.problems import Kind, Problem
from dragoman.dialects.chat.wire import NAME
from dragoman.dialects.record import STATUS_KINDS, ErrorReply
from dragoman.wire import pointer
from dragoman.wire.json import Malformed, as_object, decode, encode

_CODES: dict[str, Kind] = {
    "context_length_exceeded": "context_length",
    "insufficient_quota": "billing",
    "credit_balance_exhausted": "billing",
    "organization_spend_limit_exceeded": "billing",
    "project_spend_limit_exceeded": "billing",
    "organization_usage_limit_exceeded": "billing",
    "billing_hard_limit_reached": "billing",
    "billing_not_active": "billing",
    "rate_limit_exceeded": "rate_limit",
    "invalid_api_key": "authentication",
    "model_not_found": "not_found",
    "unsupported_country_region_territory": "permission",
    "misalignment_policy_violation": "policy",
    "content_policy_violation": "policy",
    "content_filter": "policy",
    "cyber_policy": "policy",
    "bio_policy": "policy",
    "server_is_overloaded": "overloaded",
    "engine_overloaded": "overloaded",
    "slow_down": "overloaded",
    "malformed_function_call": "malformed_reply",
}
_TYPES: dict[str, Kind] = {
    "insufficient_quota": "billing",
    "billing_error": "billing",
    "requests": "rate_limit",
    "tokens": "rate_limit",
    "rate_limit_error": "rate_limit",
    "authentication_error": "authentication",
    "permission_error": "permission",
    "not_found_error": "not_found",
    "overloaded_error": "overloaded",
    "service_unavailable": "overloaded",
    "timeout_error": "timeout",
}
_WEAK_TYPES: dict[str, Kind] = {
    "invalid_request_error": "invalid_request",
    "server_error": "internal",
    "internal_server_error": "internal",
    "api_error": "internal",
}
MAPPED_ERROR_TYPES = frozenset({"error", *_CODES, *_TYPES, *_WEAK_TYPES})
_TOO_LONG = re.compile(
    r"maximum context length|context length exceeded|context_length_exceeded|context window"
    r"|prompt is too long|input token count .* exceeds",
    re.IGNORECASE,
)
_TRY_AGAIN = re.compile(r"try again in (\d+(?:\.\d+)?)(ms|s)\b")

_WIRE_ERRORS: dict[Kind, tuple[int, str, str | None]] = {
    "invalid_request": (400, "invalid_request_error", None),
    "unsupported": (400, "invalid_request_error", "unsupported_value"),
    "context_length": (400, "invalid_request_error", "context_length_exceeded"),
    "too_large": (413, "invalid_request_error", "request_too_large"),
    "authentication": (401, "invalid_request_error", "invalid_api_key"),
    "billing": (429, "insufficient_quota", "insufficient_quota"),
    "permission": (403, "permission_error", None),
    "not_found": (404, "invalid_request_error", "model_not_found"),
    "conflict": (409, "conflict_error", None),
    "rate_limit": (429, "rate_limit_error", "rate_limit_exceeded"),
    "overloaded": (503, "server_error", "server_is_overloaded"),
    "timeout": (504, "server_error", "timeout"),
    "cancelled": (499, "server_error", "cancelled"),
    "internal": (500, "server_error", None),
    "malformed_reply": (502, "server_error", "malformed_reply"),
    "unreachable": (502, "server_error", None),
    "policy": (403, "invalid_request_error", "content_policy_violation"),
}
_KEPT_STATUSES: dict[Kind, frozenset[int]] = {
    "invalid_request": frozenset({400, 404, 413, 422}),
    "unsupported": frozenset({400, 422, 501}),
    "policy": frozenset({400, 403}),
    "internal": frozenset({500, 502}),
    "timeout": frozenset({408, 504}),
}


def parse_error(status: int, headers: Mapping[str, str], body: bytes) -> Problem:
    """Parse an error reply; never raises."""
    error, document = _find_error(body)
    message = _find_message(error) or _find_message(document)
    message = message or f"the upstream returned HTTP status {status} without an error message"
    code = error.get("code")
    vendor_code = code if isinstance(code, str) and not code.isdigit() else None
    return Problem(
        _find_kind(status, error, message),
        message,
        status=status,
        where=_read_where(error),
        code=vendor_code,
        retry_after=_find_retry_after(headers, error, message),
        detail=body or None,
        detail_dialect=NAME,
    )


def read_error(raw: bytes) -> Problem:
    """Parse an error inside a reply of status 200; `raw` is the value of `error`."""
    body = b'{"error":' + raw + b"}"
    error, _ = _find_error(body)
    given = (error.get("status_code"), error.get("code"), error.get("status"))
    statuses = (int(value) for value in given if isinstance(value, int) or (isinstance(value, str) and value.isdigit()))
    status = next((number for number in statuses if 400 <= number < 600), None)
    problem = parse_error(status or 500, {}, body)
    if status is None:
        kind = _find_kind(0, error, problem.message)
        problem = Problem(
            kind,
            problem.message,
            where=problem.where,
            code=problem.code,
            retry_after=problem.retry_after,
            detail=body,
            detail_dialect=NAME,
        )
    return problem


def _read_where(error: dict[str, Any]) -> str:
    param = error.get("param")
    return pointer.from_path(f".{param}") if isinstance(param, str) else ""


def _find_error(body: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the error object and the document that contains it."""
    try:
        value = decode(body)
    except Malformed:
        return {}, {}
    document = as_object(_unwrap_list(value))
    error = document.get("error")
    if isinstance(error, str):
        return {**document, "message": error}, document
    return (as_object(error) or document), document


def _as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _unwrap_list(value: Any) -> Any:
    """Return the first item of a list, else the value: Google's compatible endpoint wraps errors in an array."""
    items = _as_list(value)
    return items[0] if items else value


def _find_message(error: dict[str, Any]) -> str:
    for member in ("message", "detail", "error_description"):
        value = error.get(member)
        if isinstance(value, str) and value:
            return value
        if as_object(value) or _as_list(value):
            return encode(value).decode()
    return ""


def _find_kind(status: int, error: dict[str, Any], message: str) -> Kind:
    code = error.get("code")
    if isinstance(code, str) and code in _CODES:
        return _CODES[code]
    error_type = error.get("type")
    if isinstance(error_type, str) and error_type in _TYPES:
        return _TYPES[error_type]
    if status in (0, 400, 413, 422) and _TOO_LONG.search(message):
        return "context_length"
    if status in STATUS_KINDS:
        return STATUS_KINDS[status]
    if status >= 500:
        return "internal"
    if status >= 400:
        return "invalid_request"
    return _WEAK_TYPES.get(error_type, "internal") if isinstance(error_type, str) else "internal"


def _find_retry_after(headers: Mapping[str, str], error: dict[str, Any], message: str) -> float | None:
    milliseconds = _parse_number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    header = headers.get("retry-after")
    seconds = _parse_number(header)
    if seconds is not None:
        return seconds
    if header:
        try:
            return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
        except (TypeError, ValueError):
            pass
    for detail in _as_list(error.get("details")):
        delay = as_object(detail).get("retryDelay")
        seconds = _parse_number(delay.removesuffix("s")) if isinstance(delay, str) else None
        if seconds is not None:
            return seconds
    found = _TRY_AGAIN.search(message)
    return float(found[1]) / (1000 if found[2] == "ms" else 1) if found else None


def _parse_number(text: str | None) -> float | None:
    try:
        number = float(text) if text else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < 1e9 else None


def build_error(problem: Problem) -> ErrorReply:
    """Render an error reply."""
    status, _, _ = _WIRE_ERRORS[problem.kind]
    if problem.status in _KEPT_STATUSES.get(problem.kind, ()):
        status = problem.status
    headers = {"content-type": "application/json"}
    if problem.retry_after is not None:
        headers["retry-after"] = str(math.ceil(problem.retry_after))
        if problem.retry_after % 1:
            headers["retry-after-ms"] = f"{problem.retry_after * 1000:.0f}"
    return ErrorReply(status, headers, render_error_body(problem))


def render_error_body(problem: Problem) -> bytes:
    """Render the error envelope; members of an error that came in this dialect are kept."""
    _, kind, code = _WIRE_ERRORS[problem.kind]
    own: dict[str, Any] = {}
    if problem.detail_dialect == NAME and problem.detail is not None:
        found, document = _find_error(problem.detail)
        own = found if found is not document else {}
    message = problem.message
    if problem.kind == "rate_limit" and problem.retry_after is not None and "try again in" not in message:
        message = f"{message.rstrip('. ')}. Please try again in {problem.retry_after:g}s."
    error = {
        "message": message,
        "type": kind,
        "param": pointer.to_path(problem.where) or None,
        "code": problem.code or code,
        **{name: value for name, value in own.items() if name != "message" and value is not None},
    }
    return encode({"error": error})
