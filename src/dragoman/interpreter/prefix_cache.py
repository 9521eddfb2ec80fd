"""The prefix cache: the translated beginnings of long conversations, by their bytes.

A conversation is sent whole with every turn. A beginning that was translated before is found by its bytes, which costs
one comparison. The cache is bounded by bytes, and what was not used for longest goes first.
"""

from msgspec import Struct

from dragoman.core.losses import Loss
from dragoman.core.request import Message
from dragoman.core.traits import Traits
from dragoman.interpreter.undo import Arguments

Scope = tuple[str, ...]
"""What else a prefix depends on: source, target and model, whose signatures it holds, how its media is fetched."""
_Key = tuple[Scope, int]
_MAX_PER_KEY = 31
"""How many conversations that begin alike are kept beside the newest."""


class Prefix(Struct, frozen=True, eq=False):
    """The first messages of a history, up to where the model spoke last, and all that translating them gave."""

    items: bytes = b""
    """The messages as they stand in the caller's array."""
    length: int = 0
    """How many messages these are."""
    messages: tuple[Message, ...] = ()
    traits: Traits | None = None
    history_changes: Arguments = {}
    """How the arguments of its calls are said in another way."""
    written: bytes = b""
    """The same in the target's array, but for the system messages at the head."""
    ids: frozenset[str] = frozenset()
    """The calls in it, each of which has its result in it too."""
    unconfirmed: frozenset[str] = frozenset()
    """Calls in it that were taken for unsigned before anybody had looked their signatures up."""
    names: dict[str, tuple[str, str]] = {}
    losses: tuple[Loss, ...] = ()
    reported_once: frozenset[str] = frozenset()
    """Losses that are reported once for a whole history, and have been."""
    runs: int = 0
    unnamed: int = 0
    """How many runs of the model's messages it has, and calls without an id: generated ids are numbered by them."""

    def find_end(self, messages: tuple[Message, ...]) -> int:
        """Return where it ends in a history that begins with it; system messages of another field may stand before."""
        first = self.messages[0]
        return next(at for at, message in enumerate(messages) if message is first) + len(self.messages)


NO_PREFIX = Prefix()


class PrefixCache:
    """Prefixes, `most` bytes of them, each of `least` bytes or more.

    Most requests are never continued. So of a history that comes for the first time only its key is kept: how its first
    `least` bytes hash. When that comes again, the conversation goes on, and its prefix is worth keeping. There is no
    lock: every step replaces a value whole, and all that a race can lose is an entry.
    """

    def __init__(self, *, min_bytes: int = 32 << 10, max_bytes: int = 64 << 20, max_keys: int = 4096) -> None:
        self.min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._max_keys = max_keys
        self._size = 0
        self._prefixes: dict[_Key, tuple[Prefix, ...]] = {}
        """By key, what was not used for longest first."""

    def find(self, scope: Scope, body: bytes, start: int) -> Prefix | None:
        """Return the longest known prefix of the array whose items begin at `start`.

        `NO_PREFIX` means that the same came before, and None that it did not.
        """
        key = self._build_key(scope, body, start)
        known = self._prefixes.pop(key, None)
        self._prefixes[key] = known or ()
        if known is None:
            self._evict()
            return None
        found = [one for one in known if body.startswith(one.items, start)]
        return max(found, key=lambda one: len(one.items), default=NO_PREFIX)

    def store(self, scope: Scope, prefix: Prefix, replaced: Prefix) -> None:
        """Keep a prefix in place of the shorter one that it goes on from."""
        if not self.min_bytes <= len(prefix.items) <= self._max_bytes // 4:
            return
        key = self._build_key(scope, prefix.items, 0)
        before = self._prefixes.get(key, ())
        others = [one for one in before if one is not replaced and one.items != prefix.items]
        kept = self._prefixes[key] = (*others[-_MAX_PER_KEY:], prefix)
        self._size += sum(map(_measure_prefix, kept)) - sum(map(_measure_prefix, before))
        self._evict()

    def _build_key(self, scope: Scope, body: bytes, start: int) -> _Key:
        return scope, hash(body[start : start + self.min_bytes])

    def _evict(self) -> None:
        """Forget what was not used for longest until the rest is small enough."""
        while self._prefixes and (self._size > self._max_bytes or len(self._prefixes) > self._max_keys):
            gone = self._prefixes.pop(next(iter(self._prefixes)), ())
            self._size -= sum(map(_measure_prefix, gone))


def _measure_prefix(prefix: Prefix) -> int:
    return len(prefix.items) + len(prefix.written)
