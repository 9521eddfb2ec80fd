"""Rules about breakpoints of the prompt cache."""

from collections.abc import Iterator

from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.rule import Situation, Violation

_MOST = 4
_SECTION = "wire/anthropic_messages.md section 12"


@rule("cache-count", _SECTION)
def cache_count(reading: Reading, _: Situation) -> Iterator[Violation]:
    """There are at most four breakpoints, the automatic one among them."""
    marks = list(reading.cache_marks())
    found = len(marks) + (reading.request.cache_control is not None)
    if found > _MOST:
        words = f"A maximum of {_MOST} blocks with cache_control may be provided. Found {found}."
        yield Violation(words, marks[-1][0] if marks else "/cache_control")


@rule("cache-order", f"{_SECTION}; headroom#2939")
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
