"""Adapt cache marks to the target: lifetimes it knows, no more marks than it takes, in an order it takes.

Of too many marks the last stay: a mark keeps all that is before it, so the earlier ones matter least. A mark that asks
to live longer than one before it asks for as long as that.
"""

from collections.abc import Iterator, Sequence
from math import log
from operator import is_

from msgspec import structs

from dragoman.core.parts import AnyPart, ToolResult
from dragoman.core.request import Message
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.ledger import Ledger
from dragoman.wire import json

BORROWED_MARK = "/cache_control"
"""A cache mark in Anthropic's words, which many callers of Chat write too."""


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def borrowed_mark(extras: Extras) -> tuple[str | None, str]:
    """Return place and lifetime of a cache mark in another vendor's words; no place if there is none."""
    raw = extras.fields.get(BORROWED_MARK)
    match json.peek(raw) if raw is not None else None:
        case {"type": "ephemeral", "ttl": str(lifetime), **rest} if not rest:
            return BORROWED_MARK, lifetime
        case {"type": "ephemeral", **rest} if not rest:
            return BORROWED_MARK, ""
        case _:
            return None, ""


def nearest_lifetime(lifetime: str, allowed: tuple[str, ...]) -> str:
    """Return the allowed lifetime that is nearest by ratio; "", the default, for none and for a word nobody knows."""
    if lifetime in allowed:
        return lifetime
    wanted = seconds(lifetime)
    return min(allowed, key=lambda word: abs(log(seconds(word) / wanted))) if wanted and allowed else ""


def seconds(lifetime: str) -> int:
    """Return how long a lifetime is; 0 for a word nobody knows."""
    number, unit = lifetime[:-1], lifetime[-1:]
    return int(number) * _SECONDS.get(unit, 0) if number.isdecimal() and len(number) < 10 else 0


def adapt_mark(lifetime: str, place: str, adaptation: Adaptation, *, spoken: bool) -> str | None:
    """Return how long the target is asked to keep what ends here; None where it takes no mark."""
    traits = adaptation.traits
    if not traits.cache_marks:
        adaptation.ledger.dropped(place, "the target has no cache marks")
        return None
    if spoken and not traits.marks_anywhere:
        adaptation.ledger.dropped(place, "the target has no cache marks on what the model said")
        return None
    nearest = nearest_lifetime(lifetime, traits.cache_lifetimes)
    if nearest != lifetime:
        kept = f"{nearest!r} is the nearest" if nearest else "its default stands"
        adaptation.ledger.approximated(f"{place}/ttl", f"the target keeps nothing for {lifetime!r}: {kept}")
    adaptation.marked = True
    return nearest


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


def limit_marks(turns: tuple[Message, ...], traits: Traits, ledger: Ledger) -> tuple[Message, ...]:
    """Return turns with as many marks as the target takes, in an order it takes."""
    if traits.cache_marks_max is None:
        return turns
    count = sum(1 for turn in turns for part in turn.parts for _ in _asked(part))
    return _Marks(traits, ledger, count - traits.cache_marks_max).limit(turns) if count else turns


class _Marks:
    def __init__(self, traits: Traits, ledger: Ledger, surplus: int) -> None:
        self._most = traits.cache_marks_max
        self._default = traits.cache_lifetimes[0]
        """How long a mark lives that does not say it."""
        self._ledger = ledger
        self._surplus = surplus
        self._shortest: str | None = None

    def limit(self, turns: tuple[Message, ...]) -> tuple[Message, ...]:
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
