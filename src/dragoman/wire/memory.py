"""Remember what was made of a value, by the value itself and not by what it says.

A conversation sends the same tools with every request. Their bytes are read once, the values that come of that are the
same objects every time, and so what is made of them need be made only once. Looking up an object costs next to nothing;
looking up what it says would cost as much as the work.
"""

from typing import Generic, TypeVar

T = TypeVar("T")


class Memory(Generic[T]):
    """What was made of pairs of objects. It holds on to them, so that no other object can take their place."""

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._known: dict[tuple[int, int], tuple[object, object, T]] = {}

    def get(self, one: object, other: object = None) -> T | None:
        """Return what was made of these two, or None."""
        found = self._known.get((id(one), id(other)))
        return found[2] if found is not None else None

    def keep(self, made: T, one: object, other: object = None) -> T:
        """Remember what was made; a full memory forgets everything, which is rare and cheap."""
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[id(one), id(other)] = (one, other, made)
        return made
