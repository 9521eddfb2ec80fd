"""Time two things side by side.

Rounds are interleaved, so that a noisy neighbour disturbs both alike; each round gives one ratio. CPU time of this
process is what counts, and the collector runs between rounds, never within one.
"""

import gc
import statistics
import time
from collections.abc import Callable

from msgspec import Struct

ROUND_SECONDS = 0.01
Work = Callable[[], object]


class Timing(Struct, frozen=True):
    """Microseconds of CPU a call takes at its best, and how often it takes what the yardstick takes."""

    microseconds: float
    yardstick: float
    median_ratio: float
    best_ratio: float


def compare(work: Work, yardstick: Work, rounds: int) -> Timing:
    """Run both in turn, `rounds` times. The best ratio is that of the best times of both."""
    repeats, measures = _repeats(work), _repeats(yardstick)
    times: list[float] = []
    measured: list[float] = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            measured.append(_time(yardstick, measures))
            times.append(_time(work, repeats))
            gc.collect()
    finally:
        gc.enable()
    ratios = [taken / measure for taken, measure in zip(times, measured, strict=True)]
    best, measure = min(times), min(measured)
    return Timing(best * 1e6, measure * 1e6, statistics.median(ratios), best / measure)


def _repeats(work: Work) -> int:
    """Return how many calls fill a round; the call that is timed for it has also warmed up what there is to warm."""
    work()
    return max(1, round(ROUND_SECONDS / max(_time(work, 1), 1e-7)))


def _time(work: Work, repeats: int) -> float:
    begun = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - begun) / repeats
