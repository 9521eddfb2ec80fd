"""Keep to how many cache marks a target takes, and to their order: Claude takes four, the longest-lived first.

Of too many the last stand: a mark keeps all that is before it, so the earlier ones matter least. A mark that asks to
live longer than one before it asks for as long as that.
"""

from collections.abc import Iterator, Sequence
from operator import is_

from msgspec import structs

from dragoman.core.parts import AnyPart, ToolResult
from dragoman.core.request import Message
from dragoman.core.traits import Traits
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.shared_fields import BORROWED_MARK, borrowed_mark, seconds


def marks_agree(messages: Sequence[Message], most: int) -> bool:
    """Tell whether the marks of a history can all stand wherever it is cut: few enough, and of one lifetime."""
    lifetimes = [lifetime for message in messages for part in message.parts for lifetime in _asked(part)]
    return len(lifetimes) <= most and len(set(lifetimes)) < 2


def _asked(part: AnyPart) -> Iterator[str]:
    for item in part.content if isinstance(part, ToolResult) else ():
        yield from _asked(item)
    if part.cache is not None:
        yield part.cache
    elif part.extras is not None:
        place, lifetime = borrowed_mark(part.extras)
        if place is not None:
            yield lifetime


def fit_marks(turns: tuple[Message, ...], traits: Traits, ledger: Ledger) -> tuple[Message, ...]:
    """Return turns with as many marks as the target takes, in an order it takes."""
    if traits.cache_marks_max is None:
        return turns
    count = sum(1 for turn in turns for part in turn.parts for _ in _asked(part))
    return _Marks(traits, ledger, count - traits.cache_marks_max).fitted(turns) if count else turns


class _Marks:
    def __init__(self, traits: Traits, ledger: Ledger, surplus: int) -> None:
        self._most = traits.cache_marks_max
        self._default = traits.cache_lifetimes[0]
        """How long a mark lives that does not say it."""
        self._ledger = ledger
        self._surplus = surplus
        self._shortest: str | None = None

    def fitted(self, turns: tuple[Message, ...]) -> tuple[Message, ...]:
        fitted: list[Message] = []
        for turn in turns:
            parts = tuple(self._part(part) for part in turn.parts)
            same = all(map(is_, parts, turn.parts))
            fitted.append(turn if same else structs.replace(turn, parts=parts))
        return tuple(fitted)

    def _part(self, part: AnyPart) -> AnyPart:
        if isinstance(part, ToolResult) and any(item.cache is not None for item in part.content):
            content = tuple(self._part(item) for item in part.content)
            part = structs.replace(part, content=content)
        if part.cache is None:
            return part
        lifetime = self._lifetime(part, part.cache)
        return part if lifetime == part.cache else structs.replace(part, cache=lifetime)

    def _lifetime(self, part: AnyPart, asked: str) -> str | None:
        if self._surplus > 0:
            self._surplus -= 1
            self._ledger.dropped(self._place(part), f"the target takes {self._most} cache marks: the last stand")
            return None
        shortest = self._shortest
        if shortest is not None and seconds(asked or self._default) > seconds(shortest or self._default):
            self._ledger.approximated(f"{self._place(part)}/ttl", "no mark may live longer than one before it")
            return shortest
        self._shortest = asked
        return asked

    def _place(self, part: AnyPart) -> str:
        """Return where a mark stands in the caller's document, in the caller's words or in borrowed ones."""
        place, borrowed = self._ledger.place("part.cache", part), part.where + BORROWED_MARK
        return borrowed if self._ledger.has(borrowed) and not self._ledger.has(place) else place
