"""Every row of the tables of errors, both ways, and the order in which they are asked."""

import json
from typing import Any

import pytest

from dialects.outline import short
from dragoman.core.problems import KINDS, Problem
from dragoman.dialects.messages import DIALECT
from dragoman.dialects.messages.errors import read_error_event

TYPES = {
    "invalid_request_error": ("invalid_request", 400),
    "authentication_error": ("authentication", 401),
    "billing_error": ("billing", 402),
    "permission_error": ("permission", 403),
    "not_found_error": ("not_found", 404),
    "conflict_error": ("conflict", 409),
    "request_too_large": ("too_large", 413),
    "rate_limit_error": ("rate_limit", 429),
    "api_error": ("internal", 500),
    "timeout_error": ("timeout", 504),
    "overloaded_error": ("overloaded", 529),
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
    502: "internal",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
WRITTEN = {
    "invalid_request": (400, "invalid_request_error"),
    "unsupported": (400, "invalid_request_error"),
    "context_length": (400, "invalid_request_error"),
    "too_large": (413, "request_too_large"),
    "authentication": (401, "authentication_error"),
    "billing": (402, "billing_error"),
    "permission": (403, "permission_error"),
    "not_found": (404, "not_found_error"),
    "conflict": (409, "conflict_error"),
    "rate_limit": (429, "rate_limit_error"),
    "overloaded": (529, "overloaded_error"),
    "timeout": (504, "timeout_error"),
    "cancelled": (499, "api_error"),
    "internal": (500, "api_error"),
    "malformed_reply": (502, "api_error"),
    "unreachable": (502, "api_error"),
    "policy": (403, "permission_error"),
}


def parse(status: int, error: Any, **headers: str) -> Problem:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return DIALECT.parse_error(status, named, json.dumps({"type": "error", "error": error}).encode())


@pytest.mark.parametrize(("word", "row"), TYPES.items())
def test_a_type_decides_against_the_status(word: str, row: tuple[str, int]):
    problem = parse(418, {"type": word, "message": "m"})
    assert (problem.kind, problem.status) == (row[0], 418)
    result = read_error_event(json.dumps({"type": "error", "error": {"type": word, "message": "m"}}).encode())
    assert (result.kind, result.status) == row


@pytest.mark.parametrize(("status", "kind"), STATUSES.items())
def test_a_status_decides_where_no_type_does(status: int, kind: str):
    for error in ({"type": "never heard of", "message": "m"}, {"message": "m"}, "m"):
        assert (parse(status, error).kind, parse(status, error).message) == (kind, "m")


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Prompt is too long: 9 > 5", "context_length"),
        ("input and max_tokens exceed context limit", "context_length"),
        ("it exceeds the context window", "context_length"),
        ("Your credit balance is too low", "billing"),
        ("other", "invalid_request"),
    ],
)
def test_the_message_decides_only_among_invalid_requests(message: str, kind: str):
    assert parse(400, {"type": "invalid_request_error", "message": message}).kind == kind
    assert parse(400, {"type": "api_error", "message": message}).kind == "internal"


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (
            b'{"type":"error","error":{"type":"api_error","message":"m","details":{"error_code":"c"}}}',
            "kind='internal', message='m', status=418, code='c'",
        ),
        (b'[{"error":{"message":"m"}}]', "kind='invalid_request', message='m', status=418"),
        (b'{"message":"m","type":"api_error"}', "kind='internal', message='m', status=418"),
        (b'{"error":{"message":"m","details":{"error_code":7}}}', "kind='invalid_request', message='m', status=418"),
        (b'{"error":{"message":"m","details":"x"}}', "kind='invalid_request', message='m', status=418"),
        (b" plain words ", "kind='invalid_request', message='plain words', status=418"),
        (b"x" * 600, f"kind='invalid_request', message='{'x' * 500}', status=418"),
        *(
            (
                body,
                "kind='invalid_request', message='the upstream returned HTTP status 418 without an error message', status=418",
            )
            for body in (b"<html>", b"{}", b"[]", b"[7]", b"{", b"\xff", b"", b'{"error":{"message":7}}')
        ),
    ],
)
def test_a_body_of_any_shape_is_read_whole(body: bytes, read: str):
    problem = DIALECT.parse_error(418, {}, body)
    assert short(problem) == f"Problem({read}, detail={body!r}, detail_dialect='messages')"


def test_an_event_is_read_whole():
    data = b'{"type":"error","error":{"type":"overloaded_error","message":"m","details":{"error_code":"c"}}}'
    assert short(read_error_event(data)) == (
        f"Problem(kind='overloaded', message='m', status=529, code='c', detail={data!r}, detail_dialect='messages')"
    )
    bare = read_error_event(b"{}")
    assert (bare.kind, bare.status, bare.message) == (
        "internal",
        500,
        "the upstream reported an error without a message",
    )


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after_ms": "x", "retry_after": "9"}, 9),
        ({"retry_after_ms": "-1", "retry_after": "9"}, 9),
        ({"retry_after_ms": "inf", "retry_after": "0"}, 0),
        ({"retry_after": "nan"}, None),
        ({}, None),
    ],
)
def test_a_wait_is_read_from_its_first_header(headers: dict[str, str], seconds: float | None):
    assert parse(429, {"message": "m"}, **headers).retry_after == seconds


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_written_by_its_row(kind: Any):
    status, word = WRITTEN[kind]
    message = "prompt is too long: m" if kind == "context_length" else "m"
    reply = DIALECT.build_error(Problem(kind, "m", code="c", retry_after=1.2))
    error = {"type": word, "message": message, "details": {"error_code": "c"}}
    assert (reply.status, json.loads(reply.body)) == (status, {"type": "error", "error": error, "request_id": None})
    assert reply.headers == {"content-type": "application/json", "retry-after": "2"}
    kept = {"invalid_request": range(400, 500), "internal": range(500, 600)}.get(kind, range(0))
    for other in (399, 400, 499, 500, 599, 600):
        plain = DIALECT.build_error(Problem(kind, "exceed context limit", status=other))
        assert plain.status == (other if other in kept else status)
        assert json.loads(plain.body)["error"] == {"type": word, "message": "exceed context limit"}
        assert plain.headers == {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("detail", "error", "request_id"),
    [
        (
            b'{"error":{"type":"old","message":"old","details":{"a":1},"more":[1]},"request_id":"req"}',
            {"type": "api_error", "message": "m", "details": {"a": 1}, "more": [1]},
            "req",
        ),
        (b'{"error":{"type":"old"}}', {"type": "api_error", "message": "m", "details": {"error_code": "c"}}, None),
        (
            b'{"error":"x","request_id":"req"}',
            {"type": "api_error", "message": "m", "details": {"error_code": "c"}},
            None,
        ),
        (b'{"a":1}', {"type": "api_error", "message": "m", "details": {"error_code": "c"}}, None),
    ],
)
def test_the_vendors_own_members_survive(detail: bytes, error: Any, request_id: Any):
    problem = Problem("internal", "m", code="c", detail=detail, detail_dialect="messages")
    assert json.loads(DIALECT.build_error(problem).body) == {"type": "error", "error": error, "request_id": request_id}
    foreign = Problem("internal", "m", detail=detail, detail_dialect="chat")
    assert json.loads(DIALECT.build_error(foreign).body)["error"] == {"type": "api_error", "message": "m"}
