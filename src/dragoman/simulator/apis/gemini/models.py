"""What Gemini's models take (a name that nobody knows counts as the newest generation), and Google's errors."""

import math
import re
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

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


_NAME = re.compile(r"gemini-(?P<major>\d+)(?:\.(?P<minor>\d+))?(?:-(?P<family>pro|flash-lite|flash))?")
_ALIASES = {
    # What stands behind a name without a number, where a recording tells it: gemini/mastra-0036 and its neighbours.
    "gemini-pro-latest": "gemini-3.1-pro",
    "gemini-flash-latest": "gemini-3.6-flash",
    "gemini-flash-lite-latest": "gemini-3.5-flash-lite",
    "gemini-pro": "gemini-1.0-pro",
    "gemini-pro-vision": "gemini-1.0-pro",
}
_BUDGETS = {"pro": (128, 32_768), "flash": (0, 24_576), "flash-lite": (512, 24_576)}


class Generation(Struct, frozen=True):
    """A model's place in the line."""

    number: tuple[int, int] = (4, 0)
    family: str = ""

    @property
    def signs(self) -> bool:
        """It names and signs its calls, and wants the signatures back."""
        return self.number >= (3, 0)

    @property
    def exact(self) -> bool:
        """It takes no prefill, no penalties, no second candidate, and pairs results by id and name."""
        return self.number >= (3, 6) or (self.number == (3, 5) and self.family == "flash-lite")

    @property
    def combines(self) -> bool:
        """It takes functions together with Google's own tools, with JSON output, and media in results."""
        return self.number >= (3, 0)

    @property
    def thinks(self) -> bool:
        """It can think."""
        return self.number >= (2, 5)

    @property
    def always_thinks(self) -> bool:
        """Its thinking cannot be switched off."""
        return self.family == "pro" and self.thinks

    @property
    def levels(self) -> tuple[str, ...]:
        """The thinking levels it takes."""
        if self.number < (3, 0):
            return ()
        small = self.family == "flash-lite" or (self.family == "flash" and self.number < (3, 7))
        return ("MINIMAL", "LOW", "MEDIUM", "HIGH") if small else ("LOW", "MEDIUM", "HIGH")

    @property
    def most_input(self) -> int:
        """The most tokens a request may have."""
        return 1_048_576 if self.number >= (1, 5) else 32_768

    @property
    def budgets(self) -> tuple[int, int] | None:
        """The least and the most budget it takes beside 0 and -1; None where any is taken, and not heeded."""
        return _BUDGETS.get(self.family) if self.number == (2, 5) else None


def known_as(model: str) -> str:
    """Return a model's name without what stands before it in a path; of an alias, the name it stands for."""
    name = model.rpartition("/")[2]
    return _ALIASES.get(name, name)


@lru_cache(maxsize=1024)
def generation_of(model: str) -> Generation:
    """Read a model's name, with or without what stands before it in a path."""
    name = known_as(model)
    if name.startswith("gemma"):
        return Generation((2, 0), "gemma")
    found = _NAME.match(name)
    if found is None:
        return Generation()
    return Generation((int(found["major"]), int(found["minor"] or 0)), found["family"] or "")
