"""Take bodies apart around an array, as a history is: what stands around it is known again by its bytes.

A conversation sends the same tools and settings with every turn, so the same bytes stand before its history and behind
it. What comes for the first time leaves only its mark; when it comes again it is worth remembering. What is kept is
bounded by its size, and what was not used for longest goes first. There is no lock: every step replaces a value whole,
and all that a race can lose is a memory.
"""

from typing import Any

from msgspec import Raw, Struct

from dragoman.wire import array, json

_MOST_MADE = 64
_MOST_STRANGE = 64
_ONE_OF = 7
"""After so many bodies in a row that nobody knows, only one of so many is looked at; odd, for clients take turns."""
_Head = tuple[str, bytes]
"""What the array is called, and what stands before its first item."""


class Around(Struct, eq=False):
    """What stands around an array."""

    tail: bytes
    """What stands behind the array's last item."""
    used: int
    """When it was used last."""
    made: dict[object, Any] = {}
    """What others made of it, each under a name of its own; it is forgotten with it."""

    def keep(self, name: object, made: object) -> None:
        """Remember what was made of it; when that is too much, all else is forgotten."""
        if len(self.made) >= _MOST_MADE and name not in self.made:
            self.made.clear()
        self.made[name] = made


class Outline(Struct, frozen=True, eq=False):
    """A body, taken apart; nothing but its items is new if its surroundings were looked at before."""

    around: Around
    items: tuple[bytes, ...]
    start: int
    """Where the first item begins."""

    def array(self, body: bytes) -> bytes:
        """Return the array as it stands in the body."""
        return body[self.start - 1 : len(body) - len(self.around.tail) + 1]


class Outlines:
    """Surroundings of arrays, `most` bytes of them."""

    def __init__(self, *, most: int = 4 << 20, marks: int = 4096) -> None:
        self._most = most
        self._marks = marks
        self._now = 0
        self._strange = 0
        """How many bodies came since one was known."""
        self._seen: dict[int, None] = {}
        """How surroundings hash that came once."""
        self._known: dict[_Head, tuple[Around, ...]] = {}

    def of(self, body: bytes, name: str) -> Outline | None:
        """Take a body apart around the array `name`; None if what stands around it comes for the first time."""
        start = array.first(body, name)
        if start is None:
            return None
        head = (name, body[:start])
        around = self._find(head, body)
        if around is not None:
            try:
                items = json.decode_array(Raw(body[start - 1 : len(body) - len(around.tail) + 1]))
            except json.Malformed:
                pass  # it only ends as another does
            else:
                self._now = around.used = self._now + 1
                self._strange = 0
                return Outline(around, tuple(map(bytes, items)), start)
        self._strange += 1
        is_worth_a_look = self._strange <= _MOST_STRANGE or self._strange % _ONE_OF == 0
        return self._learned(head, body) if is_worth_a_look else None

    def _find(self, head: _Head, body: bytes) -> Around | None:
        """Return what stands around a body; of several the one that leaves least to the array."""
        found: Around | None = None
        room = len(body) - len(head[1])
        for around in self._known.get(head, ()):
            tail = around.tail
            if body.endswith(tail) and len(tail) <= room and (found is None or len(found.tail) < len(tail)):
                found = around
        return found

    def _learned(self, head: _Head, body: bytes) -> Outline | None:
        """Remember what stands around a body if it came before, else that it came."""
        name, start = head[0], len(head[1])
        try:
            found = array.items(body, name, start) if array.opening(body, name) == start else None
        except json.Malformed:
            return None
        if found is None:
            return None
        items, size = found
        tail = body[len(body) - size :]
        return None if self._is_new(head, tail) else Outline(self._kept(head, tail), tuple(map(bytes, items)), start)

    def _is_new(self, head: _Head, tail: bytes) -> bool:
        hashed = hash((head, tail))
        if hashed in self._seen:
            return False
        if len(self._seen) >= self._marks:
            self._seen = {}
        self._seen[hashed] = None
        return True

    def _kept(self, head: _Head, tail: bytes) -> Around:
        self._now += 1
        others = [around for around in self._known.get(head, ()) if around.tail != tail]
        kept = Around(tail, self._now)
        self._known[head] = (*others, kept)
        self._shrink()
        return kept

    def _shrink(self) -> None:
        """Forget what was not used for longest, a quarter of all, when it is too much."""
        every = [(around, head) for head, alike in list(self._known.items()) for around in alike]
        size = sum(_size(around, head) for around, head in every)
        if size <= self._most:
            return
        for around, head in sorted(every, key=lambda one: one[0].used):
            others = tuple([one for one in self._known.get(head, ()) if one is not around])
            if others:
                self._known[head] = others
            else:
                self._known.pop(head, None)
            size -= _size(around, head)
            if size <= self._most * 3 // 4:
                return


def _size(around: Around, head: _Head) -> int:
    return len(head[1]) + len(around.tail)
