"""Count work instead of seconds: lines and bytes are the same on every machine, whatever else it does meanwhile."""

import gc
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple


class Work(NamedTuple):
    """What a function did until it returned."""

    lines: int
    """Executed lines of Python; each call and each return counts as one more."""
    allocated: int
    """Bytes that Python or C code allocated, even if it freed them at once."""


SMALL = 256
"""Fewer bytes than these are not counted in a line: counting takes some itself."""
FACTOR = 4
"""Work is compared at a size, at four times and at sixteen times this size."""
MOST = (4.2, 5.0)
"""Maximum growth of the increases in lines and in bytes: 4 is linear, 16 quadratic. Buffers and tables grow in leaps."""
FLOOR = Work(lines=200, allocated=50_000)
"""A smaller increase is not compared: it may be one such leap."""


def count_work(run: Callable[[], object]) -> Work:
    """Run a function and return its work.

    C code that allocates nothing, such as the search of `value in values`, is not counted. Memory is read at each
    line: of what one line allocates and frees again, the highest level counts.
    """
    lines = allocated = level = 0

    def trace(_frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal lines, allocated, level
        now, highest = tracemalloc.get_traced_memory()
        lines += 1
        if highest - level > SMALL:
            allocated += highest - level
        level = now
        tracemalloc.reset_peak()
        return trace

    gc.collect()
    gc.disable()
    previous = sys.gettrace()
    tracemalloc.start()
    try:
        sys.settrace(trace)
        run()
    finally:
        sys.settrace(previous)
        tracemalloc.stop()
        gc.enable()
    return Work(lines, allocated)


def assert_linear(prepare: Callable[[int], Callable[[], object]], size: int) -> None:
    """Fail if the work of what `prepare` returns for a size grows faster than the size."""
    prepare(size)()  # imports and caches
    sizes = size, FACTOR * size, FACTOR**2 * size
    works = [count_work(prepare(each)) for each in sizes]
    for unit, most, floor, *counts in zip(Work._fields, MOST, FLOOR, *works, strict=True):
        first, second = counts[1] - counts[0], counts[2] - counts[1]
        assert second <= most * max(first, floor), f"{unit} for sizes {sizes}: {counts}"
