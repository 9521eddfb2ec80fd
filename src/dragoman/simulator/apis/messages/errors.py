"""Anthropic's errors: their format, and the error text for a body that does not match its declaration."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.json import encode

from dragoman.simulator.apis.api import ApiRejection, HttpReply, ReplyMeta
from dragoman.simulator.apis.declarations import Mismatch, Number, StringEnum, TagEnum
from dragoman.simulator.apis.rule import Violation
from dragoman.wire.pointer import split

_UNTAGGED = frozenset({"system", "format", "output_format", "mcp_servers", "task_budget", "compaction", "skills", ""})
_EXPECTED = {
    "str": "a valid string",
    "int": "a valid integer",
    "float": "a valid number",
    "bool": "a valid boolean",
    "array": "a valid list",
    "object": "an object",
}
NOT_PERMITTED = "Extra inputs are not permitted"


def format_pointer(where: str) -> str:
    """Return a pointer in the vendor's notation, with dots."""
    return where[1:].replace("/", ".")


def describe_extra(where: str, _: Any = None) -> str:
    """Return the error text for an unknown field."""
    return f"{format_pointer(where)}: {NOT_PERMITTED}"


def build_custom_tool_message(problem: str) -> Callable[[str, Any], str]:
    """Return a function that gives the error text about a field of a custom tool."""

    def say(where: str, _: Any) -> str:
        tools, number, *rest = format_pointer(where).split(".")
        return f"{'.'.join((tools, number, 'custom', *rest))}: {problem}"

    return say


def describe_unknown_tag(value: Any, known: Iterable[str] = ()) -> str:
    """Return the error text for an unknown `type`."""
    tags = ", ".join(f"'{tag}'" for tag in known)
    return f"Input tag '{value}' found using 'type' does not match any of the expected tags{': ' if tags else ''}{tags}"


def describe_mismatch(found: Mismatch, document: Any) -> str:
    """Return the error text for a mismatch of a body with its declaration."""
    tokens = split(found.where)
    match found.reason:
        case "unknown-field":
            return f"{_format_path([*tokens, found.name], document)}: {NOT_PERMITTED}"
        case "required":
            return f"{_format_path([*tokens, found.name], document)}: Field required"
        case "enum" if isinstance(found.kind, TagEnum) and tokens[-1] == "role":
            return f'messages: Unexpected role "{found.value}". Allowed roles are "user", "assistant" or "system"'
        case "enum" if isinstance(found.kind, TagEnum):
            return f"{_format_path(tokens[:-1], document)}: {describe_unknown_tag(found.value, found.kind.allowed)}"
        case "type" if tokens[-1:] == ["input_schema"]:
            return f"{_format_path(tokens, document)}: Input does not match the expected shape."
        case _:
            return f"{_format_path(tokens, document)}: Input should be {_describe_expected(found)}"


def _describe_expected(found: Mismatch) -> str:
    kind = found.kind
    if found.reason == "enum" and isinstance(kind, StringEnum):
        quoted = [f"'{word}'" for word in kind.allowed]
        return " or ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))
    if found.reason == "bounds" and isinstance(kind, Number):
        is_low = kind.least is not None and found.value < kind.least
        relation, bound = ("greater", kind.least) if is_low else ("less", kind.most)
        return f"{relation} than or equal to {float(bound or 0) if kind.types == ('float',) else bound}"
    return _EXPECTED[kind.types[0]]


def _format_path(tokens: list[str], document: Any) -> str:
    """Return a path in the vendor's notation: each field is preceded by the type of the object it belongs to."""
    written: list[str] = []
    value, member = document, ""
    for token in tokens:
        if isinstance(value, dict) and member not in _UNTAGGED:
            tag: Any = value.get("type", "custom" if member == "tools" else None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            written += [tag] if isinstance(tag, str) else []
        written.append(token)
        member = member if token.isdecimal() else token
        value = _step_into(value, token)
    return ".".join(written) or "body"


def _step_into(value: Any, token: str) -> Any:
    if isinstance(value, list) and token.isdecimal() and int(token) < len(value):  # pyright: ignore[reportUnknownArgumentType]
        return value[int(token)]  # pyright: ignore[reportUnknownVariableType]
    return value.get(token) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_DETAILS: dict[str, dict[str, Any]] = {
    "messages.thread-unsupported": {"error_code": "thread_unsupported_request"},
    "messages.tool-names-unique": {"error_code": "tool_name_conflict"},
    "messages.tool-reference": {"error_code": "tool_reference_unresolved"},
}
_SERVER_ERROR = 500
_GOOGLE = {401: "UNAUTHENTICATED", 404: "NOT_FOUND"}
_PUBLISHER = "Publisher Model "
_CREDENTIALS = "Request had invalid authentication credentials. "
_ORGANIZATION = "0d7a60a1-51a7-4000-8000-000000000000"
_LIMITS = {"requests": 4000, "tokens": 2_400_000, "input-tokens": 2_000_000, "output-tokens": 400_000}
BAD_KEY = ApiRejection(status=401, message="invalid x-api-key", rule="key")
NO_KEY = ApiRejection(status=401, message="x-api-key header is required", rule="messages.authentication")
BAD_TOKEN = ApiRejection(
    status=401,
    message=f"{_CREDENTIALS}Expected OAuth 2 access token, login cookie or other valid authentication credential. See "
    "https://developers.google.com/identity/sign-in/web/devconsole-project.",
    rule="key",
)
"""Vertex's error for a request that does not reach the vendor."""
_VERSIONS = ("2023-01-01", "2023-06-01", "2026-10-21")
_BETA = re.compile(r"[a-z0-9-]+-(?:\d{4}-\d{2}-\d{2}|\d{8})")


def render_error(rejection: ApiRejection) -> HttpReply:
    """Return the error reply."""
    if rejection.message.startswith((_PUBLISHER, _CREDENTIALS)):
        return _render_google_error(rejection)
    body = _build_error(rejection)
    headers = {"content-type": "application/json", "request-id": str(body["request_id"])}
    if rejection.rule:
        headers["x-dragoman-rule"] = rejection.rule
    if rejection.retry_after is not None:
        headers["retry-after"] = f"{rejection.retry_after:g}"
    retry = rejection.status in {408, 409, 429} or rejection.status >= _SERVER_ERROR
    headers["x-should-retry"] = "true" if retry else "false"
    return HttpReply(rejection.status, headers, encode(body))


def _render_google_error(rejection: ApiRejection) -> HttpReply:
    """Return Vertex's error reply, for requests that do not reach the vendor."""
    message = f"{rejection.message} [rule: {rejection.rule}]"
    error = {"code": rejection.status, "message": message, "status": _GOOGLE[rejection.status]}
    headers = {"content-type": "application/json; charset=UTF-8", "x-dragoman-rule": rejection.rule}
    return HttpReply(rejection.status, headers, encode({"error": error}))


def describe_model_not_found(name: str) -> str:
    """Return Vertex's error text for an unknown model."""
    place = f"projects/simulated-project/locations/us-east5/publishers/anthropic/models/{name}"
    return (
        f"{_PUBLISHER}`{place}` was not found or your project does not have access to it. Please ensure you are using "
        "a valid model version. For more information, see: "
        "https://cloud.google.com/vertex-ai/generative-ai/docs/learn/model-versions"
    )


def build_headers(meta: ReplyMeta) -> dict[str, str]:
    """Return the headers of an answer: request id, organization, and rate limits."""
    reset = datetime.fromtimestamp(meta.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    headers = {"request-id": f"req_011C{meta.id[:20]}", "anthropic-organization-id": _ORGANIZATION}
    for kind, most in _LIMITS.items():
        start = f"anthropic-ratelimit-{kind}"
        headers |= {f"{start}-limit": str(most), f"{start}-remaining": str(most - 1), f"{start}-reset": reset}
    return headers


def render_stream_error(rejection: ApiRejection) -> bytes:
    """Return the event that ends a stream with an error."""
    return b"event: error\ndata: " + encode(_build_error(rejection)) + b"\n\n"


def _build_error(rejection: ApiRejection) -> dict[str, Any]:
    kind = (
        rejection.kind
        or _KINDS.get(rejection.status)
        or ("api_error" if rejection.status >= _SERVER_ERROR else _KINDS[400])
    )
    message = f"{rejection.message} [rule: {rejection.rule}]" if rejection.rule else rejection.message
    error: dict[str, Any] = {"type": kind, "message": message}
    if rejection.rule in _DETAILS:
        error["details"] = _DETAILS[rejection.rule]
    digest = hashlib.sha256(f"{rejection.status} {message}".encode()).hexdigest()
    return {"type": "error", "error": error, "request_id": f"req_011C{digest[:20]}"}


def check_headers(headers: Mapping[str, str]) -> Violation | None:
    """Return what is wrong with the headers of a direct request, or None; their names are in lower case."""
    if "x-api-key" not in headers and "authorization" not in headers:
        return Violation(NO_KEY.message, "", NO_KEY.status, NO_KEY.rule)
    version = headers.get("anthropic-version")
    if version is None:
        return Violation("anthropic-version: header is required", "", 400, "messages.version-header")
    if version not in _VERSIONS:
        message = f'anthropic-version: "{version}" is not a valid version'
        return Violation(message, "", 400, "messages.version-header")
    odd = [beta for beta in parse_betas(headers) if not _BETA.fullmatch(beta)]
    if odd:
        message = (
            f"Unexpected value(s) `{', '.join(odd)}` for the `anthropic-beta` header. Please consult our documentation "
            "at platform.claude.com/docs or try again without the header."
        )
        return Violation(message, "", 400, "messages.beta-header")
    return None


def parse_betas(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the beta features that the headers request."""
    return tuple(beta.strip() for beta in headers.get("anthropic-beta", "").split(",") if beta.strip())
