import json

import pytest

import shelf
from dialects.gemini import recordings
from dragoman.core.problems import KINDS, Problem
from dragoman.dialects.gemini.errors import build_error, parse_error

RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "21.5s"}
DAILY = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "RequestsPerDayFree"}]}
BAD_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}


def read(status, word="", message="m", details=(), headers=None):
    error = {"code": status, "message": message, "status": word, "details": list(details)}
    return parse_error(status, headers or {}, json.dumps({"error": error}).encode())


def write(problem):
    reply = build_error(problem)
    return reply.status, reply.headers, json.loads(reply.body)["error"]


@pytest.mark.parametrize(
    ("status", "word", "kind"),
    [
        (400, "INVALID_ARGUMENT", "invalid_request"),
        (400, "FAILED_PRECONDITION", "invalid_request"),
        (400, "OUT_OF_RANGE", "invalid_request"),
        (401, "UNAUTHENTICATED", "authentication"),
        (402, "RESOURCE_EXHAUSTED", "billing"),
        (403, "PERMISSION_DENIED", "permission"),
        (404, "NOT_FOUND", "not_found"),
        (409, "ABORTED", "conflict"),
        (413, "", "too_large"),
        (429, "RESOURCE_EXHAUSTED", "rate_limit"),
        (499, "CANCELLED", "cancelled"),
        (500, "INTERNAL", "internal"),
        (501, "UNIMPLEMENTED", "unsupported"),
        (503, "UNAVAILABLE", "overloaded"),
        (504, "DEADLINE_EXCEEDED", "timeout"),
        (418, "", "invalid_request"),
        (599, "", "internal"),
    ],
)
def test_status_names_and_codes_are_parsed(status, word, kind):
    problem = read(status, word)
    assert (problem.kind, problem.status, problem.message) == (kind, status, "m")


def test_a_bad_key_is_authentication_though_its_status_is_400():
    assert read(400, "INVALID_ARGUMENT", details=[BAD_KEY]).kind == "authentication"


def test_a_context_overflow_is_recognised_by_its_message():
    words = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    assert read(400, "INVALID_ARGUMENT", words).kind == "context_length"


def test_a_daily_quota_is_not_a_matter_of_waiting():
    assert read(429, "RESOURCE_EXHAUSTED", details=[DAILY]).kind == "billing"


def test_the_delay_comes_from_the_header_or_the_details():
    assert read(429, details=[RETRY]).retry_after == 21.5
    assert read(429, details=[RETRY], headers={"retry-after": "3"}).retry_after == 3
    assert read(429, headers={"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}).retry_after is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>502</html>",
        b"[]",
        b"null",
        b'"x"',
        b'{"error":null}',
        b'{"error":"text"}',
        b'{"error":{"details":3}}',
        b"\xff",
        b'{"error":{"message":1,"details":[1,{"violations":[1]}]}}',
    ],
)
def test_an_odd_body_never_raises(body):
    problem = parse_error(502, {}, body)
    assert (problem.kind, problem.status, problem.detail) == ("internal", 502, body)


def test_an_array_around_the_error_is_read():
    assert parse_error(503, {}, b'[{"error":{"message":"m","status":"UNAVAILABLE"}}]').kind == "overloaded"


@shelf.needs_shelf
def test_recorded_errors_survive_a_round_trip():
    count = 0
    for name, status, body in recordings.errors():
        problem = parse_error(status, {}, body)
        reply = build_error(problem)
        expected = json.loads(body)["error"]
        written = json.loads(reply.body)["error"]
        assert reply.status == status, name
        assert written == {key: value for key, value in expected.items() if value != []}, name
        count += 1
    assert count > 20


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_written_with_an_integer_code_and_error_first(kind):
    reply = build_error(Problem(kind, "m"))
    assert reply.body.startswith(b'{"error":{"code":%d,' % reply.status)
    assert 400 <= reply.status <= 504


def test_an_overload_is_503_and_never_529():
    assert write(Problem("overloaded", "m", status=529))[0] == 503


def test_a_delay_is_written_to_the_header_and_the_details():
    _, headers, error = write(Problem("rate_limit", "m", retry_after=2.5))
    assert headers["retry-after"] == "3"
    assert error["details"] == [{**RETRY, "retryDelay": "2.5s"}]


def test_the_place_of_a_fault_is_written_as_a_field_violation():
    _, _, error = write(Problem("invalid_request", "m", where="/contents/0"))
    assert error["details"][0]["fieldViolations"] == [{"field": "contents[0]", "description": "m"}]


def test_the_first_field_violation_is_the_place_of_a_fault():
    violations = [{"description": "a"}, {"field": "contents[1].parts[0].text", "description": "b"}]
    detail = {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}
    assert read(400, details=[RETRY, detail]).where == "/contents/1/parts/0/text"
    assert read(400, details=[RETRY]).where == ""
