"""Rules about breakpoints of the prompt cache."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.messages.mutations import changed, user_blocks_added
from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.rule import Json, Situation, Violation

_MOST = 4
_SECTION = "wire/anthropic_messages.md section 12"


def _marked(body: Json, count: int) -> Iterator[Json]:
    mark = {"type": "ephemeral"}
    texts = ({"type": "text", "text": f"Note {number}.", "cache_control": mark} for number in range(count))
    yield from user_blocks_added(body, *texts)


def _five(body: Json, _: Random) -> Iterator[Json]:
    if "1h" not in str(body):
        yield from _marked(body, _MOST + 1)
        if "cache_control" not in body:
            for marked in _marked(body, _MOST):
                yield changed(marked, cache_control={"type": "ephemeral"})


@rule("cache-count", _SECTION, _five)
def cache_count(reading: Reading, _: Situation) -> Iterator[Violation]:
    """There are at most four breakpoints, the automatic one among them."""
    marks = list(reading.cache_marks())
    found = len(marks) + (reading.request.cache_control is not None)
    if found > _MOST:
        words = f"A maximum of {_MOST} blocks with cache_control may be provided. Found {found}."
        yield Violation(words, marks[-1][0] if marks else "/cache_control")


def _longer_later(body: Json, _: Random) -> Iterator[Json]:
    if "cache_control" not in str(body):
        marks = [{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}]
        texts = [{"type": "text", "text": "Note.", "cache_control": mark} for mark in marks]
        yield from user_blocks_added(body, *texts)


@rule("cache-order", f"{_SECTION}; headroom#2939", _longer_later)
def cache_order(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A longer lifetime comes before a shorter one."""
    short = False
    for where, mark in reading.cache_marks():
        if mark.lifetime == "1h" and short:
            path = where.strip("/").replace("/", ".")
            words = (
                "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks "
                "are processed in the following order: `tools`, `system`, `messages`."
            )
            yield Violation(f"{path}.cache_control.ttl: {words}", f"{where}/cache_control/ttl")
        short = short or mark.lifetime == "5m"


RULES = (cache_count, cache_order)
