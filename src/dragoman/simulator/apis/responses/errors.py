"""Write refusals as the vendor does, before a stream and within one."""

import hashlib
import math
import re

import msgspec

from dragoman.simulator.api import Refusal, Told
from dragoman.simulator.apis.responses.words import path_of
from dragoman.simulator.rule import Json

_CODES = {
    "responses.unknown-field": "unknown_parameter",
    "responses.required": "missing_required_parameter",
    "responses.type": "invalid_type",
    "responses.enum": "invalid_value",
    "responses.model": "missing_required_parameter",
    "responses.model-found": "model_not_found",
    "responses.input": "missing_required_parameter",
    "responses.one-state": "mutually_exclusive_parameters",
    "responses.state-id": "invalid_value",
    "responses.format-name": "invalid_value",
    "responses.format-schema": "invalid_json_schema",
    "responses.cache-retention": "invalid_parameter",
    "responses.cache-options": "unsupported_parameter",
    "responses.tool-name": "invalid_value",
    "responses.tool-schema": "invalid_function_parameters",
    "responses.deferred-tools": "invalid_value",
    "responses.mcp-server": "mutually_exclusive_parameters",
    "responses.async-tool": "unsupported_parameter",
    "responses.item-id": "invalid_value",
    "responses.call-name": "invalid_value",
    "responses.media-source": "mutually_exclusive_parameters",
    "responses.image": "invalid_value",
    "responses.file-type": "unsupported_file",
    "responses.encrypted-content": "invalid_encrypted_content",
    "responses.effort": "unsupported_value",
    "responses.summary": "unsupported_parameter",
    "responses.logprobs": "unsupported_parameter",
    "responses.verbosity": "unsupported_value",
}
_BOUNDS = (
    ("integer below", "integer_below_min_value"),
    ("integer above", "integer_above_max_value"),
    ("decimal below", "decimal_below_min_value"),
    ("decimal above", "decimal_above_max_value"),
    ("string too long", "string_above_max_length"),
    ("empty string", "empty_string"),
    ("too many properties", "object_above_max_properties"),
)
_BY_STATUS = {
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", None),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", "server_error"),
    502: ("server_error", None),
    503: ("server_error", "server_is_overloaded"),
    504: ("server_error", None),
}
_WHOLE_INPUT = re.compile(r"No tool (?:output|call) found|Duplicate item|Item '|The file type")


BAD_KEY = Refusal(
    status=401,
    message=("Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys."),
    kind="invalid_api_key",
    rule="key",
)


def refuse(refusal: Refusal) -> Told:
    """Write a refusal with its status and headers."""
    digest = hashlib.sha256(f"{refusal.message}{refusal.where}".encode()).hexdigest()
    headers = {
        "content-type": "application/json",
        "openai-version": "2020-10-01",
        "openai-processing-ms": "12",
        "x-request-id": f"req_{digest[:32]}",
    }
    if refusal.retry_after is not None:
        headers["retry-after"] = str(math.ceil(refusal.retry_after))
        headers["retry-after-ms"] = str(math.ceil(refusal.retry_after * 1000))
    if refusal.rule:
        headers["x-dragoman-rule"] = refusal.rule
    return Told(refusal.status, headers, msgspec.json.encode({"error": stream_error(refusal)}))


def fail(refusal: Refusal) -> bytes:
    """Write how a stream breaks off, not knowing which: the error, then a reply that failed, as recorded."""
    error = stream_error(refusal)
    response: Json = {
        "id": f"resp_{hashlib.sha256(refusal.message.encode()).hexdigest()[:48]}",
        "object": "response",
        "created_at": 0,
        "status": "failed",
        "error": {"code": error["code"] or "server_error", "message": error["message"]},
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "",
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }
    first = msgspec.json.encode({"type": "error", "sequence_number": 0, "error": error})
    second = msgspec.json.encode({"type": "response.failed", "sequence_number": 1, "response": response})
    return b"event: error\ndata: %b\n\nevent: response.failed\ndata: %b\n\n" % (first, second)


def stream_error(refusal: Refusal) -> Json:
    """Write the error itself: what, of which type, at which parameter."""
    kind, code = _BY_STATUS.get(refusal.status, ("invalid_request_error", None))
    message = f"{refusal.message} [rule: {refusal.rule}]" if refusal.rule else refusal.message
    if refusal.kind == "insufficient_quota":
        kind = refusal.kind
    param = "input" if _WHOLE_INPUT.match(refusal.message) else path_of(refusal.where) or None
    return {"message": message, "type": kind, "param": param, "code": refusal.kind or _code(refusal) or code}


def _code(refusal: Refusal) -> str | None:
    if refusal.rule == "responses.bounds":
        return next((code for words, code in _BOUNDS if words in refusal.message), "invalid_value")
    if refusal.rule == "responses.unknown-field" and refusal.message.startswith("Unsupported"):
        return "unsupported_parameter"
    return _CODES.get(refusal.rule)


def response_not_found(response_id: str) -> Refusal:
    """Refuse to continue a response that is not stored (public measurement: status 400)."""
    message = f"Previous response with id '{response_id}' not found."
    return Refusal(status=400, message=message, kind="previous_response_not_found", where="/previous_response_id")


def item_not_found(item_id: str) -> Refusal:
    """Refuse to look up an item that is not stored."""
    return Refusal(status=404, message=f"Item with id '{item_id}' not found.", where="/input")
