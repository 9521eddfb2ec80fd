"""A request whose frame is known is translated as if it were new, whatever history stands in it: the same bytes, losses, way back and messages."""

import functools
import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

import strategies
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter import translate
from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.frames import Frames
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.recall import Recall
from dragoman.interpreter.traits import traits_for
from dragoman.interpreter.translate import Translation, translate_request
from laws.alike import assert_alike
from laws.documents import DIALECTS, MODELS, requests, shape
from shelf import needs_shelf

TARGETS = {source: [target for target in DIALECTS if target != source] for source in DIALECTS}
SOURCES = [source for source in DIALECTS if dialect_named(source).read_history is not None]
PAIRS = [(source, target) for source in SOURCES for target in TARGETS[source]]
FORGETFUL = Recall(least=1 << 40)


class Counting(Frames):
    """Counts how often something was made of a frame before."""

    found = 0

    def find(self, around: Any, mark: Any) -> Any:
        frame = super().find(around, mark)
        self.found += frame is not None
        return frame


def _translated(body: bytes, source: str, target: str, frames: Frames) -> Translation | tuple[str, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translate, "RECALL", FORGETFUL)
        patch.setattr(translate, "FRAMES", frames)
        try:
            return translate_request(Call(body, "m"), source, target, model=MODELS[target])
        except Problem as problem:
            return (problem.kind, problem.message, problem.where)


def _assert_alike(document: bytes, source: str, target: str, frames: Frames) -> None:
    known = _translated(document, source, target, frames)
    new = _translated(document, source, target, Frames())
    assert_alike(known, new)


def _written(body: dict[str, Any], *, spaced: bool) -> bytes:
    return json.dumps(body, separators=None if spaced else (",", ":"), ensure_ascii=not spaced).encode()


@functools.cache
def _bodies(source: str) -> list[dict[str, Any]]:
    """One request of every shape there is, with a history in a list."""
    member = dialect_named(source).history
    listed = [body for _, body in requests(source) if isinstance(body.get(member), list) and body[member]]
    return list({shape(body): body for body in listed}.values())


@needs_shelf
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_recorded_requests_are_translated_alike_whatever_frames_are_known(source, target):
    member = dialect_named(source).history
    bodies = _bodies(source)
    histories = itertools.cycle(body[member] for body in bodies)
    frames = Counting()
    for number, body in enumerate(bodies):
        own = body[member]
        others = [next(histories) for _ in range(3)]
        for history in (own, own, own, [*own[:-1], others[0][-1]], own[:-1], [*own, *others[0]], *others):
            _assert_alike(_written(body | {member: history}, spaced=number % 2 == 0), source, target, frames)
    assert frames.found > 4 * len(bodies)


@settings(deadline=None, max_examples=max(20, settings.default.max_examples // 3))
@given(data=st.data(), pair=st.sampled_from(PAIRS), tidy=st.booleans(), spaced=st.booleans())
def test_any_request_is_translated_alike_whatever_frames_are_known(data, pair, tidy, spaced):
    source, target = pair
    here, traits = dialect_named(source), traits_for(source, "")
    bodies: list[dict[str, Any]] = []
    for _ in range(2):
        drawn = structs.replace(data.draw(strategies.requests(source, tidy=tidy)), candidates=None)
        request, _ = adapt(drawn, here.issuer, traits, Ledger({}))
        bodies.append(json.loads(here.render_request(request, traits).body))
    frames = Frames()
    framed, (mine, other) = bodies[0], [body[here.history] for body in bodies]
    if not isinstance(mine, list) or not isinstance(other, list):
        return
    for history in (mine, mine, mine, other, [*mine, *other], mine[:-1], [*mine[:-1], *other[-1:]]):
        _assert_alike(_written(framed | {here.history: history}, spaced=spaced), source, target, frames)
