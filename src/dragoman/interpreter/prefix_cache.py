"""The prefix cache: the translated start of long conversations, looked up by its bytes.

A client sends the whole conversation with every turn. A prefix that was translated before is found by its bytes, which
costs one comparison. The cache is bounded by bytes and evicts the least recently used entries.
"""

from msgspec import Struct

from dragoman.core.losses import Loss
from dragoman.core.request import Message
from dragoman.core.traits import Traits
from dragoman.interpreter.undo import Arguments

Scope = tuple[str, ...]
"""What else a prefix depends on: source, target, model, owner of its signatures, how its media is fetched."""
_Key = tuple[Scope, int]
_MAX_PER_KEY = 31
"""How many conversations with the same key are kept in addition to the newest."""


class Prefix(Struct, frozen=True, eq=False):
    """The first messages of a history, without the open turn, and everything that translating them produced."""

    items: bytes = b""
    """The bytes of the messages in the caller's array."""
    length: int = 0
    """The number of these messages."""
    messages: tuple[Message, ...] = ()
    traits: Traits | None = None
    history_changes: Arguments = {}
    """How the arguments of its calls were changed to match the converted schemas."""
    written: bytes = b""
    """The bytes of the messages in the target's array, without the leading system messages.

    Automatic cache marks are not among them: they move with every turn, and the renderer adds them to a copy.
    """
    has_cache_marks: bool = False
    """Some part of the messages has a cache mark of the caller."""
    ids: frozenset[str] = frozenset()
    """The ids of its calls; the result of each call is in the prefix too."""
    unconfirmed: frozenset[str] = frozenset()
    """The ids of calls that were treated as unsigned before their signatures had been looked up."""
    names: dict[str, tuple[str, str]] = {}
    losses: tuple[Loss, ...] = ()
    reported_once: frozenset[str] = frozenset()
    """Reasons that are reported once for a whole history, and have been."""
    runs: int = 0
    unnamed: int = 0
    """Its numbers of runs of assistant messages and of calls without an id; generated ids are numbered by them."""

    @property
    def call_count(self) -> int:
        """Its number of calls."""
        return len(self.ids) + self.unnamed

    def find_end(self, messages: tuple[Message, ...]) -> int:
        """Return the index of the first message after the prefix.

        System messages that the dialect has in another field may come before the prefix.
        """
        first = self.messages[0]
        return next(at for at, message in enumerate(messages) if message is first) + len(self.messages)


NO_PREFIX = Prefix()


class PrefixCache:
    """A least-recently-used cache of up to `max_bytes` bytes of prefixes, each of at least `min_bytes` bytes.

    Its keys are hashes of the first `min_bytes` bytes of a history. There is no lock: every step replaces a whole
    value, and a race can lose no more than an entry.
    """

    def __init__(self, *, min_bytes: int = 32 << 10, max_bytes: int = 64 << 20) -> None:
        self.min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._size = 0
        self._prefixes: dict[_Key, tuple[Prefix, ...]] = {}
        """By key, the least recently used first."""

    def find(self, scope: Scope, body: bytes, start: int) -> Prefix:
        """Return the longest cached prefix of the items that start at byte `start` of the body, or `NO_PREFIX`."""
        key = self._build_key(scope, body, start)
        known = self._prefixes.pop(key, None)
        if known is None:
            return NO_PREFIX
        self._prefixes[key] = known
        found = [one for one in known if body.startswith(one.items, start)]
        return max(found, key=lambda one: len(one.items), default=NO_PREFIX)

    def store(self, scope: Scope, prefix: Prefix, replaced: Prefix) -> None:
        """Store a prefix in place of the shorter one that it extends."""
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
        """Evict the least recently used entries until the cache is within its limits."""
        while self._prefixes and self._size > self._max_bytes:
            evicted = self._prefixes.pop(next(iter(self._prefixes)), ())
            self._size -= sum(map(_measure_prefix, evicted))


def _measure_prefix(prefix: Prefix) -> int:
    """Return the estimated memory of a prefix; its messages take about as much as their bytes."""
    return 2 * len(prefix.items) + len(prefix.written)
