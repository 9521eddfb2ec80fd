"""Numbers in memory that several processes see: rows of counters, each row named by a few words.

Each process writes rows of its own and reads those of all. What a process has counted outlives it: the one that takes
its place counts on. The number of rows is fixed, so no client can make it grow: what finds no row goes to the last one.
"""

from collections.abc import Iterator
from mmap import mmap

from dragoman.wire import json

_NUMBER = 8
_NAME = 256
"""Bytes that a row's name may take, as JSON with its length before it."""
_LENGTH = 2
OTHER = "other"

Key = tuple[str, ...]


class Sheet:
    """The rows of one process."""

    def __init__(self, memory: memoryview, width: int, words: int) -> None:
        self._memory = memory
        self._stride = _NAME + width * _NUMBER
        self._last = len(memory) // self._stride - 1
        self._rest: Key = (OTHER,) * words
        self.numbers: memoryview[float] = memory.cast("d")
        self._rows: dict[Key, int] = {}
        for at, name in enumerate(self._names()):
            if name is not None:
                self._rows[name] = self._first(at)

    @staticmethod
    def size(width: int, rows: int) -> int:
        """Return the bytes that a sheet needs."""
        return (_NAME + width * _NUMBER) * rows

    def row(self, key: Key) -> int:
        """Return where in `numbers` the row of a key begins; a new one is made if there is room."""
        found = self._rows.get(key)
        return self._added(key) if found is None else found

    def rows(self) -> Iterator[tuple[Key, list[float]]]:
        """Return every row with what it holds, also when another process writes them."""
        width = (self._stride - _NAME) // _NUMBER
        for at, name in enumerate(self._names()):
            if name is not None:
                first = self._first(at)
                yield name, list(self.numbers[first : first + width])

    def _added(self, key: Key) -> int:
        name = json.encode(key)
        at = self._last
        if key != self._rest:
            at = len(self._rows) - (self._rest in self._rows)
            if at >= self._last or len(name) > _NAME - _LENGTH:
                return self.row(self._rest)
        start = at * self._stride
        self._memory[start + _LENGTH : start + _LENGTH + len(name)] = name
        # The length last: who reads beside us sees a whole name or none.
        self._memory[start : start + _LENGTH] = len(name).to_bytes(_LENGTH, "little")
        self._rows[key] = self._first(at)
        return self._rows[key]

    def _names(self) -> Iterator[Key | None]:
        for at in range(self._last + 1):
            start = at * self._stride
            length = int.from_bytes(self._memory[start : start + _LENGTH], "little")
            name = self._memory[start + _LENGTH : start + _LENGTH + length]
            yield tuple(json.decode(bytes(name))) if length else None

    def _first(self, at: int) -> int:
        return (at * self._stride + _NAME) // _NUMBER


def shared(size: int) -> mmap:
    """Return memory that this process and those it forks see."""
    return mmap(-1, size)
