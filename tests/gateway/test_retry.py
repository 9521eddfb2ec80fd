"""Which errors are retried, and which go to the next upstream."""

import asyncio

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.context import RequestContext, build_program_context
from dragoman.gateway.record import Record
from dragoman.gateway.retry import RetryBudget, RetryLoop, RetryPolicy, may_succeed_elsewhere, may_succeed_later
from dragoman.gateway.router import Target
from dragoman.http.exchange import Exchange
from dragoman.http.message import Request as HttpRequest
from dragoman.upstreams.openai import OpenAI

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


TARGETS = [Target(OpenAI(name, "http://localhost", "", "test"), "m") for name in ("first", "second")]
FINAL, PASSING = Problem("invalid_request", "no"), Problem("overloaded", "later")


def run_loop(errors, context=None):
    """Call targets that fail with these errors in turn; return the names of those that were called."""
    called, left = [], list(errors)

    async def attempt(target):
        called.append(target.upstream.name)
        if left:
            raise left.pop(0)
        return called

    loop = RetryLoop(RetryPolicy(retries=1, first_wait=0.0))
    asyncio.run(loop.run(TARGETS, attempt, context or build_program_context()))
    return called


def test_each_target_is_called_in_turn_and_then_all_again():
    assert run_loop([]) == ["first"]
    assert run_loop([PASSING]) == ["first", "second"]
    assert run_loop([PASSING, PASSING]) == ["first", "second", "first"]


def test_the_last_error_is_raised_if_no_retry_is_left():
    with pytest.raises(Problem, match="later"):
        run_loop([PASSING] * 4)


def test_an_error_of_the_request_is_final():
    with pytest.raises(Problem, match="no"):
        run_loop([FINAL])


def test_an_error_after_the_response_has_started_is_final():
    exchange = Exchange(HttpRequest("POST", "/", ()), asyncio.Transport(), keeps_alive=False, supports_chunks=False)
    context = RequestContext(ClientRequest(dialect="chat", call=Call(b"{}")), Record(), exchange)
    assert run_loop([PASSING], context) == ["first", "second"]
    exchange.started = True
    with pytest.raises(Problem, match="later"):
        run_loop([PASSING], context)
