"""What does better later, and what elsewhere."""

import pytest

from dragoman.core.problems import Problem
from dragoman.gateway.retry import may_pass_elsewhere, may_pass_later

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
    assert (may_pass_later(problem), may_pass_elsewhere(problem)) == (later, elsewhere)
