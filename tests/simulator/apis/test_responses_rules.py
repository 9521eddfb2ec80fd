"""Each rule rejects, by name, what its mutator makes of accepted requests."""

import functools
import itertools
from random import Random

import pytest

from dragoman.simulator.apis.api import AcceptedRequest
from dragoman.simulator.apis.responses import API
from shelf import needs_shelf
from simulator.apis.responses.bodies import (
    PATCH,
    WEATHER,
    asks,
    client_requests,
    judge,
    load_recordings,
    sample_requests,
)
from simulator.apis.responses.mutators import MUTATORS

PER_RULE = 80
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather", "arguments": "{}"}
PATCHED = {"type": "custom_tool_call", "call_id": "call_2", "name": "apply_patch", "input": "x"}
OWN = [
    asks(),
    asks(tools=[WEATHER, PATCH], tool_choice="auto", store=False),
    asks(
        tools=[WEATHER, PATCH],
        input=[
            {"role": "user", "content": "Paris?"},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            CALL,
            PATCHED,
            {"type": "function_call_output", "call_id": "call_1", "output": "18"},
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": "done"},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": "18 degrees."},
            {"role": "user", "content": "Thanks."},
        ],
    ),
]


@functools.cache
def take() -> list[dict]:
    """Return accepted requests, with every kind among the first."""
    shelved = [
        *sample_requests().values(),
        *list(client_requests().values())[::4],
        *list(load_recordings(200).values())[::5],
    ]
    return [*OWN, *(body for body in shelved if isinstance(judge(body, recorded=True), AcceptedRequest))]


@pytest.mark.parametrize("note", API.rules, ids=lambda note: note.name)
def test_a_rule_refuses_what_breaks_it(note):
    chance = Random(7)  # noqa: S311  reproducible on purpose
    changed = itertools.islice((mutant for body in take() for mutant in MUTATORS[note.name](body, chance)), PER_RULE)
    found = [getattr(judge(mutant, recorded=True), "rule", "accepted") for mutant in changed]
    assert found
    assert set(found) == {note.name}


@pytest.mark.parametrize("note", API.rules, ids=lambda note: note.name)
def test_a_mutator_leaves_the_body_it_is_given_alone(note):
    for body in OWN:
        before = repr(body)
        list(MUTATORS[note.name](body, Random(1)))  # noqa: S311  reproducible on purpose
        assert repr(body) == before


def test_every_rule_has_a_mutator():
    assert MUTATORS.keys() == {note.name for note in API.rules}


def test_every_rule_has_a_description_and_a_source():
    names = [note.name for note in API.rules]
    assert len(names) == len(set(names))
    for note in API.rules:
        assert note.name.startswith("responses.")
        assert note.says.endswith(".")
        assert note.source


@needs_shelf
def test_the_requests_the_mutators_work_on_are_many():
    assert len(take()) > 100
