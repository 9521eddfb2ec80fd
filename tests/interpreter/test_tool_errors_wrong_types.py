"""A field of the wrong type is an error of the request, wherever it is and whatever it holds."""

import copy
import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import DIALECTS, dialect_named
from dragoman.interpreter.tool_errors import CALL_CODE, SentRequest, explain_tools, locate_rejection
from dragoman.interpreter.translate import translate_request
from dragoman.interpreter.undo import Undo
from laws.maximal import REQUESTS

WRONG = [{"type": [5]}, {}, [[5]], [{"type": 5}], 5, None]


def find_leaves(value, path=()):
    """Yield the paths of all strings in a document."""
    if isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from find_leaves(member, (*path, key))
    elif isinstance(value, str):
        yield path


def replace_at(document, path, value):
    changed = copy.deepcopy(document)
    owner = changed
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = value
    return json.dumps(changed).encode()


@pytest.mark.parametrize("source", REQUESTS)
@pytest.mark.parametrize("wrong", WRONG, ids=json.dumps)
def test_a_value_of_the_wrong_type_is_translated_or_rejected(source, wrong):
    rejected = 0
    for path in find_leaves(REQUESTS[source]):
        call = Call(replace_at(REQUESTS[source], path, wrong), "m")
        for target in DIALECTS.keys() - {source}:
            try:
                translate_request(call, source, target)
            except Problem as problem:
                explained = explain_tools(problem, call, dialect_named(source))
                assert explained.status == 400, path
                rejected += 1
    assert rejected > 0


def test_a_role_that_is_an_object_is_reported_at_its_pointer():
    call = Call(b'{"model":"m","messages":[{"role":{"type":[5]},"content":"hi"}]}')
    with pytest.raises(Problem) as caught:
        translate_request(call, "chat", "messages")
    explained = explain_tools(caught.value, call, dialect_named("chat"))
    assert (explained.kind, explained.where, explained.code) == ("invalid_request", "/messages/0/role", None)


@pytest.mark.parametrize("wrong", WRONG, ids=json.dumps)
def test_a_rejected_call_whose_name_has_the_wrong_type_is_located(wrong):
    body = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
    request = dialect_named("chat").parse_request(Call(body))
    part = {"functionCall": {"name": wrong, "args": {}}}
    sent = json.dumps({"contents": [{"role": "model", "parts": [part]}]}).encode()
    problem = Problem("invalid_request", "bad function call", where="/contents/0/parts/0/functionCall/name")
    located = locate_rejection(problem, SentRequest(sent, "gemini", "g", Undo()), request, dialect_named("chat"), body)
    assert located.code == CALL_CODE
