"""Anthropic's errors: their form, and the sentence for a body that does not match its declaration."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.json import encode

from dragoman.simulator.api import Occasion, Refusal, Told
from dragoman.simulator.members import Mismatch, Number, Tags, Words
from dragoman.simulator.rule import Violation
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


def dotted(where: str) -> str:
    """Write a pointer with dots."""
    return where[1:].replace("/", ".")


def extra(where: str, _: Any = None) -> str:
    """A member nobody knows."""
    return f"{dotted(where)}: {NOT_PERMITTED}"


def custom(words: str) -> Callable[[str, Any], str]:
    """Return words about a place within a tool of the caller's own."""

    def say(where: str, _: Any) -> str:
        tools, number, *rest = dotted(where).split(".")
        return f"{'.'.join((tools, number, 'custom', *rest))}: {words}"

    return say


def unknown_tag(value: Any, known: Iterable[str] = ()) -> str:
    """A type that is not listed."""
    tags = ", ".join(f"'{tag}'" for tag in known)
    return f"Input tag '{value}' found using 'type' does not match any of the expected tags{': ' if tags else ''}{tags}"


def describe(found: Mismatch, document: Any) -> str:
    """Say how a document departs from its declaration."""
    tokens = split(found.where)
    match found.fault:
        case "unknown-field":
            return f"{_path([*tokens, found.name], document)}: {NOT_PERMITTED}"
        case "required":
            return f"{_path([*tokens, found.name], document)}: Field required"
        case "enum" if isinstance(found.kind, Tags) and tokens[-1] == "role":
            return f'messages: Unexpected role "{found.value}". Allowed roles are "user", "assistant" or "system"'
        case "enum" if isinstance(found.kind, Tags):
            return f"{_path(tokens[:-1], document)}: {unknown_tag(found.value, found.kind.words)}"
        case "type" if tokens[-1:] == ["input_schema"]:
            return f"{_path(tokens, document)}: Input does not match the expected shape."
        case _:
            return f"{_path(tokens, document)}: Input should be {_expected(found)}"


def _expected(found: Mismatch) -> str:
    kind = found.kind
    if found.fault == "enum" and isinstance(kind, Words):
        quoted = [f"'{word}'" for word in kind.words]
        return " or ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))
    if found.fault == "bounds" and isinstance(kind, Number):
        is_low = kind.least is not None and found.value < kind.least
        relation, bound = ("greater", kind.least) if is_low else ("less", kind.most)
        return f"{relation} than or equal to {float(bound or 0) if kind.types == ('float',) else bound}"
    return _EXPECTED[kind.types[0]]


def _path(tokens: list[str], document: Any) -> str:
    """Write where as the vendor does: before each member stands the type of the object that it is a member of."""
    written: list[str] = []
    value, member = document, ""
    for token in tokens:
        if isinstance(value, dict) and member not in _UNTAGGED:
            tag: Any = value.get("type", "custom" if member == "tools" else None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            written += [tag] if isinstance(tag, str) else []
        written.append(token)
        member = member if token.isdecimal() else token
        value = _step(value, token)
    return ".".join(written) or "body"


def _step(value: Any, token: str) -> Any:
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
_FINAL = 500
_GOOGLE = {401: "UNAUTHENTICATED", 404: "NOT_FOUND"}
_PUBLISHER = "Publisher Model "
_CREDENTIALS = "Request had invalid authentication credentials. "
_ORGANIZATION = "0d7a60a1-51a7-4000-8000-000000000000"
_LIMITS = {"requests": 4000, "tokens": 2_400_000, "input-tokens": 2_000_000, "output-tokens": 400_000}
BAD_KEY = Refusal(status=401, message="invalid x-api-key", rule="key")
NO_KEY = Refusal(status=401, message="x-api-key header is required", rule="messages.authentication")
BAD_TOKEN = Refusal(
    status=401,
    message=f"{_CREDENTIALS}Expected OAuth 2 access token, login cookie or other valid authentication credential. See "
    "https://developers.google.com/identity/sign-in/web/devconsole-project.",
    rule="key",
)
"""What Vertex tells before a request reaches the vendor."""
_VERSIONS = ("2023-01-01", "2023-06-01", "2026-10-21")
_BETA = re.compile(r"[a-z0-9-]+-(?:\d{4}-\d{2}-\d{2}|\d{8})")


def refuse(refusal: Refusal) -> Told:
    """Answer with an error."""
    if refusal.message.startswith((_PUBLISHER, _CREDENTIALS)):
        return _refuse_as_google(refusal)
    body = _envelope(refusal)
    headers = {"content-type": "application/json", "request-id": str(body["request_id"])}
    if refusal.rule:
        headers["x-dragoman-rule"] = refusal.rule
    if refusal.retry_after is not None:
        headers["retry-after"] = f"{refusal.retry_after:g}"
    retry = refusal.status in {408, 409, 429} or refusal.status >= _FINAL
    headers["x-should-retry"] = "true" if retry else "false"
    return Told(refusal.status, headers, encode(body))


def _refuse_as_google(refusal: Refusal) -> Told:
    """Answer as Vertex does where a request does not reach the vendor."""
    message = f"{refusal.message} [rule: {refusal.rule}]"
    error = {"code": refusal.status, "message": message, "status": _GOOGLE[refusal.status]}
    headers = {"content-type": "application/json; charset=UTF-8", "x-dragoman-rule": refusal.rule}
    return Told(refusal.status, headers, encode({"error": error}))


def no_publisher_model(name: str) -> str:
    """Say as Vertex does that there is no such model."""
    place = f"projects/simulated-project/locations/us-east5/publishers/anthropic/models/{name}"
    return (
        f"{_PUBLISHER}`{place}` was not found or your project does not have access to it. Please ensure you are using "
        "a valid model version. For more information, see: "
        "https://cloud.google.com/vertex-ai/generative-ai/docs/learn/model-versions"
    )


def headers(occasion: Occasion) -> dict[str, str]:
    """Return what stands in the headers of an answer: its id, whose it is, and what is left of the limits."""
    reset = datetime.fromtimestamp(occasion.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"request-id": f"req_011C{occasion.id[:20]}", "anthropic-organization-id": _ORGANIZATION}
    for kind, most in _LIMITS.items():
        start = f"anthropic-ratelimit-{kind}"
        told |= {f"{start}-limit": str(most), f"{start}-remaining": str(most - 1), f"{start}-reset": reset}
    return told


def fail(refusal: Refusal) -> bytes:
    """Break a stream off."""
    return b"event: error\ndata: " + encode(_envelope(refusal)) + b"\n\n"


def _envelope(refusal: Refusal) -> dict[str, Any]:
    kind = refusal.kind or _KINDS.get(refusal.status) or ("api_error" if refusal.status >= _FINAL else _KINDS[400])
    message = f"{refusal.message} [rule: {refusal.rule}]" if refusal.rule else refusal.message
    error: dict[str, Any] = {"type": kind, "message": message}
    if refusal.rule in _DETAILS:
        error["details"] = _DETAILS[refusal.rule]
    digest = hashlib.sha256(f"{refusal.status} {message}".encode()).hexdigest()
    return {"type": "error", "error": error, "request_id": f"req_011C{digest[:20]}"}


def missing_headers(headers: Mapping[str, str]) -> Violation | None:
    """Tell what the headers of a direct request lack; their names are in lower case."""
    if "x-api-key" not in headers and "authorization" not in headers:
        return Violation(NO_KEY.message, "", NO_KEY.status, NO_KEY.rule)
    version = headers.get("anthropic-version")
    if version is None:
        return Violation("anthropic-version: header is required", "", 400, "messages.version-header")
    if version not in _VERSIONS:
        words = f'anthropic-version: "{version}" is not a valid version'
        return Violation(words, "", 400, "messages.version-header")
    odd = [beta for beta in betas_of(headers) if not _BETA.fullmatch(beta)]
    if odd:
        words = (
            f"Unexpected value(s) `{', '.join(odd)}` for the `anthropic-beta` header. Please consult our documentation "
            "at platform.claude.com/docs or try again without the header."
        )
        return Violation(words, "", 400, "messages.beta-header")
    return None


def betas_of(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the beta features that the headers ask for."""
    return tuple(beta.strip() for beta in headers.get("anthropic-beta", "").split(",") if beta.strip())
