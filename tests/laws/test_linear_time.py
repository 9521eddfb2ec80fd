"""The time for a stream grows linearly with its length, whatever it consists of."""

import gc
import time

import pytest

from dragoman.interpreter.stream import StreamTranslator
from laws.documents import DIALECTS
from laws.streams import STREAMS

SIZE = 500
FLOOR = 0.01
"""Seconds; shorter times are too noisy to measure growth."""
WORST = 8
"""Maximum factor in time for four times the size; sixteen would be quadratic."""
ATTEMPTS = 4
pytestmark = pytest.mark.slow
CASES = [(s, kind, t) for s in DIALECTS for kind in STREAMS[s] for t in DIALECTS if s != t]


def seconds(sse: bytes, source: str, client: str) -> float:
    translator = StreamTranslator(source, client)
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        for at in range(0, len(sse), 65_536):
            translator.feed(sse[at : at + 65_536])
        translator.close()
        assert translator.losses is not None
        return time.process_time() - start
    finally:
        gc.enable()


@pytest.mark.parametrize(("source", "kind", "client"), CASES)
def test_four_times_as_long_a_stream_takes_about_four_times_as_long(source, kind, client):
    short, long = STREAMS[source][kind](SIZE), STREAMS[source][kind](4 * SIZE)
    once = four = float("inf")
    for _ in range(ATTEMPTS):
        once = min(once, seconds(short, source, client))
        four = min(four, seconds(long, source, client))
        if four < WORST * max(once, FLOOR):
            break
    assert four < WORST * max(once, FLOOR), f"{once:.3f} s, then {four:.3f} s"


@pytest.mark.parametrize(("source", "kind"), [(source, kind) for source in DIALECTS for kind in STREAMS[source]])
def test_these_streams_are_whole(source, kind):
    translator = StreamTranslator(source, next(name for name in DIALECTS if name != source))
    translator.feed(STREAMS[source][kind](8))
    translator.close()
    assert translator.problem is None or translator.problem.kind == "malformed_reply"
    assert translator.begun
