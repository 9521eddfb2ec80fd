import json

import pytest

from dragoman.core.problems import KINDS, Problem
from dragoman.dialects.responses.errors import build_error, parse_error
from shelf import exchanges, needs_shelf


def envelope(**members):
    return json.dumps(
        {"error": {"message": "m", "type": "invalid_request_error", "param": None, "code": None, **members}}
    ).encode()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, envelope(), "invalid_request"),
        (400, envelope(code="context_length_exceeded"), "context_length"),
        (400, envelope(message="This model's maximum context length is 8192 tokens"), "context_length"),
        (400, envelope(code="unsupported_value"), "unsupported"),
        (401, envelope(code="invalid_api_key"), "authentication"),
        (403, envelope(code="misalignment_policy_violation"), "policy"),
        (403, envelope(), "permission"),
        (404, envelope(code="model_not_found"), "not_found"),
        (409, envelope(), "conflict"),
        (413, envelope(), "too_large"),
        (429, envelope(type="insufficient_quota", code="insufficient_quota"), "billing"),
        (429, envelope(type="tokens", code="rate_limit_exceeded"), "rate_limit"),
        (429, envelope(type="requests"), "rate_limit"),
        (500, envelope(type="server_error"), "internal"),
        (503, envelope(type="server_error"), "overloaded"),
        (503, envelope(type="server_error", code="slow_down"), "overloaded"),
        (504, b"", "timeout"),
        (502, b"<html>Bad Gateway</html>", "internal"),
        (500, b"null", "internal"),
        (418, b"[]", "invalid_request"),
        (400, b"[" + envelope(code="invalid_api_key") + b"]", "authentication"),
        (401, b'{"detail": "Could not parse your authentication token."}', "authentication"),
        (400, b'{"code": "invalid-argument", "error": "Incorrect API key"}', "invalid_request"),
        (404, b'{"error": {"code": 404, "message": "Resource not found"}}', "not_found"),
        (500, b"\xff\xfe", "internal"),
        (500, b"[" * 5000, "internal"),
    ],
)
def test_an_error_is_known_by_code_then_type_then_status(status, body, kind):
    problem = parse_error(status, {}, body)
    assert problem.kind == kind
    assert problem.status == status
    assert problem.message


@needs_shelf
def test_every_recorded_error_keeps_its_message():
    rows = [row for row in exchanges("responses") if row["status"] != 200 and isinstance(row.get("response"), dict)]
    assert len(rows) > 10
    for row in rows:
        body = json.dumps(row["response"]).encode()
        problem = parse_error(row["status"], {}, body)
        error = row["response"].get("error")
        reply = build_error(problem)
        assert reply.status == row["status"]
        if isinstance(error, dict):
            result = json.loads(reply.body)["error"]
            assert {name: result[name] for name, value in error.items() if value is not None} == {
                name: value for name, value in error.items() if value is not None
            }


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after": "7"}, "m", 7.0),
        ({"retry-after-ms": "250"}, "m", 0.25),
        ({"retry-after": "soon"}, "m", None),
        ({}, "Please try again in 11.05s. Visit", 11.05),
        ({}, "Please try again in 70ms.", 0.07),
    ],
)
def test_the_delay_is_found(headers, message, seconds):
    problem = parse_error(429, headers, envelope(message=message, code="rate_limit_exceeded"))
    assert problem.retry_after == seconds


@pytest.mark.parametrize(
    ("kind", "status", "word", "code"),
    [
        ("invalid_request", 400, "invalid_request_error", None),
        ("context_length", 400, "invalid_request_error", "context_length_exceeded"),
        ("too_large", 413, "invalid_request_error", None),
        ("authentication", 401, "invalid_request_error", "invalid_api_key"),
        ("billing", 429, "insufficient_quota", "insufficient_quota"),
        ("rate_limit", 429, "rate_limit_error", "rate_limit_exceeded"),
        ("overloaded", 503, "server_error", "server_is_overloaded"),
        ("timeout", 504, "server_error", "server_error"),
        ("internal", 500, "server_error", "server_error"),
        ("malformed_reply", 502, "server_error", "server_error"),
        ("policy", 403, "invalid_request_error", "invalid_prompt"),
    ],
)
def test_a_problem_is_written_with_the_status_and_code_clients_know(kind, status, word, code):
    reply = build_error(Problem(kind, "words", status=529))
    assert reply.status == status
    assert json.loads(reply.body) == {"error": {"message": "words", "type": word, "param": None, "code": code}}


def test_every_kind_can_be_written_and_read_again():
    for kind in KINDS:
        reply = build_error(Problem(kind, "words"))
        # To whoever reads it, a reply that nobody could read, or an upstream out of reach, is a server that failed.
        result = "internal" if kind in {"malformed_reply", "unreachable"} else kind
        assert parse_error(reply.status, reply.headers, reply.body).kind == result


@pytest.mark.parametrize(
    ("kind", "given", "status"),
    [("internal", 502, 502), ("internal", 500, 500), ("internal", 529, 500), ("overloaded", 502, 503)],
)
def test_a_bad_gateway_stays_one(kind, given, status):
    assert build_error(Problem(kind, "words", status=given)).status == status


def test_a_rate_limit_has_its_delay_in_the_wording_that_codex_parses():
    reply = build_error(Problem("rate_limit", "Too fast.", retry_after=2.5))
    assert (reply.headers["retry-after"], reply.headers["retry-after-ms"]) == ("3", "2500")
    assert json.loads(reply.body)["error"]["message"] == "Too fast. Please try again in 2.5s."


def test_the_place_of_a_fault_is_its_param():
    reply = build_error(Problem("invalid_request", "bad", where="/tools/0/parameters"))
    assert json.loads(reply.body)["error"]["param"] == "tools[0].parameters"
    assert parse_error(400, {}, reply.body).where == "/tools/0/parameters"


def test_another_dialects_detail_stays_inside():
    problem = Problem(
        "overloaded", "busy", code="overloaded_error", detail=b'{"error":{"secret":1}}', detail_dialect="messages"
    )
    assert json.loads(build_error(problem).body) == {
        "error": {"message": "busy", "type": "server_error", "param": None, "code": "server_is_overloaded"}
    }
