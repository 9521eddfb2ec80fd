"""Canary: each leaf of a request is in the translation, or a loss at it or above it covers it; never both."""

import collections
import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request
from laws.canary import IDS, canaries, find_covering, find_miscounts, survives
from laws.documents import DIALECTS, MODELS, distinct_requests
from shelf import enough

PAIRS = [(s, t) for s in DIALECTS for t in DIALECTS if s != t]


@pytest.mark.parametrize("step", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_leaf_survives_or_is_covered_by_a_loss(source, target, step):
    wrong: dict[str, str] = {}
    counts: collections.Counter[str] = collections.Counter()
    for name, body in distinct_requests(source)[::step]:
        for where, expected, changed in canaries(body):
            try:
                call = Call(json.dumps(changed).encode(), "m")
                translation = translate_request(call, source, target, model=MODELS[target])
            except Problem as problem:
                counts["refused"] += 1
                if problem.kind not in {"unsupported", "invalid_request"}:
                    wrong.setdefault(f"{_shape(where)} refused", f"{name}: {problem}")
                continue
            loss = find_covering(where, translation.losses)
            alive = survives(expected, translation.call.body)
            counts["alive" if alive else "lost"] += 1
            for miscount in find_miscounts(changed, translation.losses):
                wrong.setdefault(f"{_shape(miscount)} counted wrong", name)
            if alive and loss is not None and where.rsplit("/", 1)[-1] not in IDS:
                wrong.setdefault(f"{_shape(where)} survived but is reported", f"{name}: {loss}")
            elif not alive and loss is None:
                wrong.setdefault(f"{_shape(where)} vanished", f"{name} {where}")
    assert not wrong, "\n".join(f"{what}: {example}" for what, example in sorted(wrong.items()))
    assert counts["alive"] > enough(1000 // step)
    assert counts["lost"] >= enough(100 // step)


def _shape(where: str) -> str:
    return "/".join("#" if token.isdigit() else token for token in where.split("/"))
