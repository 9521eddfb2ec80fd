"""Parses and renders errors in OpenAI's envelope.

Rules: the kind of an error follows from its code, then its type, then the HTTP status. Parsing never raises, whatever
the body is. Codex decides by the code whether to retry, so each kind is sent with the code that Codex knows.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Raw
from msgspec.json import Decoder

from dragoman.core.problems import OWN_ERROR_CODES, Kind, Problem
from dragoman.dialects.record import STATUS_KINDS, ErrorReply
from dragoman.dialects.responses.wire import NAME
from dragoman.wire import json, pointer

_CODES: dict[str, Kind] = {
    "context_length_exceeded": "context_length",
    "string_above_max_length": "invalid_request",
    "unknown_parameter": "invalid_request",
    "invalid_prompt": "policy",
    "invalid_api_key": "authentication",
    "insufficient_quota": "billing",
    "billing_hard_limit_reached": "billing",
    "credit_balance_exhausted": "billing",
    "usage_not_included": "billing",
    "usage_limit_reached": "billing",
    "rate_limit_exceeded": "rate_limit",
    "slow_down": "overloaded",
    "server_is_overloaded": "overloaded",
    "server_overloaded": "overloaded",
    "internal_error": "internal",
    "vector_store_timeout": "timeout",
    "model_not_found": "not_found",
    "previous_response_not_found": "not_found",
    "not_found": "not_found",
    "DeploymentNotFound": "not_found",
    "unsupported_country_region_territory": "permission",
    "misalignment_policy_violation": "policy",
    "bio_policy": "policy",
    "cyber_policy": "policy",
    "content_filter": "policy",
    "image_content_policy_violation": "policy",
    "data_residency_mismatch": "permission",
    "malformed_function_call": "malformed_reply",
    "unsupported_parameter": "unsupported",
    "unsupported_value": "unsupported",
}
_TYPES: dict[str, Kind] = {
    "authentication_error": "authentication",
    "permission_error": "permission",
    "insufficient_quota": "billing",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "tokens": "rate_limit",
    "requests": "rate_limit",
    "not_found_error": "not_found",
    "overloaded_error": "overloaded",
    "service_unavailable_error": "overloaded",
    "timeout_error": "timeout",
}
_WIRE_ERRORS: dict[Kind, tuple[int, str, str | None]] = {
    "invalid_request": (400, "invalid_request_error", None),
    "unsupported": (400, "invalid_request_error", "unsupported_value"),
    "context_length": (400, "invalid_request_error", "context_length_exceeded"),
    "too_large": (413, "invalid_request_error", None),
    "authentication": (401, "invalid_request_error", "invalid_api_key"),
    "billing": (429, "insufficient_quota", "insufficient_quota"),
    "permission": (403, "invalid_request_error", None),
    "not_found": (404, "invalid_request_error", "not_found"),
    "conflict": (409, "invalid_request_error", None),
    "rate_limit": (429, "rate_limit_error", "rate_limit_exceeded"),
    "overloaded": (503, "server_error", "server_is_overloaded"),
    "timeout": (504, "server_error", "server_error"),
    "cancelled": (499, "server_error", "server_error"),
    "internal": (500, "server_error", "server_error"),
    "malformed_reply": (502, "server_error", "server_error"),
    "unreachable": (502, "server_error", "server_error"),
    "policy": (403, "invalid_request_error", "invalid_prompt"),
}
MAPPED_ERROR_TYPES = frozenset({"error", "invalid_request_error", "server_error", *_CODES, *_TYPES})
_MEMBERS: Decoder[dict[str, Any]] = Decoder(dict[str, Any])
_TOO_LONG = re.compile(
    r"context (?:length|window)|maximum context|prompt is too long|too many input tokens", re.IGNORECASE
)
_DELAY = re.compile(r"try again in (\d+(?:\.\d+)?)(ms|s)", re.IGNORECASE)


def parse_error(status: int, headers: Mapping[str, str], body: bytes) -> Problem:
    """Parse an error reply; never raises."""
    members = _find_error(body)
    retry_after = _read_retry_after(headers)
    if members is None:
        kind = _find_kind("", "", "", status)
        message = f"the upstream returned HTTP status {status} without an error message"
        return Problem(kind, message, status=status, retry_after=retry_after, detail=body or None, detail_dialect=NAME)
    return read_error(members, status, retry_after, body)


def read_error(
    members: dict[str, Any], status: int | None, retry_after: float | None = None, detail: bytes | None = None
) -> Problem:
    """Parse the members of an `error` object; in a stream there is no status."""
    code, error_type = _to_text(members.get("code")), _to_text(members.get("type"))
    message = _to_text(members.get("message")) or code or error_type or "the upstream returned an error"
    if retry_after is None and (found := _DELAY.search(message)):
        retry_after = float(found[1]) / (1000 if found[2].lower() == "ms" else 1)
    param = members.get("param")
    return Problem(
        _find_kind(code, error_type, message, status),
        message,
        status=status,
        where=pointer.from_path(f".{param}") if isinstance(param, str) else "",
        code=code or None,
        retry_after=retry_after,
        detail=_encode_detail(members) if detail is None else detail,
        detail_dialect=NAME,
    )


def _encode_detail(members: dict[str, Any]) -> bytes | None:
    try:
        return json.encode({"error": members})
    except RecursionError:
        return None  # its message says enough


def _find_error(body: bytes) -> dict[str, Any] | None:
    """Find the error in a body: an `error` object or string, FastAPI's `detail`, a bare object, or a list of these."""
    try:
        if json.first_byte(body) == b"[":
            body = bytes(json.decode_array(body)[0])
        members: dict[str, Any] = json.decode_with(_MEMBERS, body)
    except (json.Malformed, IndexError):
        return None
    error = members.get("error", members.get("detail"))
    if isinstance(error, str):
        return {**members, "message": error}
    if isinstance(error, dict):
        return json.decode_with(_MEMBERS, json.encode(error))
    return members if "message" in members else None


def _to_text(value: object) -> str:
    return str(value) if isinstance(value, str | int) else ""


def _find_kind(code: str, error_type: str, message: str, status: int | None) -> Kind:
    kind = _CODES.get(code) or _TYPES.get(error_type) or _TYPES.get(code)
    if kind is None and "server_error" in (code, error_type):
        kind = "internal" if status is None else STATUS_KINDS.get(status, "internal")
    if kind is None and error_type == "invalid_request_error" and status in (None, 400):
        kind = "invalid_request"
    if kind is None and status is not None:
        kind = STATUS_KINDS.get(status) or ("internal" if status >= 500 else "invalid_request")
    if kind in ("invalid_request", "too_large") and _TOO_LONG.search(message):
        return "context_length"
    return kind or "internal"


def _read_retry_after(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
    return None


def build_error(problem: Problem) -> ErrorReply:
    """Render an error reply; members of an error that came in this dialect are kept."""
    status, members = write_error(problem)
    headers = {"content-type": "application/json"}
    if problem.retry_after is not None:
        headers["retry-after"] = str(math.ceil(problem.retry_after))
        if problem.retry_after % 1:
            headers["retry-after-ms"] = f"{problem.retry_after * 1000:.0f}"
    return ErrorReply(status, headers, json.encode({"error": members}))


def write_error(problem: Problem) -> tuple[int, dict[str, Any]]:
    """Return the status and the members of the `error` object."""
    status, error_type, code = _WIRE_ERRORS[problem.kind]
    members: dict[str, Any] = {
        "message": _render_message(problem),
        "type": error_type,
        "param": pointer.to_path(problem.where) or None,
        "code": _find_own_code(problem) or code,
    }
    own = _read_own_members(problem)
    if own is not None:
        members.update(own)
        if problem.kind == "rate_limit":
            members["message"] = _render_message(problem)
    keeps_status = (own is not None or problem.kind == "invalid_request") and 400 <= problem.status < 500
    if keeps_status or (problem.kind, problem.status) in {("internal", 502), ("timeout", 408)}:
        status = problem.status
    return status, members


def _find_own_code(problem: Problem) -> str | None:
    """Return the problem's code if OpenAI or this gateway defines it; codes of other vendors are not sent."""
    return problem.code if problem.code in _CODES or problem.code in OWN_ERROR_CODES else None


def _read_own_members(problem: Problem) -> dict[str, Any] | None:
    if problem.detail is None or problem.detail_dialect != NAME:
        return None
    try:
        error = json.decode_object(problem.detail).get("error")
        found = None if error is None else json.decode_object(error)
    except json.Malformed:
        return None
    if not found:
        return None
    return {name: Raw(raw) for name, raw in found.items() if name not in ("message", "code") or bytes(raw) != b"null"}


def _render_message(problem: Problem) -> str:
    """Return the message, with the retry delay in the form that Codex parses; Codex reads no other source."""
    if problem.kind != "rate_limit" or problem.retry_after is None or _DELAY.search(problem.message):
        return problem.message
    return f"{problem.message.rstrip('. ')}. Please try again in {problem.retry_after:g}s."
