"""Google's errors: one envelope, a status word for each status, details where Google gives them."""

import math
import re
from typing import Any

import msgspec

from dragoman.simulator.api import Refusal, Told

_WORDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    416: "OUT_OF_RANGE",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_TYPE = "type.googleapis.com/google.rpc."
_INVALID_KEY = "API_KEY_INVALID"
_SERVICE = "generativelanguage.googleapis.com"
_PLACE = re.compile(r" at '(?P<path>[^']*)'")
_PAYLOAD = ("Invalid JSON payload", "Invalid value")
BAD_KEY = Refusal(status=400, message="API key not valid. Please pass a valid API key.", kind=_INVALID_KEY, rule="key")
NO_KEY = Refusal(
    status=403,
    message="Method doesn't allow unregistered callers (callers without established identity). Please use API Key or "
    "other form of API consumer identity to call this API.",
    rule="key",
)
"""Recorded: gemini/langchaingo-0001."""
BAD_TOKEN = Refusal(
    status=401,
    message="Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other "
    "valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.",
    rule="key",
)


def refuse(refusal: Refusal) -> Told:
    """Say no before anything was said."""
    headers = {"content-type": "application/json; charset=UTF-8"}
    if refusal.rule:
        headers["x-dragoman-rule"] = refusal.rule
    if refusal.retry_after is not None:
        headers["retry-after"] = str(math.ceil(refusal.retry_after))
    body = msgspec.json.format(msgspec.json.encode(_error(refusal)), indent=2) + b"\n"
    return Told(refusal.status, headers, body)


def fail(refusal: Refusal) -> bytes:
    """Break a stream off. `error` is the first member and `code` a number: google-genai looks for nothing else."""
    return b"data: " + msgspec.json.encode(_error(refusal)) + b"\r\n\r\n"


def _error(refusal: Refusal) -> dict[str, Any]:
    words = _WORDS.get(refusal.status, "UNKNOWN")
    if refusal.kind and refusal.kind != _INVALID_KEY:
        words = refusal.kind
    message = f"{refusal.message} [rule: {refusal.rule}]" if refusal.rule else refusal.message
    error: dict[str, Any] = {"code": refusal.status, "message": message, "status": words}
    details = _details(refusal)
    if details:
        error["details"] = details
    return {"error": error}


def _details(refusal: Refusal) -> list[dict[str, Any]]:
    details: list[dict[str, Any]] = []
    if refusal.kind == _INVALID_KEY:
        info = {"reason": _INVALID_KEY, "domain": "googleapis.com", "metadata": {"service": _SERVICE}}
        details.append({"@type": f"{_TYPE}ErrorInfo", **info})
        details.append({"@type": f"{_TYPE}LocalizedMessage", "locale": "en-US", "message": refusal.message})
    if refusal.message.startswith(_PAYLOAD):
        details.append({"@type": f"{_TYPE}BadRequest", "fieldViolations": [_violation(refusal.message)]})
    if refusal.status == 429:
        quota = {"quotaMetric": f"{_SERVICE}/generate_content_requests", "quotaId": "GenerateRequestsPerMinute"}
        details.append({"@type": f"{_TYPE}QuotaFailure", "violations": [quota]})
    if refusal.retry_after is not None:
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{refusal.retry_after:g}s"})
    return details


def _violation(message: str) -> dict[str, str]:
    found = _PLACE.search(message)
    if found is None:
        return {"description": message}
    return {"field": found["path"], "description": message}
