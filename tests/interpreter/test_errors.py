"""An upstream's problem in words the client may hear."""

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.errors import adapt_error_reply, adapt_problem

FACTS = {"where": "/w", "retry_after": 3.0, "detail": b"{}", "detail_dialect": "chat"}


def test_a_vendors_error_code_is_not_sent_to_another_vendors_client():
    problem = Problem("rate_limit", "slow down", status=430, code="insufficient_quota", **FACTS)
    assert adapt_problem(problem, "openai", "anthropic") == Problem("rate_limit", "slow down", status=430, **FACTS)
    assert adapt_problem(problem, "openai", "openai") is problem


@pytest.mark.parametrize("code", [None, "malformed_function_call", "unknown_finish"])
def test_a_problem_without_a_vendors_error_code_is_unchanged(code):
    problem = Problem("rate_limit", "slow down", code=code)
    assert adapt_problem(problem, "openai", "anthropic") is problem


@pytest.mark.parametrize(
    ("status", "kind", "result"),
    [
        (400, "invalid_request", 400),
        (401, "authentication", 401),
        (402, "billing", 402),
        (403, "permission", 403),
        (404, "not_found", 404),
        (409, "conflict", 409),
        (408, "timeout", 408),
        (413, "too_large", 413),
        (422, "invalid_request", 422),
        (429, "rate_limit", 429),
        (499, "cancelled", 499),
        (503, "overloaded", 503),
        (504, "timeout", 504),
        (529, "overloaded", 529),
        (500, "internal", 502),
        (418, "internal", 502),
    ],
)
def test_a_vague_problem_is_known_by_its_status_or_is_a_bad_gateway(status, kind, result):
    problem = Problem("internal", "oops", status=status, code="x", **FACTS)
    assert adapt_error_reply(problem, "openai", "google") == Problem(kind, "oops", status=result, **FACTS)


def test_a_problem_that_is_not_vague_keeps_kind_and_status():
    problem = Problem("billing", "pay", status=429, code="x")
    assert adapt_error_reply(problem, "openai", "google") == Problem("billing", "pay", status=429)


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages", "gemini"])
def test_temporary_errors_have_the_same_status_at_every_client_of_a_vendor(dialect):
    def render(kind, status):
        return dialect_named(dialect).build_error(Problem(kind, "m", status=status)).status

    overloaded = 529 if dialect == "messages" else 503
    statuses = [render("timeout", 408), render("timeout", 504), render("overloaded", 503), render("overloaded", 529)]
    assert statuses == [408, 504, overloaded, overloaded]
