import json

import pytest

import shelf
from dialects.messages import official, recordings
from dragoman.core.problems import KINDS, Problem
from dragoman.dialects.messages.errors import build_error, parse_error

TABLE = [
    (400, "invalid_request_error", "invalid_request"),
    (401, "authentication_error", "authentication"),
    (402, "billing_error", "billing"),
    (403, "permission_error", "permission"),
    (404, "not_found_error", "not_found"),
    (409, "conflict_error", "conflict"),
    (413, "request_too_large", "too_large"),
    (429, "rate_limit_error", "rate_limit"),
    (500, "api_error", "internal"),
    (504, "timeout_error", "timeout"),
    (529, "overloaded_error", "overloaded"),
]


def envelope(kind, message="words", **members):
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}, **members}).encode()


def parse(status, body, **headers):
    return parse_error(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


@pytest.mark.parametrize(("status", "word", "kind"), TABLE)
def test_each_row_survives_a_round_trip(status, word, kind):
    body = envelope(word, request_id="req_1")
    problem = parse(status, body)
    assert (problem.kind, problem.message, problem.status) == (kind, "words", status)
    assert (problem.detail, problem.detail_dialect) == (body, "messages")
    reply = build_error(problem)
    assert reply.status == status
    assert json.loads(reply.body) == json.loads(body)


@pytest.mark.parametrize(("status", "word", "kind"), TABLE)
def test_each_kind_raises_the_official_error_of_its_status(status, word, kind):
    error = official.get_reply_error(build_error(Problem(kind, "words")))
    assert (error.status_code, error.type) == (status, word)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_written(kind):
    reply = build_error(Problem(kind, "words"))
    body = json.loads(reply.body)
    assert body["type"] == "error"
    assert body["error"]["type"] in {word for _, word, _ in TABLE}
    assert 400 <= reply.status < 600


@pytest.mark.parametrize(("kind", "status"), [("malformed_reply", 502), ("unsupported", 400), ("policy", 403)])
def test_our_own_kinds_have_a_status(kind, status):
    assert build_error(Problem(kind, "words")).status == status


def test_a_foreign_overload_is_529_here():
    assert build_error(Problem("overloaded", "busy", status=503)).status == 529


@pytest.mark.parametrize(("kind", "status"), [("invalid_request", 422), ("internal", 502)])
def test_a_more_exact_status_of_the_same_class_is_kept(kind, status):
    assert build_error(Problem(kind, "words", status=status)).status == status


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000",
    ],
)
def test_a_context_overflow_is_recognised_by_its_message(message):
    problem = parse(400, envelope("invalid_request_error", message))
    assert problem.kind == "context_length"
    assert json.loads(build_error(problem).body)["error"] == {
        "type": "invalid_request_error",
        "message": message,
    }


def test_a_foreign_context_overflow_gets_the_message_that_clients_look_for():
    body = json.loads(build_error(Problem("context_length", "maximum context length is 8192 tokens")).body)
    assert body["error"]["message"] == "prompt is too long: maximum context length is 8192 tokens"


def test_an_empty_account_is_billing_though_it_is_called_invalid():
    message = "Your credit balance is too low to access the Anthropic API."
    assert parse(400, envelope("invalid_request_error", message)).kind == "billing"


def test_another_vendors_empty_account_is_a_limit_that_waiting_does_not_lift():
    problem = Problem("billing", "You exceeded your current quota", status=429, detail=b"{}", detail_dialect="chat")
    reply = build_error(problem)
    assert (reply.status, reply.headers["x-should-retry"]) == (429, "false")
    assert json.loads(reply.body)["error"]["type"] == "rate_limit_error"
    own = build_error(parse(402, envelope("billing_error", "pay")))
    assert (own.status, json.loads(own.body)["error"]["type"]) == (402, "billing_error")
    assert "x-should-retry" not in own.headers


def test_details_and_their_code_survive():
    details = {"error_code": "tool_name_conflict", "tool": "n"}
    error = {"type": "invalid_request_error", "message": "m", "details": details}
    body = json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()
    problem = parse(400, body)
    assert problem.code == "tool_name_conflict"
    assert json.loads(build_error(problem).body) == json.loads(body)


def test_a_code_of_our_own_is_written_as_details():
    problem = Problem("invalid_request", "no threads", code="thread_unsupported_request")
    error = json.loads(build_error(problem).body)["error"]
    assert error["details"] == {"error_code": "thread_unsupported_request"}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "1500", "retry_after": "2"}, 1.5),
        ({"retry_after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "-1"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_seconds(headers, seconds):
    assert parse(429, envelope("rate_limit_error"), **headers).retry_after == seconds


def test_retry_after_is_written_in_whole_seconds():
    reply = build_error(Problem("rate_limit", "slow down", retry_after=1.2))
    assert reply.headers["retry-after"] == "2"
    assert "retry-after" not in build_error(Problem("rate_limit", "slow down")).headers


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (
            502,
            b"<html><h1>Bad Gateway</h1></html>",
            "internal",
            "the upstream returned HTTP status 502 without an error message",
        ),
        (503, b"", "overloaded", "the upstream returned HTTP status 503 without an error message"),
        (401, b"\xff\xfe\x00", "authentication", "the upstream returned HTTP status 401 without an error message"),
        (400, b"upstream connect error", "invalid_request", "upstream connect error"),
        (429, b'[{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED"}}]', "rate_limit", "Quota"),
        (403, b'{"message":"no access"}', "permission", "no access"),
        (418, b'{"error":"short and stout"}', "invalid_request", "short and stout"),
        (
            500,
            b'{"error":{"type":5,"message":[]}}',
            "internal",
            "the upstream returned HTTP status 500 without an error message",
        ),
        (500, b"null", "internal", "null"),
        (
            400,
            b'{"type":"error","error":null}',
            "invalid_request",
            "the upstream returned HTTP status 400 without an error message",
        ),
        (400, b"[" * 100_000, "invalid_request", "the upstream returned HTTP status 400 without an error message"),
    ],
)
def test_odd_bodies_are_still_problems(status, body, kind, message):
    problem = parse(status, body)
    assert (problem.kind, problem.message, problem.status) == (kind, message, status)
    assert build_error(problem).body


@shelf.needs_shelf
def test_every_recorded_error_survives_a_round_trip():
    count = 0
    for name, status, body in recordings.errors():
        problem = parse(status, body)
        reply = build_error(problem)
        assert reply.status == status, name
        if body.startswith(b"{"):
            written = json.loads(reply.body)
            assert {key: value for key, value in written.items() if value is not None} == json.loads(body), name
        count += 1
    assert count >= 19
