"""Google's error envelope to and from a `Problem`.

Rules: the body decides before the HTTP status (a bad key is a 400 with the reason API_KEY_INVALID); reading never
raises, whatever a proxy put in the body. `code` is written as an integer and `error` as the first key: google-genai
swallows any other form. Details a client acts on (RetryInfo, QuotaFailure) come home unchanged.
"""

import math
from collections.abc import Mapping
from typing import Any, cast

from dragoman.core.problems import OWN_ERROR_CODES, Kind, Problem
from dragoman.dialects.gemini.wire import NAME
from dragoman.dialects.record import ErrorReply
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
KIND_BY_HTTP_STATUS: dict[int, Kind] = {
    401: "authentication",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    429: "rate_limit",
    499: "cancelled",
    501: "unsupported",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
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
ERROR_WORDS = frozenset({"API_KEY_INVALID", _RETRY_INFO, _BAD_REQUEST, _ERROR_INFO, *KIND_BY_STATUS_NAME})
_FOREIGN: dict[tuple[Kind, int], tuple[int, str]] = {
    ("internal", 502): (502, "UNAVAILABLE"),
}
"""Statuses of others that Google's own clients understand too."""
_NEVER_WRITTEN = frozenset({529})
"""google-genai never retries 529."""


def parse_error(status: int, headers: Mapping[str, str], body: bytes) -> Problem:
    """Read an error reply."""
    error = _find_error(body)
    word = _get_text(error, "status")
    message = _get_text(error, "message") or f"the upstream answered with HTTP status {status}"
    details = _list_objects(error.get("details"))
    retry_after = _parse_seconds(headers.get("retry-after", ""))
    return Problem(
        _find_kind(status, word, message, details),
        message,
        status=status,
        where=_find_where(details),
        code=_find_reason(details) or word or None,
        retry_after=_find_retry_delay(details) if retry_after is None else retry_after,
        detail=body,
        detail_dialect=NAME,
    )


def read_frame(body: bytes) -> Problem:
    """Read an error inside a stream or a reply of HTTP status 200: the status is in the body."""
    code = _find_error(body).get("code")
    return parse_error(code if isinstance(code, int) and 400 <= code <= 599 else 500, {}, body)


def _find_error(body: bytes) -> dict[str, Any]:
    try:
        document = json.decode(body)
    except json.Malformed:
        return {}
    if isinstance(document, list) and document:
        document = cast("Any", document[0])
    error: Any = cast("dict[str, Any]", document).get("error") if isinstance(document, dict) else None
    if isinstance(error, str):
        return {"message": error}
    return cast("dict[str, Any]", error) if isinstance(error, dict) else {}


def _get_text(error: dict[str, Any], name: str) -> str:
    value = error.get(name)
    return value if isinstance(value, str) else ""


def _list_objects(value: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _find_reason(details: list[dict[str, Any]]) -> str:
    return next((reason for detail in details if (reason := _get_text(detail, "reason"))), "")


def _find_where(details: list[dict[str, Any]]) -> str:
    """Return the first place that is said to be wrong."""
    wrong = (violation for detail in details for violation in _list_objects(detail.get("fieldViolations")))
    return next((pointer.from_path(f".{field}") for one in wrong if (field := _get_text(one, "field"))), "")


def _find_kind(status: int, word: str, message: str, details: list[dict[str, Any]]) -> Kind:
    lowered = message.lower()
    if _find_reason(details) == "API_KEY_INVALID" or "api key not valid" in lowered:
        return "authentication"
    if "input token count" in lowered and "exceeds" in lowered:
        return "context_length"
    if status == 402 or (word == "FAILED_PRECONDITION" and "billing" in lowered):
        return "billing"
    if status == 413:
        return "too_large"
    if status == 502:
        # A proxy in Google's way is broken: that its word for it is UNAVAILABLE does not mean too much to do.
        return "internal"
    kind = KIND_BY_STATUS_NAME.get(word) or KIND_BY_HTTP_STATUS.get(status)
    if kind == "rate_limit" and _is_daily_quota(details):
        return "billing"
    return kind or ("invalid_request" if 400 <= status < 500 else "internal")


def _is_daily_quota(details: list[dict[str, Any]]) -> bool:
    """A quota per day does not come back by waiting a moment."""
    quotas = [violation for detail in details for violation in _list_objects(detail.get("violations"))]
    return any("PerDay" in _get_text(quota, "quotaId") for quota in quotas)


def _find_retry_delay(details: list[dict[str, Any]]) -> float | None:
    return next(
        (delay for detail in details if (delay := _parse_seconds(_get_text(detail, "retryDelay"))) is not None), None
    )


def _parse_seconds(text: str) -> float | None:
    digits = text.strip().removesuffix("s")
    if not digits.replace(".", "", 1).isdecimal() or not digits.isascii():
        return None
    return float(digits)


def build_error(problem: Problem) -> ErrorReply:
    """Write an error reply."""
    status, word = STATUS_BY_KIND[problem.kind]
    own = _find_error(problem.detail) if problem.detail is not None and problem.detail_dialect == NAME else {}
    if own and 400 <= problem.status <= 599 and problem.status not in _NEVER_WRITTEN:
        status = problem.status
        word = _get_text(own, "status") or word
    # A broken upstream is a bad gateway, also where it spoke of itself as broken.
    status, word = _FOREIGN.get((problem.kind, problem.status), (status, word))
    details: list[Any] = [*_list_objects(own.get("details"))]
    headers = {"content-type": "application/json; charset=UTF-8"}
    if problem.retry_after is not None:
        headers["retry-after"] = str(math.ceil(problem.retry_after))
        if not any(detail.get("@type") == _RETRY_INFO for detail in details):
            details.append({"@type": _RETRY_INFO, "retryDelay": f"{problem.retry_after:g}s"})
    if problem.where and not own:
        said = problem.violations or ((problem.where, problem.message),)
        violations = [{"field": pointer.to_path(where), "description": words} for where, words in said]
        details.append({"@type": _BAD_REQUEST, "fieldViolations": violations})
    if problem.code in OWN_ERROR_CODES and not own:
        details.append({"@type": _ERROR_INFO, "reason": problem.code, "domain": "dragoman"})
    error: dict[str, Any] = {"code": status, "message": problem.message, "status": word}
    if details:
        error["details"] = details
    return ErrorReply(status, headers, json.encode({"error": error}))
