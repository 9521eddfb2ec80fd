"""A completed exchange keeps only a short record in memory, never message contents."""

import gc
import weakref

import httpx2
import pytest

from dragoman.core.problems import Problem
from dragoman.gateway.record import Observers, Record
from server.processes import until


class Held:
    """Something a frame holds on to."""


def _fail() -> tuple[Exception, "weakref.ref[Held]"]:
    held = Held()
    try:
        try:
            int("x")
        except ValueError:
            raise Problem("not_found", "x" * 10_000, code="gone", detail=b"y" * 10_000) from None
    except Problem as problem:
        return problem, weakref.ref(held)


def test_an_error_is_kept_as_its_message_after_all_observers_were_called():
    seen: list[int] = []
    problem, held = _fail()
    record = Record(problem=problem, crash=problem, model="m" * 10_000)
    Observers(on_end=[lambda result: seen.append(len(result.problem.message))]).end(record)
    del problem
    gc.collect()
    assert seen == [10_000]
    assert held() is None
    assert (record.problem.kind, record.problem.code, record.problem.detail) == ("not_found", "gone", None)
    assert record.crash is None
    assert max(len(record.problem.message), len(record.model)) == 2000


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_requests_that_were_refused_do_not_stay_in_memory(serve, path):
    gateway = serve()
    words = "a sentence that nobody says" * 1000
    body = {"model": "gemini/gemini-3.8-flash~400", "max_tokens": 9, "messages": [{"role": "user", "content": words}]}
    assert httpx2.post(gateway.base_url + path, json=body).status_code == 400
    (record,) = gateway.wait_for_records(1)
    until(lambda: record.problem.__traceback__ is None)  # a moment after we were told
    assert record.problem.kind == "invalid_request"
    assert record.problem.__context__ is None
