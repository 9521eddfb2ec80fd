"""Every row of the tables of errors, both ways, and the order in which they are asked."""

import json
from typing import Any

import pytest

from dialects.outline import short
from dragoman.core.problems import KINDS, Problem
from dragoman.dialects.responses import DIALECT
from dragoman.dialects.responses.errors import read_error

CODES = {
    "context_length_exceeded": "context_length",
    "string_above_max_length": "invalid_request",
    "invalid_prompt": "policy",
    "invalid_api_key": "authentication",
    "insufficient_quota": "billing",
    "billing_hard_limit_reached": "billing",
    "credit_balance_exhausted": "billing",
    "usage_not_included": "billing",
    "usage_limit_reached": "billing",
    "rate_limit_exceeded": "rate_limit",
    "slow_down": "overloaded",
    "server_is_overloaded": "overloaded",
    "server_overloaded": "overloaded",
    "internal_error": "internal",
    "vector_store_timeout": "timeout",
    "model_not_found": "not_found",
    "previous_response_not_found": "not_found",
    "not_found": "not_found",
    "DeploymentNotFound": "not_found",
    "unsupported_country_region_territory": "permission",
    "misalignment_policy_violation": "policy",
    "bio_policy": "policy",
    "cyber_policy": "policy",
    "content_filter": "policy",
    "image_content_policy_violation": "policy",
    "data_residency_mismatch": "permission",
    "malformed_function_call": "malformed_reply",
    "unsupported_parameter": "unsupported",
    "unsupported_value": "unsupported",
}
TYPES = {
    "authentication_error": "authentication",
    "permission_error": "permission",
    "insufficient_quota": "billing",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "tokens": "rate_limit",
    "requests": "rate_limit",
    "not_found_error": "not_found",
    "overloaded_error": "overloaded",
    "service_unavailable_error": "overloaded",
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
    429: "rate_limit",
    499: "cancelled",
    500: "internal",
    502: "internal",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
    530: "internal",
}
WRITTEN = {
    "invalid_request": (400, "invalid_request_error", None),
    "unsupported": (400, "invalid_request_error", "unsupported_value"),
    "context_length": (400, "invalid_request_error", "context_length_exceeded"),
    "too_large": (413, "invalid_request_error", None),
    "authentication": (401, "invalid_request_error", "invalid_api_key"),
    "billing": (429, "insufficient_quota", "insufficient_quota"),
    "permission": (403, "invalid_request_error", None),
    "not_found": (404, "invalid_request_error", "not_found"),
    "conflict": (409, "invalid_request_error", None),
    "rate_limit": (429, "rate_limit_error", "rate_limit_exceeded"),
    "overloaded": (503, "server_error", "server_is_overloaded"),
    "timeout": (504, "server_error", "server_error"),
    "cancelled": (499, "server_error", "server_error"),
    "internal": (500, "server_error", "server_error"),
    "malformed_reply": (502, "server_error", "server_error"),
    "unreachable": (502, "server_error", "server_error"),
    "policy": (403, "invalid_request_error", "invalid_prompt"),
}


def parse(status: int, error: Any, headers: dict[str, str] | None = None) -> Problem:
    return DIALECT.parse_error(status, headers or {}, json.dumps({"error": error}).encode())


@pytest.mark.parametrize(("code", "kind"), CODES.items())
def test_a_code_decides_against_type_and_status(code: str, kind: str):
    problem = parse(409, {"message": "m", "type": "timeout_error", "code": code})
    assert (problem.kind, problem.code, problem.status) == (kind, code, 409)
    assert read_error({"code": code, "type": "timeout_error"}, None).kind == kind


@pytest.mark.parametrize(("word", "kind"), TYPES.items())
def test_a_type_decides_against_the_status(word: str, kind: str):
    assert parse(409, {"message": "m", "type": word, "code": "other"}).kind == kind
    if word not in CODES:
        assert read_error({"code": word}, None).kind == kind


@pytest.mark.parametrize(("status", "kind"), STATUSES.items())
def test_the_status_decides_the_kind_if_no_code_does(status: int, kind: str):
    problem = parse(status, {"message": "m", "type": "invalid_request_error"})
    assert (problem.kind, problem.status) == (kind, status)
    assert parse(status, {"message": "m"}).kind == kind
    assert DIALECT.parse_error(status, {}, b"<html>").kind == kind
    served = "internal" if kind == "invalid_request" else kind
    assert parse(status, {"message": "m", "type": "server_error"}).kind == served
    assert parse(status, {"message": "m", "code": "server_error"}).kind == served


def test_without_a_status_only_codes_decide_the_kind():
    assert read_error({"type": "invalid_request_error", "message": "m"}, None).kind == "invalid_request"
    assert read_error({"type": "server_error", "message": "m"}, None).kind == "internal"
    assert read_error({"message": "m"}, None).kind == "internal"


@pytest.mark.parametrize(
    "message",
    ["Context length", "the context window", "Maximum context of 5", "prompt is too long", "too many input tokens"],
)
def test_a_message_about_length_decides_where_the_kind_allows_it(message: str):
    kinds = {status: parse(status, {"message": message}).kind for status in (400, 413, 404, 500)}
    assert kinds == {400: "context_length", 413: "context_length", 404: "not_found", 500: "internal"}


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (
            b'{"error":{"message":"m","param":"input[0].content","code":"c","type":"t"}}',
            "kind='invalid_request', message='m', status=418, where='/input/0/content', code='c'",
        ),
        (b'{"error":{"code":7}}', "kind='invalid_request', message='7', status=418, code='7'"),
        (b'{"error":{"type":"t"}}', "kind='invalid_request', message='t', status=418"),
        (b'{"error":{}}', "kind='invalid_request', message='the upstream returned an error', status=418"),
        (b'{"error":"m","code":"slow_down"}', "kind='overloaded', message='m', status=418, code='slow_down'"),
        (b'{"detail":"m"}', "kind='invalid_request', message='m', status=418"),
        (b'{"detail":{"message":"m"}}', "kind='invalid_request', message='m', status=418"),
        (b'[{"error":{"message":"m"}}]', "kind='invalid_request', message='m', status=418"),
        (b'{"message":"m"}', "kind='invalid_request', message='m', status=418"),
        (b'{"error":{"message":"m","param":7}}', "kind='invalid_request', message='m', status=418"),
        *(
            (
                body,
                "kind='invalid_request', message='the upstream returned HTTP status 418 without an error message', status=418",
            )
            for body in (b"[]", b"{}", b"<html>", b'"x"', b"null", b"{")
        ),
    ],
)
def test_a_body_of_any_shape_is_read_whole(body: bytes, read: str):
    problem = DIALECT.parse_error(418, {}, body)
    assert short(problem) == f"Problem({read}, detail={body!r}, detail_dialect='responses')"


def test_an_empty_body_has_no_detail():
    assert DIALECT.parse_error(500, {}, b"").detail is None


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, "m", 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, "try again in 3s", 9),
        ({"retry-after": "x"}, "Try again in 2.5s", 2.5),
        ({}, "try again in 250MS", 0.25),
        ({}, "m", None),
    ],
)
def test_a_wait_is_read_from_its_first_source(headers: dict[str, str], message: str, seconds: float | None):
    assert parse(429, {"message": message}, headers).retry_after == seconds


def test_a_retry_delay_is_parsed_with_an_unparsable_body():
    assert DIALECT.parse_error(429, {"retry-after": "9"}, b"<html>").retry_after == 9


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_written_by_its_row(kind: Any):
    status, word, code = WRITTEN[kind]
    reply = DIALECT.build_error(Problem(kind, "m", where="/tools/0/a~1b", code="unknown"))
    error = {"message": "m", "type": word, "param": "tools[0].a/b", "code": code}
    assert (reply.status, json.loads(reply.body)) == (status, {"error": error})
    assert reply.headers == {"content-type": "application/json"}
    known = DIALECT.build_error(Problem(kind, "m", code="slow_down", status=499))
    assert json.loads(known.body)["error"]["code"] == "slow_down"
    assert known.status == (499 if kind == "invalid_request" else status)
    for other in (399, 500):
        assert DIALECT.build_error(Problem(kind, "m", status=other)).status == status


def test_a_retry_delay_is_once_in_the_header_and_once_in_the_message():
    reply = DIALECT.build_error(Problem("rate_limit", "Slow. ", retry_after=4.5))
    assert reply.headers == {"content-type": "application/json", "retry-after": "5", "retry-after-ms": "4500"}
    assert json.loads(reply.body)["error"]["message"] == "Slow. Please try again in 4.5s."
    error_reply = DIALECT.build_error(Problem("rate_limit", "try again in 5s", retry_after=4))
    assert json.loads(error_reply.body)["error"]["message"] == "try again in 5s"
    late = DIALECT.build_error(Problem("overloaded", "busy", retry_after=3))
    assert (late.headers["retry-after"], json.loads(late.body)["error"]["message"]) == ("3", "busy")


@pytest.mark.parametrize(
    ("detail", "status", "error"),
    [
        (
            b'{"error":{"message":"old","type":"t","param":null,"code":null,"more":[1]}}',
            418,
            {"message": "old", "type": "t", "param": None, "code": "server_error", "more": [1]},
        ),
        (b'{"error":{}}', 500, {"message": "m", "type": "server_error", "param": "x", "code": "server_error"}),
        (b'{"error":"x"}', 500, {"message": "m", "type": "server_error", "param": "x", "code": "server_error"}),
        (b'{"a":1}', 500, {"message": "m", "type": "server_error", "param": "x", "code": "server_error"}),
    ],
)
def test_the_vendors_own_codes_are_kept(detail: bytes, status: int, error: Any):
    problem = Problem("internal", "m", status=418, where="/x", detail=detail, detail_dialect="responses")
    reply = DIALECT.build_error(problem)
    assert (reply.status, json.loads(reply.body)) == (status, {"error": error})
    foreign = Problem("internal", "m", status=418, where="/x", detail=detail, detail_dialect="chat")
    assert json.loads(DIALECT.build_error(foreign).body)["error"]["type"] == "server_error"
