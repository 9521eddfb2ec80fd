"""Every rule works: what its mutator makes of accepted requests is rejected with that rule's name."""

import copy
from itertools import islice
from random import Random

import pytest

from dragoman.simulator.apis.chat import API
from dragoman.simulator.apis.rule import Violation
from shelf import needs_shelf
from simulator.apis.chat.bodies import judge, seeds
from simulator.apis.chat.mutators import MUTATORS

MOST = 48
"""Maximum number of changed bodies to check for each rule."""


def change_by(note):
    """Yield bodies that break a rule, some of every seed, so that all ways in which a mutator breaks it occur."""
    chance = Random(note.name)  # noqa: S311  reproducible on purpose
    order = chance.sample(seeds(), len(seeds()))
    for seed in order:
        before = copy.deepcopy(seed)
        broken = list(MUTATORS[note.name](seed, chance))
        yield from chance.sample(broken, min(len(broken), 6))
        assert seed == before, "a mutator works on copies"


@needs_shelf
@pytest.mark.parametrize("note", API.rules, ids=lambda note: note.name)
def test_a_body_that_breaks_a_rule_is_refused_by_its_name(note):
    broken = list(islice(change_by(note), MOST))
    assert broken
    for request in broken:
        result = judge(request)
        assert isinstance(result, Violation), request
        assert (result.rule, result.status) in {(note.name, 400), (note.name, 404)}, (result, request)


def test_every_rule_has_a_mutator():
    assert MUTATORS.keys() == {note.name for note in API.rules}


def test_rules_are_named_once():
    names = [note.name for note in API.rules]
    assert len(names) == len(set(names))
    assert all(name.startswith("chat.") and name == name.lower() for name in names)


@pytest.mark.parametrize("note", API.rules, ids=lambda note: note.name)
def test_a_rule_has_one_sentence_and_a_source(note):
    assert note.says.endswith(".")
    assert note.source.startswith(("wire/", "recorded: openai_chat/", "reported", "openai-python", "no source: "))


def test_a_rule_without_a_source_is_marked():
    assert {note.name for note in API.rules if note.source.startswith("no source")} == {
        "chat.tool-name-duplicate",
        "chat.allowed-tools-empty",
    }
