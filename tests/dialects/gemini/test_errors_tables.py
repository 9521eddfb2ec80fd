"""Every row of the tables of errors and finishes, both ways, and the order in which they are asked."""

import json
from typing import Any

import pytest

from dialects.outline import outline
from dragoman.core.problems import KINDS, Problem
from dragoman.core.response import Finish, Usage
from dragoman.core.value import Extras
from dragoman.dialects.gemini import DIALECT
from dragoman.dialects.gemini.errors import read_frame
from dragoman.dialects.gemini.finish import read_block_reason, read_finish, read_usage, write_finish, write_usage
from dragoman.wire.json import encode

WORDS = {
    "INVALID_ARGUMENT": "invalid_request",
    "FAILED_PRECONDITION": "invalid_request",
    "OUT_OF_RANGE": "invalid_request",
    "UNAUTHENTICATED": "authentication",
    "PERMISSION_DENIED": "permission",
    "NOT_FOUND": "not_found",
    "ABORTED": "conflict",
    "ALREADY_EXISTS": "conflict",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "CANCELLED": "cancelled",
    "INTERNAL": "internal",
    "UNKNOWN": "internal",
    "DATA_LOSS": "internal",
    "UNIMPLEMENTED": "unsupported",
    "UNAVAILABLE": "overloaded",
    "DEADLINE_EXCEEDED": "timeout",
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
    501: "unsupported",
    502: "internal",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
    599: "internal",
}
WRITTEN = {
    "invalid_request": (400, "INVALID_ARGUMENT"),
    "unsupported": (400, "INVALID_ARGUMENT"),
    "context_length": (400, "INVALID_ARGUMENT"),
    "too_large": (413, "INVALID_ARGUMENT"),
    "authentication": (401, "UNAUTHENTICATED"),
    "billing": (429, "RESOURCE_EXHAUSTED"),
    "permission": (403, "PERMISSION_DENIED"),
    "policy": (403, "PERMISSION_DENIED"),
    "not_found": (404, "NOT_FOUND"),
    "conflict": (409, "ABORTED"),
    "rate_limit": (429, "RESOURCE_EXHAUSTED"),
    "overloaded": (503, "UNAVAILABLE"),
    "timeout": (504, "DEADLINE_EXCEEDED"),
    "cancelled": (499, "CANCELLED"),
    "internal": (500, "INTERNAL"),
    "malformed_reply": (502, "UNAVAILABLE"),
    "unreachable": (503, "UNAVAILABLE"),
}


def parse(status: int, headers: dict[str, str] | None = None, /, **error: Any) -> Problem:
    return DIALECT.parse_error(status, headers or {}, json.dumps({"error": error}).encode())


@pytest.mark.parametrize(("word", "kind"), WORDS.items())
def test_the_status_name_has_precedence_over_the_status(word: str, kind: str):
    problem = parse(503 if kind != "overloaded" else 500, status=word, message="m")
    assert (problem.kind, problem.code) == (kind, word)


@pytest.mark.parametrize(("status", "kind"), STATUSES.items())
def test_the_status_decides_the_kind_if_no_status_name_does(status: int, kind: str):
    assert (parse(status).kind, parse(status).message) == (
        kind,
        f"the upstream returned HTTP status {status} without an error message",
    )
    frame = read_frame(json.dumps({"error": {"code": status, "message": "m"}}).encode())
    assert (frame.kind, frame.status) == (kind, status)


def test_a_frame_without_a_status_is_an_internal_error():
    for code in (399, 600, "429", None):
        assert read_frame(json.dumps({"error": {"code": code}}).encode()).status == 500


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"details": [{"reason": "API_KEY_INVALID"}]}, "authentication"),
        (400, {"message": "API key not valid. Please"}, "authentication"),
        (400, {"message": "The input token count (9) exceeds 5"}, "context_length"),
        (400, {"message": "The input token count is 9"}, "invalid_request"),
        (400, {"message": "9 exceeds 5"}, "invalid_request"),
        (402, {"status": "UNAVAILABLE"}, "billing"),
        (400, {"status": "FAILED_PRECONDITION", "message": "Enable billing"}, "billing"),
        (400, {"status": "INVALID_ARGUMENT", "message": "Enable billing"}, "invalid_request"),
        (413, {"status": "UNAVAILABLE"}, "too_large"),
        (502, {"status": "UNAVAILABLE"}, "internal"),
        (429, {"details": [{"violations": [{"quotaId": "x"}, {"quotaId": "RequestsPerDay"}]}]}, "billing"),
        (503, {"details": [{"violations": [{"quotaId": "RequestsPerDay"}]}]}, "overloaded"),
        (429, {"details": ["x", {"violations": "x"}]}, "rate_limit"),
    ],
)
def test_details_and_message_decide_the_kind_first(status: int, error: Any, kind: str):
    assert parse(status, **error).kind == kind


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (b'{"error":{"message":"m","status":"W","details":[{"x":1},{"reason":"R"}]}}', "m", "R"),
        (b'[{"error":{"message":"m","status":"W"}}]', "m", "W"),
        (b'{"error":"m"}', "m", None),
        *(
            (body, "the upstream returned HTTP status 500 without an error message", None)
            for body in (b"[]", b"{", b"<html>", b"7", b"{}")
        ),
        (b'{"error":[1]}', "the upstream returned HTTP status 500 without an error message", None),
        (b'{"error":{"message":7,"status":8}}', "the upstream returned HTTP status 500 without an error message", None),
    ],
)
def test_a_body_of_any_shape_is_read_whole(body: bytes, message: str, code: str | None):
    assert vars(DIALECT.parse_error(500, {}, body)) == vars(
        Problem("internal", message, status=500, code=code, detail=body, detail_dialect="gemini")
    )


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("7", [{"retryDelay": "9s"}], 7),
        (" 7.5s ", [], 7.5),
        ("", [{"x": 1}, {"retryDelay": "9.25s"}, {"retryDelay": "1s"}], 9.25),
        ("soon", [{"retryDelay": "1.2.3s"}], None),
        ("\u0663", [{"retryDelay": 5}], None),
        ("-1", [], None),
    ],
)
def test_a_wait_is_read_from_its_first_source(header: str, details: Any, seconds: float | None):
    assert parse(429, {"retry-after": header}, details=details).retry_after == seconds


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_written_by_its_row(kind: Any):
    status, word = WRITTEN[kind]
    reply = DIALECT.build_error(Problem(kind, "m", where="/contents/0", retry_after=1.5, status=418))
    details = [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"},
        {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": "contents[0]", "description": "m"}],
        },
    ]
    assert (reply.status, reply.headers) == (
        status,
        {"content-type": "application/json; charset=UTF-8", "retry-after": "2"},
    )
    assert json.loads(reply.body) == {"error": {"code": status, "message": "m", "status": word, "details": details}}
    bare = DIALECT.build_error(Problem(kind, "m", status=402))
    assert json.loads(bare.body) == {"error": {"code": status, "message": "m", "status": word}}
    assert (bare.status, bare.headers) == (status, {"content-type": "application/json; charset=UTF-8"})


@pytest.mark.parametrize(
    ("given", "written", "word"),
    [(400, 400, "W"), (599, 599, "W"), (529, 503, "UNAVAILABLE"), (399, 503, "UNAVAILABLE"), (600, 503, "UNAVAILABLE")],
)
def test_the_vendors_own_status_names_are_kept(given: int, written: int, word: str):
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "9s"}
    detail = json.dumps({"error": {"message": "old", "status": "W", "details": [info, {"a": 1}, 7]}}).encode()
    problem = Problem(
        "overloaded", "m", status=given, retry_after=9, where="/x", detail=detail, detail_dialect="gemini"
    )
    error = {"code": written, "message": "m", "status": word, "details": [info, {"a": 1}]}
    assert json.loads(DIALECT.build_error(problem).body) == {"error": error}
    foreign = Problem("overloaded", "m", status=given, detail=detail, detail_dialect="chat")
    assert json.loads(DIALECT.build_error(foreign).body)["error"] == {
        "code": 503,
        "message": "m",
        "status": "UNAVAILABLE",
    }
    plain = Problem("overloaded", "m", status=500, detail=b'{"error":"x"}', detail_dialect="gemini")
    assert json.loads(DIALECT.build_error(plain).body)["error"]["status"] == "UNAVAILABLE"


FINISHES: dict[Any, str] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "LANGUAGE": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
    "MODEL_ARMOR": "filtered",
    "IMAGE_SAFETY": "filtered",
    "IMAGE_NEW": "filtered",
    "MALFORMED_FUNCTION_CALL": "malformed_call",
    "UNEXPECTED_TOOL_CALL": "malformed_call",
    "TOO_MANY_TOOL_CALLS": "malformed_call",
    "MALFORMED_RESPONSE": "malformed_call",
    "MISSING_THOUGHT_SIGNATURE": "malformed_call",
    "CONTINUATION": "paused",
    "OTHER": "other",
    "NEW": "other",
}


@pytest.mark.parametrize(("word", "reason"), FINISHES.items())
def test_every_finish_reason_survives_a_round_trip(word: str, reason: Any):
    assert read_finish(word, has_call=False) == Finish(reason, word)
    called = Finish("tool_calls" if reason in ("stop", "other") else reason, word)
    assert read_finish(word, has_call=True) == called
    assert write_finish(Finish(reason, word)) == write_finish(called) == word


def test_enums_by_number_are_read():
    words = ["FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "6"]
    assert [read_finish(number, has_call=False).raw for number in range(7)] == words
    assert read_finish(None, has_call=False) == Finish("other", "")


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("stop", "STOP"),
        ("tool_calls", "STOP"),
        ("length", "MAX_TOKENS"),
        ("filtered", "SAFETY"),
        ("refused", "SAFETY"),
        ("malformed_call", "MALFORMED_FUNCTION_CALL"),
        ("paused", "OTHER"),
        ("other", "OTHER"),
    ],
)
def test_every_finish_reason_is_rendered(reason: Any, word: str):
    assert write_finish(Finish(reason)) == write_finish(Finish(reason, "end_turn")) == word
    assert write_finish(Finish("length", "STOP")) == "MAX_TOKENS"
    assert write_finish(Finish("tool_calls", "MAX_TOKENS")) == "STOP"


@pytest.mark.parametrize(
    ("feedback", "word"),
    [
        ({"blockReason": "SAFETY"}, "SAFETY"),
        ({"block_reason": 2}, "2"),
        ({"blockReasonMessage": "m"}, "BLOCK_REASON_UNSPECIFIED"),
        ({"safetyRatings": []}, ""),
    ],
)
def test_a_blocked_prompt_has_its_reason(feedback: Any, word: str):
    assert read_block_reason(json.dumps(feedback).encode()) == word


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({}, "Usage"),
        ({"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}, "Usage input=1 output=2"),
        ({"promptTokenCount": 0, "totalTokenCount": 0}, "Usage input=0"),
        ({"candidatesTokenCount": 2, "totalTokenCount": 2}, "Usage output=2"),
        (
            {
                "promptTokenCount": 1,
                "toolUsePromptTokenCount": 2,
                "candidatesTokenCount": 3,
                "thoughtsTokenCount": 4,
                "totalTokenCount": 10,
                "cachedContentTokenCount": 1,
            },
            "Usage input=3 output=7 cached=1 reasoning=4 extras=gemini{'/toolUsePromptTokenCount': '2'}",
        ),
        ({"promptTokenCount": 1, "totalTokenCount": 9}, "Usage input=1 extras=gemini{'/totalTokenCount': '9'}"),
        (
            {"promptTokenCount": 1, "totalTokenCount": 1, "trafficType": "X"},
            "Usage input=1 extras=gemini{'/trafficType': '\"X\"'}",
        ),
    ],
)
def test_usage_is_read_whole_and_written_again(given: Any, read: str):
    usage = read_usage(json.dumps(given).encode())
    assert outline(usage) == f"{read}\n"
    assert json.loads(encode(write_usage(usage))) == given


def test_foreign_usage_is_written_with_its_sum():
    usage = Usage(input=3, output=1, reasoning=2, extras=Extras("chat", {"/a": b"1"}))
    assert write_usage(usage) == {
        "promptTokenCount": 3,
        "candidatesTokenCount": 0,
        "totalTokenCount": 4,
        "thoughtsTokenCount": 2,
    }
    assert write_usage(Usage(output=2)) == {"candidatesTokenCount": 2, "totalTokenCount": 2}
