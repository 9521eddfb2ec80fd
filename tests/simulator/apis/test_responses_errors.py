"""Errors have the vendor's format, before a stream and within one."""

import json

import openai
import pytest

from dragoman.simulator.apis.api import ApiRejection
from dragoman.simulator.apis.responses import API
from dragoman.simulator.apis.responses.conversations import build_item_not_found, build_not_found
from dragoman.simulator.apis.responses.store import build_previous_not_found
from dragoman.simulator.apis.responses.write import render_broken_stream
from simulator.apis.responses.answers import CASES, TYPED_EVENT, client, frames, occasion
from simulator.apis.responses.bodies import WEATHER, asks, require_accepted, require_rejected

CODES = [
    ({"zzz": 1}, "zzz", "unknown_parameter"),
    ({"messages": []}, "messages", "unsupported_parameter"),
    ({"max_output_tokens": "x"}, "max_output_tokens", "invalid_type"),
    ({"max_output_tokens": 5}, "max_output_tokens", "integer_below_min_value"),
    ({"temperature": 3}, "temperature", "decimal_above_max_value"),
    ({"prompt_cache_key": "k" * 65}, "prompt_cache_key", "string_above_max_length"),
    ({"truncation": "x"}, "truncation", "invalid_value"),
    ({"input": [{"role": "user"}]}, "input[0].content", "missing_required_parameter"),
    ({"temperature": 0.5}, "temperature", None),
    ({"reasoning": {"effort": "none"}}, "reasoning.effort", "unsupported_value"),
    ({"model": "no-such-model"}, "model", "model_not_found"),
    ({"previous_response_id": "resp_1", "conversation": "conv_1"}, None, "mutually_exclusive_parameters"),
    ({"tools": [{**WEATHER, "strict": True}]}, "tools[0].parameters", "invalid_function_parameters"),
    ({"input": [{"type": "function_call_output", "call_id": "call_1", "output": ""}]}, "input", None),
    ({"input": [{"type": "reasoning", "summary": [], "encrypted_content": "x"}]}, None, "invalid_encrypted_content"),
]


@pytest.mark.parametrize(("members", "param", "code"), CODES, ids=str)
def test_an_error_has_its_parameter_and_code(members, param, code):
    found = require_rejected(asks(**members))
    rendered = API.render_error(
        ApiRejection(status=found.status, message=found.message, where=found.where, rule=found.rule)
    )
    error = json.loads(rendered.body)["error"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)
    assert error["message"] == f"{found.message} [rule: {found.rule}]"
    assert rendered.headers["x-dragoman-rule"] == found.rule
    assert rendered.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (401, "", ("invalid_request_error", "invalid_api_key")),
        (404, "", ("invalid_request_error", None)),
        (429, "", ("requests", "rate_limit_exceeded")),
        (429, "insufficient_quota", ("insufficient_quota", "insufficient_quota")),
        (500, "", ("server_error", "server_error")),
        (503, "", ("server_error", "server_is_overloaded")),
    ],
)
def test_a_status_has_its_type_and_code(status, kind, expected):
    error = json.loads(API.render_error(ApiRejection(status=status, message="No.", kind=kind)).body)["error"]
    assert (error["type"], error["code"]) == expected
    assert error["message"] == "No."


def test_the_retry_delay_is_in_the_headers():
    headers = API.render_error(ApiRejection(status=429, message="Slow down.", retry_after=1.5)).headers
    assert (headers["retry-after"], headers["retry-after-ms"]) == ("2", "1500")
    assert "x-dragoman-rule" not in headers


def test_an_invalid_key_is_an_error():
    error = json.loads(API.render_error(API.bad_key).body)["error"]
    assert (API.bad_key.status, error["code"]) == (401, "invalid_api_key")


def test_what_is_not_stored_is_not_found():
    rendered = API.render_error(build_previous_not_found("resp_1"))
    error = json.loads(rendered.body)["error"]
    assert (rendered.status, error["param"], error["code"]) == (
        400,
        "previous_response_id",
        "previous_response_not_found",
    )
    assert error["message"] == "Previous response with id 'resp_1' not found."
    assert API.render_error(build_item_not_found("rs_1")).status == 404
    rendered = API.render_error(build_not_found("Response", "resp_1"))
    assert (rendered.status, json.loads(rendered.body)["error"]["code"]) == (404, "not_found")


def test_a_stream_that_breaks_off_raises_in_the_sdk():
    begun = b"".join(frames(*CASES["text"])[:4])
    body = begun + API.render_stream_error(ApiRejection(status=503, message="Overloaded."))
    with pytest.raises(openai.APIError, match="Overloaded") as caught:
        list(client(body, "text/event-stream").responses.create(model="m", input="i", stream=True))
    assert caught.value.code == "server_is_overloaded"


def test_a_stream_that_is_known_breaks_off_under_its_own_id():
    members, answer = CASES["text"]
    request = require_accepted(asks(stream=True, **members))
    rendered = render_broken_stream(ApiRejection(status=500, message="Broken."), request, occasion(), 4).split(b"\n\n")[
        :2
    ]
    error, failed = (json.loads(frame.partition(b"data: ")[2]) for frame in rendered)
    assert (error["type"], error["sequence_number"], error["error"]["code"]) == ("error", 4, "server_error")
    response = TYPED_EVENT.validate_python(failed).response
    assert (response.status, response.error.message) == ("failed", "Broken.")
    assert response.id == json.loads(API.render_reply(answer, request, occasion()))["id"]


def test_tokens_are_counted():
    rendered = json.loads(API.render_token_count(require_accepted(asks()), 61))
    assert rendered == {"object": "response.input_tokens", "input_tokens": 61}


def test_a_missing_key_is_an_error_without_a_code():
    rendered = API.render_error(API.no_key)
    error = json.loads(rendered.body)["error"]
    assert error["message"].startswith("You didn't provide an API key.")
    assert (rendered.status, error["type"], error["code"]) == (401, "invalid_request_error", None)
    other = json.loads(API.render_error(API.bad_key).body)["error"]
    assert (other["type"], other["code"]) == ("invalid_request_error", "invalid_api_key")


def test_a_refusal_has_openais_headers():
    headers = API.render_error(ApiRejection(status=400, message="No.")).headers
    assert headers["x-request-id"].startswith("req_")
    assert {"openai-version", "openai-processing-ms", "openai-organization"} <= headers.keys()
    assert not any(name.startswith("x-ratelimit") for name in headers)
    limited = API.render_error(ApiRejection(status=429, message="Slow down.")).headers
    assert (limited["x-ratelimit-remaining-requests"], limited["x-ratelimit-remaining-tokens"]) == ("0", "0")


@pytest.mark.parametrize("status", [502, 520, 529, 599])
def test_a_fault_of_the_server_is_a_server_error(status):
    assert (
        json.loads(API.render_error(ApiRejection(status=status, message="No.")).body)["error"]["type"] == "server_error"
    )
