"""Refuse a body in which a name stands twice in one object: two readers of it could do two different things.

A conversation is sent whole with every turn, so what was looked at before is known again by its bytes, and only the
rest is looked at: of a short one message by message, of a long one its beginning. The last messages of that are not
remembered: clients change their cache marks with every turn.
"""

from collections import OrderedDict
from collections.abc import Collection

from msgspec import Raw, Struct

from dragoman.core.problems import Problem
from dragoman.gateway.ask import Looked, unreadable
from dragoman.wire import array, json
from dragoman.wire.duplicates import duplicate
from dragoman.wire.outline import Outlines
from dragoman.wire.pointer import escape, split

CODE = "duplicate_key"
_DISTINCT = "distinct"
_HEAD = 1024
_WORTH_KNOWING = 4 << 10
_MOST_CLEAN = 128
_LARGEST_CLEAN = 256 << 10
_NOTHING = Raw(b"0")
_UNSETTLED = 4
"""Messages at the end of a history that may be written otherwise the next time."""


class _Part(Struct, frozen=True):
    """A body, or what is new in it."""

    body: bytes
    start: int = -1
    """Where the items of the history begin; negative where there is none worth remembering."""
    left_out: int = 0
    """How many bytes of it are known."""
    items: int = 0
    """How many items these are."""


class Distinct:
    """Looks at bodies, and remembers the beginnings of those of `least` bytes or more: `most` bytes of them."""

    def __init__(self, outlines: Outlines | None = None, *, least: int = 32 << 10, most: int = 32 << 20) -> None:
        self._outlines = outlines or Outlines()
        self._least = least
        self._most = most
        self._items: set[bytes] = set()
        """Messages of short bodies that were looked at."""
        self._items_size = 0
        self._size = 0
        self._known: OrderedDict[int, tuple[bytes, int]] = OrderedDict()
        """By how a history begins, as much of it as was looked at, and how many items that is."""
        self._clean: set[bytes] = set()
        """Members that were looked at, whole: the same tools come with every turn."""

    def require(self, body: bytes, history: str) -> Looked:
        """Raise a `Problem` that names the key and its place; `history` is the member that holds the conversation."""
        if len(body) >= self._least:
            return self._require_long(body, history)
        outline = self._outlines.of(body, history) if history else None
        try:
            if outline is not None and _DISTINCT in outline.around.made:
                self._require_new(outline.items, body)
            else:
                _refuse(self._duplicate(body, history))
        except json.Malformed as error:
            raise unreadable(error) from None
        if outline is not None:
            outline.around.keep(_DISTINCT, None)
            self._remember(outline.items)
        return Looked(body, outline)

    def _require_new(self, items: Collection[bytes], body: bytes) -> None:
        """Look at the messages of a short body that are new; all else in it is known to be distinct."""
        new = self._unknown(items)
        if new and duplicate(b"[%b]" % b",".join(new)) is not None:
            _refuse(duplicate(body))

    def _unknown(self, items: Collection[bytes]) -> list[bytes]:
        return [] if self._items.issuperset(items) else [item for item in items if item not in self._items]

    def _require_long(self, body: bytes, history: str) -> Looked:
        try:
            part = self._new(body, history)
            where = self._duplicate(part.body, history)
        except json.Malformed as error:
            raise unreadable(error) from None
        _refuse(where and _moved(where, history, part.items))
        if part.start >= 0:
            self._keep(body, history, part)
        return Looked(part.body)

    def _remember(self, items: Collection[bytes]) -> None:
        """Remember messages that were looked at; a full memory forgets everything, which is rare and cheap."""
        new = self._unknown(items)
        self._items_size += sum(map(len, new))
        if self._items_size > self._most // 4:
            self._items, self._items_size = set(), 0
        self._items.update(new)

    def _duplicate(self, body: bytes, history: str) -> str | None:
        """Find a name that stands twice; large members beside the history, as tools are, are looked at once."""
        try:
            members = json.decode_object(body) if len(body) >= _WORTH_KNOWING else {}
        except json.Malformed:
            members = {}
        if len(json.encode(members)) != len(body):
            return duplicate(body)  # short, or blanks, or a name that stands twice here
        large = {name: bytes(raw) for name, raw in members.items() if name != history and len(raw) >= _WORTH_KNOWING}
        known = {name: _NOTHING for name, raw in large.items() if raw in self._clean}
        where = duplicate(json.encode(members | known) if known else body)
        if where is None and len(known) < len(large):
            if len(self._clean) >= _MOST_CLEAN:
                self._clean.clear()
            self._clean.update(raw for raw in large.values() if len(raw) <= _LARGEST_CLEAN)
        return where

    def _new(self, body: bytes, history: str) -> _Part:
        """Leave out what is known of a body."""
        start = array.opening(body, history)
        if start is None:
            return _Part(body)
        known, items = self._known.get(hash(body[start : start + _HEAD]), (b"", 0))
        following = array.after(body, start + len(known)) if known and body.startswith(known, start) else None
        if following is None:
            return _Part(body, start)
        return _Part(body[:start] + body[following:], start, following - start, items)

    def _keep(self, body: bytes, history: str, part: _Part) -> None:
        """Remember what is settled of a history, as far as it was looked at."""
        found = array.items(part.body, history, part.start)
        new, tail = found or ([], 0)
        if len(new) <= _UNSETTLED:
            return
        end = array.end_before(body, len(body) - tail, new[-_UNSETTLED:])
        settled = body[part.start : end]
        if len(settled) > self._most // 4:
            return
        mark = hash(body[part.start : part.start + _HEAD])
        self._size -= len(self._known.pop(mark, (b"", 0))[0])
        self._known[mark] = (settled, part.items + len(new) - _UNSETTLED)
        self._size += len(settled)
        while self._size > self._most:
            _, (oldest, _) = self._known.popitem(last=False)
            self._size -= len(oldest)


def require_distinct(body: bytes) -> None:
    """Raise a `Problem` that names a key that stands twice, in a body that nobody remembers."""
    try:
        _refuse(duplicate(body))
    except json.Malformed as error:
        raise unreadable(error) from None


def _refuse(where: str | None) -> None:
    if where is not None:
        raise _twice(where)


def _moved(where: str, history: str, items: int) -> str:
    """Return a place in what is new of a body as one in all of it."""
    name, *rest = split(where)
    if name != history or not rest or not items:
        return where
    tokens = [name, str(int(rest[0]) + items), *rest[1:]]
    return "".join(f"/{escape(token)}" for token in tokens)


def _twice(where: str) -> Problem:
    *above, name = split(where)
    place = "".join(f"/{escape(token)}" for token in above)
    words = f"the key {json.encode(name).decode()} stands twice in the object at {place or 'the root'}"
    return Problem("invalid_request", words, where=where, code=CODE)
