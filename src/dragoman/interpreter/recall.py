"""Remember the beginnings of conversations: what they say in the caller's bytes, and what was made of that.

A conversation is sent whole with every turn. A beginning that was translated before is known again by its bytes, which
costs one comparison. What is kept is bounded by its size, and what was not used for longest goes first.
"""

from msgspec import Struct

from dragoman.core.losses import Loss
from dragoman.core.request import Message
from dragoman.core.traits import Traits
from dragoman.interpreter.fitting import Arguments

Scope = tuple[str, str, str]
"""Source, target and model: a beginning means something only to the same three."""
_Mark = tuple[str, str, str, int]
_MOST_ALIKE = 31
"""How many conversations with one mark are kept beside the newest."""


class Beginning(Struct, frozen=True, eq=False):
    """The first messages of a history, up to where the model spoke last, and all that came of translating them."""

    items: bytes = b""
    """The messages as they stand in the caller's array."""
    messages: tuple[Message, ...] = ()
    traits: Traits | None = None
    retold: Arguments = {}
    """How the arguments of its calls are said in another way."""
    written: bytes = b""
    """The same in the target's array, but for the system messages at the head."""
    ids: frozenset[str] = frozenset()
    """The calls in it, each of which has its result in it too."""
    names: dict[str, tuple[str, str]] = {}
    losses: tuple[Loss, ...] = ()
    once: frozenset[str] = frozenset()
    """Losses that are told once for a whole history, and have been."""

    def end_in(self, messages: tuple[Message, ...]) -> int:
        """Return where it ends in a history that begins with it; system messages of another field may stand before."""
        first = self.messages[0]
        return next(at for at, message in enumerate(messages) if message is first) + len(self.messages)


NOTHING = Beginning()


class Recall:
    """Beginnings of conversations, `most` bytes of them, each of `least` bytes or more.

    Most requests are never continued. So of a history that comes for the first time only its mark is kept: how its
    first `least` bytes hash. When that comes again, the conversation goes on, and its beginning is worth remembering.
    There is no lock: every step replaces a value whole, and all that a race can lose is a memory.
    """

    def __init__(self, *, least: int = 32 << 10, most: int = 32 << 20, marks: int = 512) -> None:
        self.least = least
        self._most = most
        self._marks = marks
        self._known: dict[_Mark, tuple[Beginning, ...]] = {}
        """By mark, what was not used for longest first."""

    def find(self, scope: Scope, body: bytes, start: int) -> Beginning | None:
        """Return the longest known beginning of the array whose items begin at `start`.

        `NOTHING` means that the same came before, and None that it did not.
        """
        mark = self._mark(scope, body, start)
        known = self._known.pop(mark, None)
        self._known[mark] = known or ()
        if known is None:
            if len(self._known) > self._marks:
                self._shrink()
            return None
        found = [one for one in known if body.startswith(one.items, start)]
        return max(found, key=lambda one: len(one.items), default=NOTHING)

    def keep(self, scope: Scope, beginning: Beginning, instead_of: Beginning) -> None:
        """Remember a beginning, in place of the shorter one that it goes on from."""
        if not self.least <= len(beginning.items) <= self._most // 4:
            return
        mark = self._mark(scope, beginning.items, 0)
        others = [one for one in self._known.get(mark, ()) if one is not instead_of and one.items != beginning.items]
        self._known[mark] = (*others[-_MOST_ALIKE:], beginning)
        self._shrink()

    def _mark(self, scope: Scope, body: bytes, start: int) -> _Mark:
        return (*scope, hash(body[start : start + self.least]))

    def _shrink(self) -> None:
        """Forget what was not used for longest until the rest is small enough."""
        known = list(self._known.items())
        size = sum(len(one.items) for _, alike in known for one in alike)
        count = len(known)
        for mark, alike in known:
            if size <= self._most and count <= self._marks:
                break
            self._known.pop(mark, None)
            size -= sum(len(one.items) for one in alike)
            count -= 1
