"""Write refusals as the vendor does, before a stream and within one."""

import hashlib
import re

import msgspec

from dragoman.simulator.api import Refusal, Told
from dragoman.simulator.apis.openai.headers import NO_KEY, of_refusal
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
    "responses.custom-tool": "invalid_value",
    "responses.generate-summary": "unknown_parameter",
}
_BOUNDS = (
    ("integer below", "integer_below_min_value"),
    ("integer above", "integer_above_max_value"),
    ("decimal below", "decimal_below_min_value"),
    ("decimal above", "decimal_above_max_value"),
    ("string too long", "string_above_max_length"),
    ("empty string", "empty_string"),
    ("too many properties", "object_above_max_properties"),
    ("array too long", "array_above_max_length"),
)
_BY_STATUS = {
    401: ("invalid_request_error", "invalid_api_key"),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", "server_error"),
    503: ("server_error", "server_is_overloaded"),
}
_WHOLE_INPUT = re.compile(r"No tool (?:output|call) found|Duplicate item|Item '|The file type")


def refuse(refusal: Refusal) -> Told:
    """Write a refusal with its status and headers."""
    body = msgspec.json.encode({"error": error_of(refusal)})
    return Told(refusal.status, of_refusal(refusal, body), body)


def fail(refusal: Refusal) -> bytes:
    """Write how a stream breaks off, not knowing which: the error, then a reply that failed, as recorded."""
    error = error_of(refusal)
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


def error_of(refusal: Refusal) -> Json:
    """Write the error itself: what, of which type, at which parameter."""
    usual = ("server_error" if refusal.status >= 500 else "invalid_request_error", None)
    kind, code = usual if refusal == NO_KEY else _BY_STATUS.get(refusal.status, usual)
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


def previous_not_found(response_id: str) -> Refusal:
    """Refuse to continue a response that is not stored (public measurement: status 400)."""
    message = f"Previous response with id '{response_id}' not found."
    return Refusal(status=400, message=message, kind="previous_response_not_found", where="/previous_response_id")


def response_not_found(response_id: str) -> Refusal:
    """Refuse to tell of a response that is not stored."""
    return Refusal(status=404, message=f"Response with id '{response_id}' not found.", kind="not_found")


def conversation_not_found(conversation_id: str) -> Refusal:
    """Refuse to tell of a conversation that is not kept, or to go on with it."""
    return Refusal(status=404, message=f"Conversation with id '{conversation_id}' not found.", kind="not_found")


def item_not_found(item_id: str) -> Refusal:
    """Refuse to look up an item that is not stored."""
    return Refusal(status=404, message=f"Item with id '{item_id}' not found.", where="/input")


def not_to_cancel() -> Refusal:
    """Refuse to cancel what does not run in the background."""
    return Refusal(status=400, message="Cannot cancel a synchronous response.", where="/response_id")


def not_to_stream(response_id: str) -> Refusal:
    """Refuse to stream what was not streamed when it was made."""
    message = f"Response with id '{response_id}' cannot be streamed: it was not created with background and stream."
    return Refusal(status=400, message=message, where="/stream")
