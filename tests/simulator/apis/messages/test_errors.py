"""Errors have the vendor's envelope, status and headers, and the SDK raises the same exceptions as for the vendor."""

import json

import anthropic
import httpx2
import pytest

from dragoman.simulator.apis.api import ApiRejection
from dragoman.simulator.apis.messages import API
from dragoman.simulator.apis.messages.errors import check_headers, parse_betas

DIRECT = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
QUESTION = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (400, "invalid_request_error", anthropic.BadRequestError),
        (401, "authentication_error", anthropic.AuthenticationError),
        (402, "billing_error", anthropic.APIStatusError),
        (403, "permission_error", anthropic.PermissionDeniedError),
        (404, "not_found_error", anthropic.NotFoundError),
        (409, "conflict_error", anthropic.ConflictError),
        (413, "request_too_large", anthropic.APIStatusError),
        (422, "invalid_request_error", anthropic.UnprocessableEntityError),
        (429, "rate_limit_error", anthropic.RateLimitError),
        (500, "api_error", anthropic.InternalServerError),
        (503, "api_error", anthropic.APIStatusError),
        (504, "timeout_error", anthropic.APIStatusError),
        (529, "overloaded_error", anthropic.APIStatusError),
    ],
)
def test_a_status_has_its_kind_and_the_sdk_its_class(status, kind, error):
    rendered = API.render_error(ApiRejection(status=status, message="No."))
    body = json.loads(rendered.body)
    assert (rendered.status, body["type"], body["error"]) == (status, "error", {"type": kind, "message": "No."})
    assert rendered.headers["request-id"] == body["request_id"]
    assert isinstance(get_error(rendered.status, rendered.body, dict(rendered.headers)), error)


def get_error(status, content, headers):
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, content=content, headers=headers))
    client = anthropic.Anthropic(api_key="k", http_client=httpx2.Client(transport=transport), max_retries=0)
    with pytest.raises(anthropic.APIStatusError) as caught:
        client.messages.create(**QUESTION)
    return caught.value


def test_a_refusal_names_its_rule_and_when_to_come_back():
    rendered = API.render_error(ApiRejection(status=429, message="Slow down.", rule="messages.x", retry_after=1.5))
    assert json.loads(rendered.body)["error"]["message"] == "Slow down. [rule: messages.x]"
    assert (
        rendered.headers["x-dragoman-rule"],
        rendered.headers["retry-after"],
        rendered.headers["x-should-retry"],
    ) == (
        "messages.x",
        "1.5",
        "true",
    )


def test_threads_are_refused_so_that_tool_runners_send_everything():
    rendered = API.render_error(ApiRejection(status=400, message="No.", rule="messages.thread-unsupported"))
    assert json.loads(rendered.body)["error"]["details"] == {"error_code": "thread_unsupported_request"}


def test_a_stream_breaks_off_with_an_error_the_sdk_raises():
    frame = API.render_stream_error(ApiRejection(status=529, message="Overloaded"))
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, content=frame, headers={"content-type": "text/event-stream"})
    )
    client = anthropic.Anthropic(api_key="k", http_client=httpx2.Client(transport=transport), max_retries=0)
    with pytest.raises(anthropic.APIStatusError) as caught:
        list(client.messages.create(**QUESTION, stream=True))
    assert caught.value.type == "overloaded_error"


@pytest.mark.parametrize(
    ("headers", "status", "words"),
    [
        ({"anthropic-version": "2023-06-01"}, 401, "x-api-key header is required"),
        ({"x-api-key": "k"}, 400, "anthropic-version: header is required"),
        ({**DIRECT, "anthropic-version": "2024-01-01"}, 400, 'anthropic-version: "2024-01-01" is not a valid version'),
        ({**DIRECT, "anthropic-beta": "what"}, 400, "Unexpected value(s) `what` for the `anthropic-beta` header."),
    ],
)
def test_headers_that_lack_something_are_refused(headers, status, words):
    found = check_headers(headers)
    assert found is not None
    assert found.status == status
    assert found.message.startswith(words)
    assert found.rule in {note.name for note in API.rules}


def test_headers_of_clients_are_enough():
    assert check_headers(DIRECT) is None
    assert check_headers({"authorization": "Bearer k", "anthropic-version": "2026-10-21"}) is None
    betas = "claude-code-20250219,interleaved-thinking-2025-05-14, context-management-2025-06-27"
    assert check_headers({**DIRECT, "anthropic-beta": betas}) is None
    assert parse_betas({"anthropic-beta": betas})[-1] == "context-management-2025-06-27"
