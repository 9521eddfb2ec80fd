"""Errors are in OpenAI's envelope, and the official SDK raises the right exception for them."""

import json

import httpx2
import openai
import pytest

from dragoman.simulator.apis.api import ApiRejection
from dragoman.simulator.apis.chat import API

FORMS = [
    (ApiRejection(status=400, message="Bad."), "invalid_request_error", None, openai.BadRequestError),
    (API.bad_key, "invalid_request_error", "invalid_api_key", openai.AuthenticationError),
    (ApiRejection(status=403, message="No."), "invalid_request_error", None, openai.PermissionDeniedError),
    (ApiRejection(status=404, message="Gone."), "invalid_request_error", None, openai.NotFoundError),
    (
        ApiRejection(status=400, message="Too long.", kind="context_length_exceeded"),
        "invalid_request_error",
        "context_length_exceeded",
        openai.BadRequestError,
    ),
    (ApiRejection(status=429, message="Slow down."), "requests", "rate_limit_exceeded", openai.RateLimitError),
    (
        ApiRejection(status=429, message="Too many tokens.", kind="tokens"),
        "tokens",
        "rate_limit_exceeded",
        openai.RateLimitError,
    ),
    (
        ApiRejection(status=429, message="Pay.", kind="insufficient_quota"),
        "insufficient_quota",
        "insufficient_quota",
        openai.RateLimitError,
    ),
    (ApiRejection(status=500, message="Broken."), "server_error", None, openai.InternalServerError),
    (ApiRejection(status=503, message="Overloaded."), "server_error", None, openai.InternalServerError),
]


def get_error(result):
    """Return the exception the SDK raises for a reply."""

    def respond(_request):
        return httpx2.Response(result.status, headers=dict(result.headers), content=result.body)

    with (
        httpx2.Client(transport=httpx2.MockTransport(respond)) as transport,
        openai.OpenAI(api_key="sk-test", base_url="http://x/v1", max_retries=0, http_client=transport) as client,
        pytest.raises(openai.APIStatusError) as caught,
    ):
        client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "a"}])
    return caught.value


@pytest.mark.parametrize(("refusal", "kind", "code", "exception"), FORMS, ids=lambda value: str(value)[:40])
def test_a_refusal_is_raised_as_the_sdks_own_exception(refusal, kind, code, exception):
    rendered = API.render_error(refusal)
    error = get_error(rendered)
    assert type(error) is exception
    assert (error.status_code, error.type, error.code) == (refusal.status, kind, code)
    assert error.request_id == rendered.headers["x-request-id"]
    assert set(json.loads(rendered.body)["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(("seconds", "header", "milliseconds"), [(20, "20", "20000"), (1.5, "2", "1500")])
def test_a_retry_delay_is_in_the_headers(seconds, header, milliseconds):
    rendered = API.render_error(ApiRejection(status=429, message="Slow down.", retry_after=seconds))
    assert (rendered.headers["retry-after"], rendered.headers["retry-after-ms"]) == (header, milliseconds)


def test_a_refusal_without_a_rule_names_none():
    rendered = API.render_error(ApiRejection(status=400, message="Bad."))
    assert "x-dragoman-rule" not in rendered.headers
    assert json.loads(rendered.body)["error"]["message"] == "Bad."


def test_a_stream_breaks_off_with_an_error_that_the_sdk_raises():
    frame = API.render_stream_error(
        ApiRejection(status=500, message="The server had an error while processing your request.")
    )
    assert json.loads(frame.removeprefix(b"data: ")) == {
        "error": {
            "message": "The server had an error while processing your request.",
            "type": "server_error",
            "param": None,
            "code": None,
        }
    }

    def respond(_request):
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=frame)

    with (
        httpx2.Client(transport=httpx2.MockTransport(respond)) as transport,
        openai.OpenAI(api_key="sk-test", base_url="http://x/v1", http_client=transport) as client,
        client.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": "a"}], stream=True
        ) as stream,
        pytest.raises(openai.APIError, match="The server had an error"),
    ):
        list(stream)


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
