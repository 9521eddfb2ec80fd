"""What was fetched lately: kept for some time and up to some size, the oldest forgotten first."""

from collections import OrderedDict
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")


class Lately(Generic[T]):
    """Values by their link."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._kept: OrderedDict[str, tuple[float, int, T]] = OrderedDict()
        self._size = 0

    def get(self, url: str) -> T | None:
        """Return what is known of a link, if that is not too old."""
        found = self._kept.get(url)
        return found[2] if found is not None and found[0] > monotonic() else None

    def keep(self, url: str, value: T, size: int) -> None:
        """Keep a value of so many bytes; one that is too large on its own is not kept."""
        self._forget(url)
        if size > self._most or self._seconds <= 0:
            return
        self._kept[url] = (monotonic() + self._seconds, size, value)
        self._size += size
        while self._size > self._most or next(iter(self._kept.values()))[0] <= monotonic():
            self._forget(next(iter(self._kept)))

    def _forget(self, url: str) -> None:
        _, size, _ = self._kept.pop(url, (0.0, 0, None))
        self._size -= size
