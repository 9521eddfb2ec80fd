"""Each rule rejects, by name, what its mutator makes of accepted requests."""

import itertools
import json
from random import Random

import pytest

from dragoman.simulator.apis.api import AcceptedRequest
from dragoman.simulator.apis.messages import API
from shelf import needs_shelf
from simulator.apis.messages.bodies import (
    WEATHER,
    asks,
    assistant,
    call,
    judge,
    load_recordings,
    on_vertex,
    result,
    sample_requests,
    text,
    user,
)
from simulator.apis.messages.mutators import MUTATORS

PER_RULE = 25
NOT_OF_THE_BODY = {"messages.json", "messages.authentication", "messages.version-header"}
"""Rules that no content of a body breaks."""
OWN = [
    asks(system="Be brief."),
    asks(tools=[WEATHER]),
    asks(user("Hi"), assistant("Hello."), user(text("Paris?")), model="claude-sonnet-4-5", tools=[WEATHER]),
    asks(user("Paris?"), assistant(text("Well."), call()), user(result()), model="claude-haiku-4-5", tools=[WEATHER]),
    on_vertex(system="Be brief."),
]
RULES = [note for note in API.rules if note.name not in NOT_OF_THE_BODY]


def situation_of(body):
    return {"vertex": "anthropic_version" in body, "recorded": True}


def broken(note, bodies):
    """Yield what a mutator makes of bodies, each checked in the context of its original."""
    for number, (body, situation) in enumerate(bodies):
        chance = Random(f"{note.name} {number}")  # noqa: S311  reproducible on purpose
        for mutant in MUTATORS[note.name](body, chance):
            own = {"model": mutant["model"]} if "model" in mutant else {}
            yield judge(mutant, **{**situation_of(body), **situation, **own})


@pytest.mark.parametrize("note", RULES, ids=lambda note: note.name)
def test_a_rule_refuses_what_breaks_it(note):
    found = [getattr(one, "rule", "accepted") for one in broken(note, [(body, {}) for body in OWN])]
    assert found
    assert set(found) == {note.name}


@needs_shelf
@pytest.mark.parametrize("note", RULES, ids=lambda note: note.name)
def test_a_rule_refuses_what_breaks_requests_of_the_shelf(note):
    taken = [*sample_requests().values(), *list(load_recordings(200).values())[::7]]
    bodies = [(body, {**situation, "betas": None, "version": ""}) for body, situation in taken]
    found = [getattr(one, "rule", "accepted") for one in itertools.islice(broken(note, bodies), PER_RULE)]
    assert set(found) == {note.name}


@pytest.mark.parametrize("note", API.rules, ids=lambda note: note.name)
def test_a_mutator_leaves_the_body_it_is_given_alone(note):
    for body in OWN:
        before = json.dumps(body)
        list(MUTATORS[note.name](body, Random(1)))  # noqa: S311  reproducible on purpose
        assert json.dumps(body) == before


def test_every_rule_has_a_mutator():
    assert MUTATORS.keys() == {note.name for note in API.rules}


def test_every_rule_has_a_description_and_a_source():
    names = [note.name for note in API.rules]
    assert len(names) == len(set(names))
    for note in API.rules:
        assert note.name.startswith("messages.")
        assert note.says.endswith(".")
        assert note.source


def test_the_bodies_the_mutators_start_from_are_accepted():
    assert all(isinstance(judge(body), AcceptedRequest) for body in OWN)
