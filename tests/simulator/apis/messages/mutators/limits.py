"""Mutators for the rules about limits: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import PIXEL, change, onto, user_blocks_added
from simulator.mutation import Mutate

_MEGABYTE = 1 << 20


_MOST_BYTES_ON_VERTEX = 30 * _MEGABYTE


_MOST_MESSAGES = 100_000


def _too_large(body: Json, _: Random) -> Iterator[Json]:
    """Only Vertex requests are made too large: there are few of them, and each is slow."""
    if "anthropic_version" in body:
        yield from user_blocks_added(body, {"type": "text", "text": "a" * _MOST_BYTES_ON_VERTEX})


def _too_many(body: Json, _: Random) -> Iterator[Json]:
    """Only Vertex requests are used, for the same reason."""
    if "anthropic_version" in body:
        yield change(body, messages=[{"role": "user", "content": "Hi"}] * (_MOST_MESSAGES + 1))


def _too_long(body: Json, _: Random) -> Iterator[Json]:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    for moved in onto(body, "claude-haiku-4-5"):
        yield from user_blocks_added(moved, *[image] * 800)


MUTATORS: dict[str, Mutate] = {
    "messages.request-size": _too_large,
    "messages.message-count": _too_many,
    "messages.prompt-length": _too_long,
}
