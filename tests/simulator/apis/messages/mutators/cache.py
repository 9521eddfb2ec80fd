"""Mutators for the rules about cache: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import change, user_blocks_added
from simulator.mutation import Mutate

_MOST = 4


def _mark(body: Json, count: int) -> Iterator[Json]:
    mark = {"type": "ephemeral"}
    texts = ({"type": "text", "text": f"Note {number}.", "cache_control": mark} for number in range(count))
    yield from user_blocks_added(body, *texts)


def _five(body: Json, _: Random) -> Iterator[Json]:
    if "1h" not in str(body):
        yield from _mark(body, _MOST + 1)
        if "cache_control" not in body:
            for marked in _mark(body, _MOST):
                yield change(marked, cache_control={"type": "ephemeral"})


def _longer_later(body: Json, _: Random) -> Iterator[Json]:
    if "cache_control" not in str(body):
        marks = [{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}]
        texts = [{"type": "text", "text": "Note.", "cache_control": mark} for mark in marks]
        yield from user_blocks_added(body, *texts)


MUTATORS: dict[str, Mutate] = {
    "messages.cache-count": _five,
    "messages.cache-order": _longer_later,
}
