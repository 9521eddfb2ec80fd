"""Render errors in OpenAI's envelope: `{"error": {message, type, param, code}}`.

The error code is derived from the message, because OpenAI has one message per kind of error. Some rules of the
Responses API have another code.
"""

import re
from collections.abc import Mapping

from dragoman.simulator.apis.api import ApiRejection, HttpReply
from dragoman.simulator.apis.openai.replies import NO_KEY, build_error_headers
from dragoman.simulator.apis.openai.words import format_pointer
from dragoman.simulator.apis.rule import Json
from dragoman.wire.json import encode

NOT_JSON = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON."
)
_CODES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), code)
    for pattern, code in (
        (r"Unknown parameter: ", "unknown_parameter"),
        (r"Missing required parameter: |One of \"input\"", "missing_required_parameter"),
        (r"Unsupported parameter: ", "unsupported_parameter"),
        (r"Unsupported value: ", "unsupported_value"),
        (r"(?:Missing m|M)utually exclusive parameters: ", "mutually_exclusive_parameters"),
        (r"Invalid type for ", "invalid_type"),
        (r"Invalid [Vv]alue: ", "invalid_value"),
        (r"Invalid property name in ", "property_name_above_max_length"),
        (r"Invalid '[^']*': empty array", "empty_array"),
        (r"Invalid '[^']*': array too long", "array_above_max_length"),
        (r"Invalid '[^']*': empty string", "empty_string"),
        (r"Invalid '[^']*': string too long", "string_above_max_length"),
        (r"Invalid '[^']*': too many properties", "object_above_max_properties"),
        (r"Invalid '[^']*': integer above", "integer_above_max_value"),
        (r"Invalid '[^']*': integer below", "integer_below_min_value"),
        (r"Invalid '[^']*': decimal above", "decimal_above_max_value"),
        (r"Invalid '[^']*': decimal below", "decimal_below_min_value"),
        (r"Invalid '[^']*'(?:\.|: string does not match|: '.*'\. Expected an ID)", "invalid_value"),
        (r"Invalid schema for function ", "invalid_function_parameters"),
        (r"You uploaded an unsupported image", "invalid_image_format"),
        (r"The file type you uploaded is not supported", "unsupported_file"),
        (r"The encrypted content ", "invalid_encrypted_content"),
        (r"The (?:requested )?model [`'].*[`'] does not exist", "model_not_found"),
        (r"This model's maximum context length", "context_length_exceeded"),
        (r"Rate limit reached", "rate_limit_exceeded"),
        (r"You exceeded your current quota", "insufficient_quota"),
    )
)
_CODES_OF_RULES: dict[str, str | None] = {
    "responses.async-tool": "unsupported_parameter",
    "responses.cache-retention": "invalid_parameter",
    "responses.call-name": "invalid_value",
    "responses.configuration-update": None,
    "responses.effort": "unsupported_value",
    "responses.format-name": "invalid_value",
    "responses.format-schema": "invalid_json_schema",
    "responses.image": "invalid_value",
    "responses.logprobs": "unsupported_parameter",
    "responses.sampling": None,
    "responses.tool-name": "invalid_value",
}
_QUOTED = re.compile(
    r"(?:Unknown parameter: |Missing required parameter: |Unsupported parameter: |Invalid type for |Invalid )'([^']+)'"
)
_DOTTED_PARAM_MESSAGES = re.compile(
    r"Invalid value for 'content'|Invalid parameter: |An assistant message with 'tool_calls'"
)
"""Errors that OpenAI detects late, and whose `param` it then writes as `messages.[1].content`."""
_STATUS_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
_OWN_TYPES = {"requests", "tokens", "insufficient_quota", "server_error", "invalid_request_error", "rate_limit_error"}
_BY_TYPE = dict.fromkeys(("requests", "tokens"), "rate_limit_exceeded") | {"insufficient_quota": "insufficient_quota"}


def render_error(rejection: ApiRejection, codes: Mapping[int, str] = _STATUS_CODES) -> HttpReply:
    """Return the error reply; `codes` maps statuses to error codes where the message has none."""
    body = encode({"error": build_error(rejection, codes)})
    return HttpReply(rejection.status, build_error_headers(rejection, body), body)


def build_error(rejection: ApiRejection, codes: Mapping[int, str] = _STATUS_CODES) -> Json:
    """Return the error object."""
    message = f"{rejection.message} [rule: {rejection.rule}]" if rejection.rule else rejection.message
    return {
        "message": message,
        "type": _find_type(rejection),
        "param": _find_param(rejection),
        "code": _find_code(rejection, codes),
    }


def _find_type(rejection: ApiRejection) -> str:
    if rejection.kind in _OWN_TYPES:
        return rejection.kind
    default = "server_error" if rejection.status >= 500 else "invalid_request_error"
    return "requests" if rejection.status == 429 else default


def _find_code(rejection: ApiRejection, codes: Mapping[int, str]) -> str | None:
    if rejection.kind:
        return _BY_TYPE.get(rejection.kind) if rejection.kind in _OWN_TYPES else rejection.kind
    if rejection == NO_KEY:
        return None
    if rejection.rule in _CODES_OF_RULES:
        return _CODES_OF_RULES[rejection.rule]
    for pattern, code in _CODES:
        if pattern.match(rejection.message):
            return code
    return codes.get(rejection.status)


def _find_param(rejection: ApiRejection) -> str | None:
    quoted = _QUOTED.match(rejection.message)
    if quoted is not None:
        return quoted[1]
    if not rejection.where:
        return None
    name = format_pointer(rejection.where)
    return name.replace("[", ".[") if _DOTTED_PARAM_MESSAGES.match(rejection.message) else name
