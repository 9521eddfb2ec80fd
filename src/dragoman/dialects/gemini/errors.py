"""Converts Google's error body to a `Problem`, and back.

Rules: the body takes precedence over the HTTP status (an invalid key is a 400 with the reason API_KEY_INVALID); parsing
never raises, whatever a proxy put in the body. `code` is rendered as an integer and `error` as the first key, because
google-genai ignores any other form. Details that clients act on (RetryInfo, QuotaFailure) are rendered unchanged.
"""

import math
from collections.abc import Mapping
from typing import Any, cast

from dragoman.core.problems import OWN_ERROR_CODES, Kind, Problem
from dragoman.dialects.gemini.wire import NAME
from dragoman.dialects.record import STATUS_KINDS, ErrorReply
from dragoman.wire import json, pointer

KIND_BY_STATUS_NAME: dict[str, Kind] = {
    "INVALID_ARGUMENT": "invalid_request",
    "FAILED_PRECONDITION": "invalid_request",
    "OUT_OF_RANGE": "invalid_request",
    "UNAUTHENTICATED": "authentication",
    "PERMISSION_DENIED": "permission",
    "NOT_FOUND": "not_found",
    "ABORTED": "conflict",
    "ALREADY_EXISTS": "conflict",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "CANCELLED": "cancelled",
    "INTERNAL": "internal",
    "UNKNOWN": "internal",
    "DATA_LOSS": "internal",
    "UNIMPLEMENTED": "unsupported",
    "UNAVAILABLE": "overloaded",
    "DEADLINE_EXCEEDED": "timeout",
}
KIND_BY_HTTP_STATUS: dict[int, Kind] = {**STATUS_KINDS, 501: "unsupported"}
STATUS_BY_KIND: dict[Kind, tuple[int, str]] = {
    "invalid_request": (400, "INVALID_ARGUMENT"),
    "unsupported": (400, "INVALID_ARGUMENT"),
    "context_length": (400, "INVALID_ARGUMENT"),
    "too_large": (413, "INVALID_ARGUMENT"),
    "authentication": (401, "UNAUTHENTICATED"),
    "billing": (429, "RESOURCE_EXHAUSTED"),
    "permission": (403, "PERMISSION_DENIED"),
    "policy": (403, "PERMISSION_DENIED"),
    "not_found": (404, "NOT_FOUND"),
    "conflict": (409, "ABORTED"),
    "rate_limit": (429, "RESOURCE_EXHAUSTED"),
    "overloaded": (503, "UNAVAILABLE"),
    "timeout": (504, "DEADLINE_EXCEEDED"),
    "cancelled": (499, "CANCELLED"),
    "internal": (500, "INTERNAL"),
    "malformed_reply": (502, "UNAVAILABLE"),
    "unreachable": (503, "UNAVAILABLE"),
}
_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
MAPPED_ERROR_TYPES = frozenset({"API_KEY_INVALID", _RETRY_INFO, _BAD_REQUEST, _ERROR_INFO, *KIND_BY_STATUS_NAME})
_OTHER_VENDOR_STATUSES: dict[tuple[Kind, int], tuple[int, str]] = {
    ("internal", 502): (502, "UNAVAILABLE"),
    ("timeout", 408): (408, "DEADLINE_EXCEEDED"),
}
"""Statuses of other vendors that Google's clients understand too, by kind, with the status to send."""
_NEVER_WRITTEN = frozenset({529})
"""Statuses that are never sent: google-genai does not retry 529."""


def parse_error(status: int, headers: Mapping[str, str], body: bytes) -> Problem:
    """Parse an error reply."""
    error = _find_error(body)
    status_name = json.get_text(error, "status")
    message = json.get_text(error, "message") or f"the upstream returned HTTP status {status} without an error message"
    details = _list_objects(error.get("details"))
    retry_after = _parse_seconds(headers.get("retry-after", ""))
    return Problem(
        _find_kind(status, status_name, message, details),
        message,
        status=status,
        where=_find_where(details),
        code=_find_reason(details) or status_name or None,
        retry_after=_find_retry_delay(details) if retry_after is None else retry_after,
        detail=body,
        detail_dialect=NAME,
    )


def read_frame(body: bytes) -> Problem:
    """Parse an error in a stream or in a reply with HTTP status 200: the status is in the body."""
    code = _find_error(body).get("code")
    return parse_error(code if isinstance(code, int) and 400 <= code <= 599 else 500, {}, body)


def _find_error(body: bytes) -> dict[str, Any]:
    try:
        document = json.decode(body)
    except json.Malformed:
        return {}
    if isinstance(document, list) and document:
        document = cast("Any", document[0])
    error: Any = json.as_object(document).get("error")
    if isinstance(error, str):
        return {"message": error}
    return json.as_object(error)


def _list_objects(value: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _find_reason(details: list[dict[str, Any]]) -> str:
    return next((reason for detail in details if (reason := json.get_text(detail, "reason"))), "")


def _find_where(details: list[dict[str, Any]]) -> str:
    """Return the JSON pointer of the first field violation, "" if there is none."""
    violations = (violation for detail in details for violation in _list_objects(detail.get("fieldViolations")))
    fields = (field for violation in violations if (field := json.get_text(violation, "field")))
    return next((pointer.from_path(f".{field}") for field in fields), "")


def _find_kind(status: int, status_name: str, message: str, details: list[dict[str, Any]]) -> Kind:
    lowered = message.lower()
    if _find_reason(details) == "API_KEY_INVALID" or "api key not valid" in lowered:
        return "authentication"
    if "input token count" in lowered and "exceeds" in lowered:
        return "context_length"
    if status == 402 or (status_name == "FAILED_PRECONDITION" and "billing" in lowered):
        return "billing"
    if status == 413:
        return "too_large"
    if status == 502:
        # A proxy in front of Google failed. Its status name UNAVAILABLE does not mean that the model is overloaded.
        return "internal"
    kind = KIND_BY_STATUS_NAME.get(status_name) or KIND_BY_HTTP_STATUS.get(status)
    if kind == "rate_limit" and _is_daily_quota(details):
        return "billing"
    return kind or ("invalid_request" if 400 <= status < 500 else "internal")


def _is_daily_quota(details: list[dict[str, Any]]) -> bool:
    """Return whether a daily quota is used up: retrying after a short wait does not help."""
    quotas = [violation for detail in details for violation in _list_objects(detail.get("violations"))]
    return any("PerDay" in json.get_text(quota, "quotaId") for quota in quotas)


def _find_retry_delay(details: list[dict[str, Any]]) -> float | None:
    return next(
        (delay for detail in details if (delay := _parse_seconds(json.get_text(detail, "retryDelay"))) is not None),
        None,
    )


def _parse_seconds(text: str) -> float | None:
    digits = text.strip().removesuffix("s")
    if not digits.replace(".", "", 1).isdecimal() or not digits.isascii():
        return None
    return float(digits)


def build_error(problem: Problem) -> ErrorReply:
    """Render an error reply."""
    status, status_name = STATUS_BY_KIND[problem.kind]
    google_detail = problem.detail if problem.detail_dialect == NAME else None
    google_error = _find_error(google_detail) if google_detail is not None else {}
    if google_error and 400 <= problem.status <= 599 and problem.status not in _NEVER_WRITTEN:
        status = problem.status
        status_name = json.get_text(google_error, "status") or status_name
    # A 502 stays a 502, also if the body of the error is Google's.
    status, status_name = _OTHER_VENDOR_STATUSES.get((problem.kind, problem.status), (status, status_name))
    details: list[Any] = [*_list_objects(google_error.get("details"))]
    headers = {"content-type": "application/json; charset=UTF-8"}
    if problem.retry_after is not None:
        headers["retry-after"] = str(math.ceil(problem.retry_after))
        if not any(detail.get("@type") == _RETRY_INFO for detail in details):
            details.append({"@type": _RETRY_INFO, "retryDelay": f"{problem.retry_after:g}s"})
    if problem.where and not google_error:
        violations = problem.violations or ((problem.where, problem.message),)
        fields = [{"field": pointer.to_path(where), "description": message} for where, message in violations]
        details.append({"@type": _BAD_REQUEST, "fieldViolations": fields})
    if problem.code in OWN_ERROR_CODES and not google_error:
        details.append({"@type": _ERROR_INFO, "reason": problem.code, "domain": "dragoman"})
    error: dict[str, Any] = {"code": status, "message": problem.message, "status": status_name}
    if details:
        error["details"] = details
    return ErrorReply(status, headers, json.encode({"error": error}))
