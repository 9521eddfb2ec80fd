"""Whole requests and replies as core values, with an id on every call."""

import pytest

from dragoman import Problem
from dragoman.interpreter.core_request import request_from, response_from

CALL = b'{"functionCall":{"name":"a","args":{}}}'
RESULT = b'{"functionResponse":{"name":"a","response":{"output":1}}}'


def test_calls_and_results_of_a_request_get_the_same_ids():
    body = b'{"contents":[{"role":"model","parts":[%b,%b]},{"role":"user","parts":[%b,%b]}]}' % (
        CALL,
        CALL,
        RESULT,
        RESULT,
    )
    request = request_from(body, "gemini", model="gemini-3-flash", stream=True)
    calls, results = (message.parts for message in request.messages)
    assert [call.id for call in calls] == [result.call_id for result in results]
    assert len({call.id for call in calls}) == 2
    assert (request.model, request.stream) == ("gemini-3-flash", True)


def test_calls_of_a_reply_get_ids():
    body = b'{"candidates":[{"content":{"role":"model","parts":[%b,%b]},"finishReason":"STOP"}]}' % (CALL, CALL)
    first, second = (part.id for part in response_from(body, "gemini").parts)
    assert first
    assert second not in ("", first)


@pytest.mark.parametrize("parse", [request_from, response_from])
def test_what_is_no_document_of_the_dialect_is_a_problem(parse):
    with pytest.raises(Problem):
        parse(b"[", "chat")
    with pytest.raises(Problem, match="unknown dialect 'toml'"):
        parse(b"{}", "toml")
