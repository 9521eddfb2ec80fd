"""Errors with status 200 are raised as errors, and nothing else is treated as one."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.messages.response import parse_response


def require_rejected(body):
    with pytest.raises(Problem) as caught:
        parse_response(json.dumps(body).encode())
    return caught.value.kind, caught.value.message


OVERLOADED = {"type": "overloaded_error", "message": "Overloaded"}


@pytest.mark.parametrize("body", [{"type": "error", "error": OVERLOADED}, {"error": OVERLOADED}])
def test_an_error_in_place_of_a_reply_is_raised_as_that_error(body):
    assert require_rejected(body) == ("overloaded", "Overloaded")


def test_an_error_envelope_without_an_error_is_still_one():
    assert require_rejected({"type": "error"})[0] == "internal"


@pytest.mark.parametrize(
    "body",
    [
        {"id": "msg_1", "type": "message", "model": "error"},
        {"id": "msg_1", "type": "message", "error": None},
        {"id": "msg_1", "type": "message", "diagnostics": {"error": "late"}},
        {"id": "error"},
    ],
)
def test_the_word_error_elsewhere_does_not_make_an_empty_reply_an_error(body):
    assert require_rejected(body) == ("malformed_reply", "the reply has no content")
