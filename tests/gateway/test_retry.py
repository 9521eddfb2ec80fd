"""Which errors are retried, and which go to the next upstream."""

import pytest

from dragoman.core.problems import Problem
from dragoman.gateway.retry import RetryBudget, may_succeed_elsewhere, may_succeed_later

CASES = [
    (Problem("rate_limit", ""), True, True),
    (Problem("overloaded", ""), True, True),
    (Problem("unreachable", ""), True, True),
    (Problem("rate_limit", "", code="insufficient_quota"), False, True),
    (Problem("internal", "", status=502, code="credentials"), False, True),
    (Problem("internal", "", status=502, code="untrusted"), False, True),
    (Problem("billing", ""), False, True),
    (Problem("not_found", "", code="model_not_found"), False, True),
    (Problem("invalid_request", ""), False, False),
    (Problem("context_length", ""), False, False),
    (Problem("policy", ""), False, False),
]


@pytest.mark.parametrize(("problem", "later", "elsewhere"), CASES)
def test_some_problems_are_one_upstreams_and_some_of_them_pass(problem, later, elsewhere):
    assert (may_succeed_later(problem), may_succeed_elsewhere(problem)) == (later, elsewhere)


def test_some_requests_may_be_retried_at_once_and_then_one_in_five():
    budget = RetryBudget()
    assert [budget.spend() for _ in range(21)] == [True] * 20 + [False]
    budget.requests += 4
    assert not budget.spend()
    budget.requests += 1
    assert [budget.spend(), budget.spend()] == [True, False]
    budget.requests += 1000
    assert [budget.spend() for _ in range(21)] == [True] * 20 + [False]
