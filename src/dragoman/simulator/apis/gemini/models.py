"""What Gemini models support (an unknown name counts as the newest generation), and Google's errors."""

import math
import re
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.simulator.apis.api import ApiRejection, HttpReply

_STATUS_NAMES = {
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
_FIELD_PATH = re.compile(r" at '(?P<path>[^']*)'")
_PAYLOAD_ERRORS = ("Invalid JSON payload", "Invalid value")
BAD_KEY = ApiRejection(
    status=400, message="API key not valid. Please pass a valid API key.", kind=_INVALID_KEY, rule="key"
)
NO_KEY = ApiRejection(
    status=403,
    message="Method doesn't allow unregistered callers (callers without established identity). Please use API Key or "
    "other form of API consumer identity to call this API.",
    rule="key",
)
"""Recorded: gemini/langchaingo-0001."""
BAD_TOKEN = ApiRejection(
    status=401,
    message="Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other "
    "valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.",
    rule="key",
)


def render_error(rejection: ApiRejection) -> HttpReply:
    """Return the error reply."""
    headers = {"content-type": "application/json; charset=UTF-8"}
    if rejection.rule:
        headers["x-dragoman-rule"] = rejection.rule
    if rejection.retry_after is not None:
        headers["retry-after"] = str(math.ceil(rejection.retry_after))
    body = msgspec.json.format(msgspec.json.encode(_build_error(rejection)), indent=2) + b"\n"
    return HttpReply(rejection.status, headers, body)


def render_stream_error(rejection: ApiRejection) -> bytes:
    """Return the frame that ends a stream with an error.

    `error` is the first member and `code` a number, because google-genai recognizes nothing else.
    """
    return b"data: " + msgspec.json.encode(_build_error(rejection)) + b"\r\n\r\n"


def _build_error(rejection: ApiRejection) -> dict[str, Any]:
    status_name = _STATUS_NAMES.get(rejection.status, "UNKNOWN")
    if rejection.kind and rejection.kind != _INVALID_KEY:
        status_name = rejection.kind
    message = f"{rejection.message} [rule: {rejection.rule}]" if rejection.rule else rejection.message
    error: dict[str, Any] = {"code": rejection.status, "message": message, "status": status_name}
    details = _build_details(rejection)
    if details:
        error["details"] = details
    return {"error": error}


def _build_details(rejection: ApiRejection) -> list[dict[str, Any]]:
    details: list[dict[str, Any]] = []
    if rejection.kind == _INVALID_KEY:
        info = {"reason": _INVALID_KEY, "domain": "googleapis.com", "metadata": {"service": _SERVICE}}
        details.append({"@type": f"{_TYPE}ErrorInfo", **info})
        details.append({"@type": f"{_TYPE}LocalizedMessage", "locale": "en-US", "message": rejection.message})
    if rejection.message.startswith(_PAYLOAD_ERRORS):
        details.append({"@type": f"{_TYPE}BadRequest", "fieldViolations": [_build_field_violation(rejection.message)]})
    if rejection.status == 429:
        quota = {"quotaMetric": f"{_SERVICE}/generate_content_requests", "quotaId": "GenerateRequestsPerMinute"}
        details.append({"@type": f"{_TYPE}QuotaFailure", "violations": [quota]})
    if rejection.retry_after is not None:
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{rejection.retry_after:g}s"})
    return details


def _build_field_violation(message: str) -> dict[str, str]:
    found = _FIELD_PATH.search(message)
    if found is None:
        return {"description": message}
    return {"field": found["path"], "description": message}


_NAME = re.compile(r"gemini-(?P<major>\d+)(?:\.(?P<minor>\d+))?(?:-(?P<family>pro|flash-lite|flash))?")
_ALIASES = {
    # Aliases without a version, as far as recordings show their models: gemini/mastra-0036 and its neighbours.
    "gemini-pro-latest": "gemini-3.1-pro",
    "gemini-flash-latest": "gemini-3.6-flash",
    "gemini-flash-lite-latest": "gemini-3.5-flash-lite",
    "gemini-pro": "gemini-1.0-pro",
    "gemini-pro-vision": "gemini-1.0-pro",
}
_BUDGETS = {"pro": (128, 32_768), "flash": (0, 24_576), "flash-lite": (512, 24_576)}


class GeminiGeneration(Struct, frozen=True):
    """The version and family of a model."""

    number: tuple[int, int] = (4, 0)
    family: str = ""

    @property
    def signs_calls(self) -> bool:
        """Whether it gives its calls ids and signatures, and requires the signatures back."""
        return self.number >= (3, 0)

    @property
    def is_strict(self) -> bool:
        """Whether it rejects prefill, penalties and several candidates, and pairs results by id and name."""
        return self.number >= (3, 6) or (self.number == (3, 5) and self.family == "flash-lite")

    @property
    def combines_tools(self) -> bool:
        """Whether it supports functions together with Google's own tools and with JSON output, and media in results."""
        return self.number >= (3, 0)

    @property
    def can_think(self) -> bool:
        """Whether it can think."""
        return self.number >= (2, 5)

    @property
    def always_thinks(self) -> bool:
        """Whether its thinking cannot be switched off."""
        return self.family == "pro" and self.can_think

    @property
    def thinking_levels(self) -> tuple[str, ...]:
        """The thinking levels it supports."""
        if self.number < (3, 0):
            return ()
        small = self.family == "flash-lite" or (self.family == "flash" and self.number < (3, 7))
        return ("MINIMAL", "LOW", "MEDIUM", "HIGH") if small else ("LOW", "MEDIUM", "HIGH")

    @property
    def max_input_tokens(self) -> int:
        """The maximum number of tokens in a request."""
        return 1_048_576 if self.number >= (1, 5) else 32_768

    @property
    def thinking_budgets(self) -> tuple[int, int] | None:
        """The minimum and maximum budget besides 0 and -1; None if any budget is accepted and ignored."""
        return _BUDGETS.get(self.family) if self.number == (2, 5) else None


def resolve_model_name(model: str) -> str:
    """Return a model's name without its path prefix; for an alias, the name of the model."""
    name = model.rpartition("/")[2]
    return _ALIASES.get(name, name)


@lru_cache(maxsize=1024)
def parse_generation(model: str) -> GeminiGeneration:
    """Parse a model's name, with or without its path prefix."""
    name = resolve_model_name(model)
    if name.startswith("gemma"):
        return GeminiGeneration((2, 0), "gemma")
    found = _NAME.match(name)
    if found is None:
        return GeminiGeneration()
    return GeminiGeneration((int(found["major"]), int(found["minor"] or 0)), found["family"] or "")
