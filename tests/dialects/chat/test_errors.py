"""Errors of OpenAI Chat Completions, read and written."""

import json
from typing import Any

import pytest

from dragoman.core.problems import KINDS, Problem
from dragoman.dialects.chat.errors import build_error, parse_error
from shelf import needs_shelf


def parse(status: int, error: Any, **headers: str) -> Problem:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return parse_error(status, named, json.dumps(error).encode())


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"type": "invalid_request_error", "code": None}, "invalid_request"),
        (400, {"type": "invalid_request_error", "code": "context_length_exceeded"}, "context_length"),
        (400, {"message": "This model's maximum context length is 8192 tokens."}, "context_length"),
        (401, {"type": "invalid_request_error", "code": "invalid_api_key"}, "authentication"),
        (402, {"code": 402}, "billing"),
        (403, {"code": "unsupported_country_region_territory"}, "permission"),
        (403, {"code": "misalignment_policy_violation"}, "policy"),
        (400, {"code": "content_filter"}, "policy"),
        (404, {"code": "model_not_found"}, "not_found"),
        (409, {}, "conflict"),
        (413, {}, "too_large"),
        (422, {}, "invalid_request"),
        (429, {"type": "tokens", "code": "rate_limit_exceeded"}, "rate_limit"),
        (429, {"type": "insufficient_quota", "code": "insufficient_quota"}, "billing"),
        (429, {"code": "credit_balance_exhausted"}, "billing"),
        (429, {"code": "project_spend_limit_exceeded"}, "billing"),
        (500, {"type": "server_error"}, "internal"),
        (502, {}, "internal"),
        (503, {"type": "server_error"}, "overloaded"),
        (529, {}, "overloaded"),
        (504, {}, "timeout"),
        (408, {}, "timeout"),
    ],
)
def test_the_code_decides_then_the_type_then_the_status(status: int, error: Any, kind: str):
    problem = parse(status, {"error": {"message": "m", **error}})
    assert (problem.kind, problem.status) == (kind, status)


@needs_shelf
def test_every_recorded_error_keeps_its_message(exchanges: list[Any]):
    seen = 0
    for row in exchanges:
        if row["status"] != 200:
            problem = parse(row["status"], row["response"])
            output = row["response"].get("error", row["response"])
            assert problem.message == output["message"]
            assert build_error(problem).status == row["status"]
            again = json.loads(build_error(problem).body)["error"]
            result = {name: value for name, value in output.items() if value is not None}
            assert result.items() <= again.items() or "error" not in row["response"]
            seen += 1
    assert seen == 34


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>gateway secrets</html>", "the upstream returned HTTP status 502 without an error message"),
        (b"", "the upstream returned HTTP status 502 without an error message"),
        (b"null", "the upstream returned HTTP status 502 without an error message"),
        (b"[]", "the upstream returned HTTP status 502 without an error message"),
        (b'"oops"', "the upstream returned HTTP status 502 without an error message"),
        (b'[{"error":{"message":"wrapped"}}]', "wrapped"),
        (b'{"error":"only text"}', "only text"),
        (b'{"object":"error","message":"flat","code":40303}', "flat"),
        (b'{"detail":[{"loc":["body"],"msg":"missing"}]}', '[{"loc":["body"],"msg":"missing"}]'),
        (b'{"error":{"message":{"why":"nested"}}}', '{"why":"nested"}'),
        (b'{"error":{"code":[1]}}', "the upstream returned HTTP status 502 without an error message"),
        (b"\xff\xfe", "the upstream returned HTTP status 502 without an error message"),
    ],
)
def test_a_body_of_any_kind_is_read(body: bytes, message: str):
    assert parse_error(502, {}, body).message == message


def test_the_retry_delay_is_parsed_wherever_it_is():
    assert parse(429, {}, retry_after="7").retry_after == 7
    assert parse(429, {}, retry_after_ms="1500").retry_after == 1.5
    assert parse(429, {"error": {"message": "Please try again in 11.05s."}}).retry_after == 11.05
    assert parse(429, {"error": {"message": "Please try again in 20ms."}}).retry_after == 0.02
    assert (
        parse(429, [{"error": {"message": "m", "details": [{"@type": "…RetryInfo", "retryDelay": "21s"}]}}]).retry_after
        == 21
    )
    assert parse(429, {}, retry_after="Wed, 21 Oct 2015 07:28:00 GMT").retry_after == 0
    assert parse(429, {}, retry_after="soon").retry_after is None
    assert parse(429, {}, retry_after="inf").retry_after is None


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_an_envelope_the_official_sdk_understands(kind: Any, ask: Any):
    import openai

    reply = build_error(Problem(kind, "what went wrong", where="/messages/0/content"))
    with pytest.raises(openai.APIStatusError) as caught:
        ask(reply.body, status=reply.status, headers=reply.headers)
    error = caught.value
    assert "what went wrong" in error.message
    assert (error.status_code, error.param) == (reply.status, "messages[0].content")
    assert error.type


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("overloaded", 503, "server_is_overloaded"),
        ("billing", 429, "insufficient_quota"),
        ("rate_limit", 429, "rate_limit_exceeded"),
        ("malformed_reply", 502, "malformed_reply"),
        ("context_length", 400, "context_length_exceeded"),
        ("timeout", 504, "timeout"),
    ],
)
def test_foreign_statuses_become_ones_that_this_sdk_handles(kind: Any, status: int, code: str):
    reply = build_error(Problem(kind, "m", status=529))
    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (status, code)


def test_the_retry_delay_is_in_the_header_and_in_the_message():
    reply = build_error(Problem("rate_limit", "Slow down.", retry_after=1.5))
    assert reply.headers["retry-after"] == "2"
    assert json.loads(reply.body)["error"]["message"] == "Slow down. Please try again in 1.5s."


def test_a_message_that_was_changed_is_not_taken_back_from_the_detail():
    problem = Problem(
        "internal", "redacted", detail=b'{"error":{"message":"secret","code":"c"}}', detail_dialect="chat"
    )
    error = json.loads(build_error(problem).body)["error"]
    assert (error["message"], error["code"]) == ("redacted", "c")


def test_foreign_error_details_are_not_sent():
    problem = Problem("internal", "m", detail=b'{"error":{"status":"INTERNAL"}}', detail_dialect="gemini")
    assert "status" not in json.loads(build_error(problem).body)["error"]
