"""Every row of the tables of errors, both ways, and the order in which they are asked."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from dragoman.core.problems import KINDS, Problem
from dragoman.dialects.chat import DIALECT
from dragoman.dialects.chat.errors import read_error

CODES = {
    "context_length_exceeded": "context_length",
    "insufficient_quota": "billing",
    "credit_balance_exhausted": "billing",
    "organization_spend_limit_exceeded": "billing",
    "project_spend_limit_exceeded": "billing",
    "organization_usage_limit_exceeded": "billing",
    "billing_hard_limit_reached": "billing",
    "billing_not_active": "billing",
    "rate_limit_exceeded": "rate_limit",
    "invalid_api_key": "authentication",
    "model_not_found": "not_found",
    "unsupported_country_region_territory": "permission",
    "misalignment_policy_violation": "policy",
    "content_policy_violation": "policy",
    "content_filter": "policy",
    "cyber_policy": "policy",
    "bio_policy": "policy",
    "server_is_overloaded": "overloaded",
    "engine_overloaded": "overloaded",
    "slow_down": "overloaded",
    "malformed_function_call": "malformed_reply",
}
TYPES = {
    "insufficient_quota": "billing",
    "billing_error": "billing",
    "requests": "rate_limit",
    "tokens": "rate_limit",
    "rate_limit_error": "rate_limit",
    "authentication_error": "authentication",
    "permission_error": "permission",
    "not_found_error": "not_found",
    "overloaded_error": "overloaded",
    "service_unavailable": "overloaded",
    "timeout_error": "timeout",
}
STATUSES = {
    400: "invalid_request",
    401: "authentication",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    418: "invalid_request",
    422: "invalid_request",
    429: "rate_limit",
    499: "cancelled",
    500: "internal",
    501: "internal",
    502: "internal",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
WITHOUT_STATUS = {
    "invalid_request_error": "invalid_request",
    "server_error": "internal",
    "internal_server_error": "internal",
    "api_error": "internal",
    "never heard of": "internal",
}
WRITTEN = {
    "invalid_request": (400, "invalid_request_error", None),
    "unsupported": (400, "invalid_request_error", "unsupported_value"),
    "context_length": (400, "invalid_request_error", "context_length_exceeded"),
    "too_large": (413, "invalid_request_error", "request_too_large"),
    "authentication": (401, "invalid_request_error", "invalid_api_key"),
    "billing": (429, "insufficient_quota", "insufficient_quota"),
    "permission": (403, "permission_error", None),
    "not_found": (404, "invalid_request_error", "model_not_found"),
    "conflict": (409, "conflict_error", None),
    "rate_limit": (429, "rate_limit_error", "rate_limit_exceeded"),
    "overloaded": (503, "server_error", "server_is_overloaded"),
    "timeout": (504, "server_error", "timeout"),
    "cancelled": (499, "server_error", "cancelled"),
    "internal": (500, "server_error", None),
    "malformed_reply": (502, "server_error", "malformed_reply"),
    "unreachable": (502, "server_error", None),
    "policy": (403, "invalid_request_error", "content_policy_violation"),
}
KEPT = {
    "invalid_request": {400, 404, 413, 422},
    "unsupported": {400, 422, 501},
    "policy": {400, 403},
    "internal": {500, 502},
    "timeout": {408, 504},
}


def parse(status: int, error: Any, headers: dict[str, str] | None = None) -> Problem:
    return DIALECT.parse_error(status, headers or {}, json.dumps({"error": error}).encode())


def read(error: Any) -> Problem:
    return read_error(json.dumps(error).encode())


@pytest.mark.parametrize(("code", "kind"), CODES.items())
def test_a_code_decides_against_type_and_status(code: str, kind: str):
    assert parse(409, {"message": "m", "type": "timeout_error", "code": code}).kind == kind
    problem = read({"message": "m", "type": "timeout_error", "code": code})
    assert (problem.kind, problem.code) == (kind, code)


@pytest.mark.parametrize(("word", "kind"), TYPES.items())
def test_a_type_decides_against_the_status(word: str, kind: str):
    assert parse(409, {"message": "m", "type": word, "code": "other"}).kind == kind
    assert read({"message": "m", "type": word}).kind == kind


@pytest.mark.parametrize(("status", "kind"), STATUSES.items())
def test_the_status_decides_the_kind_if_no_code_does(status: int, kind: str):
    problem = parse(status, {"message": "m", "type": "api_error", "code": 7})
    assert (problem.kind, problem.status, problem.code) == (kind, status, None)
    for word in ("status_code", "code", "status"):
        result = read({"message": "m", word: str(status)})
        assert (result.kind, result.status, result.code) == (kind, status, None)
        assert read({"message": "m", word: status}).status == status


@pytest.mark.parametrize(("word", "kind"), WITHOUT_STATUS.items())
def test_a_weak_type_decides_only_where_there_is_no_status(word: str, kind: str):
    for number in (399, 600, 200):
        problem = read({"message": "m", "type": word, "code": number})
        assert (problem.kind, problem.where) == (kind, "")
    assert parse(409, {"message": "m", "type": word}).kind == "conflict"


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 5",
        "Context length exceeded",
        "context_length_exceeded",
        "over the context window",
        "prompt is too long: 9 > 5",
        "The input token count 9 exceeds 5",
    ],
)
def test_a_message_about_length_decides_the_kind_where_the_status_allows_it(message: str):
    assert {status: parse(status, {"message": message}).kind for status in (400, 413, 422, 404, 500)} == {
        400: "context_length",
        413: "context_length",
        422: "context_length",
        404: "not_found",
        500: "internal",
    }
    assert read({"message": message}).kind == "context_length"


def test_an_error_in_a_reply_keeps_all_its_fields():
    raw = b'{"message":"Please try again in 2s","type":"tokens","code":"c"}'
    problem = read_error(raw)
    assert vars(problem) == vars(
        Problem(
            "rate_limit",
            "Please try again in 2s",
            code="c",
            retry_after=2.0,
            detail=b'{"error":' + raw + b"}",
            detail_dialect="chat",
        )
    )
    body = b'{"error":{"message":"m"}}'
    assert vars(DIALECT.parse_error(418, {}, body)) == vars(
        Problem("invalid_request", "m", status=418, detail=body, detail_dialect="chat")
    )
    assert DIALECT.parse_error(418, {}, b"").detail is None


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_written_by_its_row(kind: Any):
    status, word, code = WRITTEN[kind]
    reply = DIALECT.build_error(Problem(kind, "m", where="/tools/0/function"))
    error = {"message": "m", "type": word, "param": "tools[0].function", "code": code}
    assert (reply.status, json.loads(reply.body)) == (status, {"error": error})
    assert reply.headers == {"content-type": "application/json"}
    for other in (400, 403, 404, 408, 413, 422, 500, 501, 502, 504, 529):
        kept = other if other in KEPT.get(kind, ()) else status
        assert DIALECT.build_error(Problem(kind, "m", status=other)).status == kept


@pytest.mark.parametrize(
    ("headers", "error", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, {}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, {}, 9),
        ({"retry-after": "0"}, {}, 0),
        ({"retry-after": "-1"}, {}, None),
        ({"retry-after": "1e9"}, {}, None),
        ({"retry-after": "9"}, {"message": "try again in 3s"}, 9),
        ({}, {"details": ["x", {"retryDelay": 5}, {"retryDelay": "x"}, {"retryDelay": "2.5s"}]}, 2.5),
        ({}, {"message": "try again in 250ms"}, 0.25),
        ({}, {"message": "try again in 3 s"}, None),
        ({"retry-after": "soon"}, {"message": "try again in 4s"}, 4),
    ],
)
def test_a_wait_is_read_from_its_first_source(headers: dict[str, str], error: Any, seconds: float | None):
    assert parse(429, error, headers).retry_after == seconds


def test_a_date_to_wait_for_is_a_wait_from_now():
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    wait = parse(429, {}, {"retry-after": date}).retry_after
    assert wait is not None
    assert 90 < wait <= 100


def test_a_wait_is_written_rounded_up_and_once():
    reply = DIALECT.build_error(Problem("rate_limit", "try again in 5s", retry_after=4.2))
    assert reply.headers == {"content-type": "application/json", "retry-after": "5", "retry-after-ms": "4200"}
    assert json.loads(reply.body)["error"]["message"] == "try again in 5s"
    assert DIALECT.build_error(Problem("rate_limit", "m", retry_after=0)).headers["retry-after"] == "0"
    late = DIALECT.build_error(Problem("overloaded", "busy", retry_after=3))
    assert (late.headers["retry-after"], json.loads(late.body)["error"]["message"]) == ("3", "busy")


def test_the_vendors_own_members_survive_and_nulls_give_way():
    detail = b'{"error":{"message":"old","type":"t","param":"p","code":null,"more":[1]}}'
    problem = Problem("internal", "m", where="/x", code="c", detail=detail, detail_dialect="chat")
    error = {"message": "m", "type": "t", "param": "p", "code": "c", "more": [1]}
    assert json.loads(DIALECT.build_error(problem).body) == {"error": error}
    flat = Problem("internal", "m", detail=b'{"message":"old","type":"t"}', detail_dialect="chat")
    assert json.loads(DIALECT.build_error(flat).body)["error"]["type"] == "server_error"
    text = Problem("internal", "m", detail=b'{"error":"old","type":"t"}', detail_dialect="chat")
    assert json.loads(DIALECT.build_error(text).body)["error"]["type"] == "t"


@pytest.mark.parametrize("word", ["message", "detail", "error_description"])
def test_a_message_is_found_under_any_of_its_field_names(word: str):
    assert parse(500, {word: "m"}).message == "m"
    assert DIALECT.parse_error(500, {}, json.dumps({word: {"a": 1}}).encode()).message == '{"a":1}'
    outer = json.dumps({"error": {"code": 1}, word: "outer"}).encode()
    assert DIALECT.parse_error(500, {}, outer).message == "outer"
