"""Adapt cache marks (prompt cache breakpoints) to the target: their lifetimes, their number and their order.

If there are too many marks, the last are kept: a mark caches everything before it, so the earlier ones matter least. A
mark with a longer lifetime than one before it gets the lifetime of that one.
"""

from collections.abc import Iterator, Sequence
from math import log
from operator import is_

from msgspec import structs

from dragoman.core.parts import AnyPart, ToolResult
from dragoman.core.request import Message, Request
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.ledger import Ledger
from dragoman.wire import json

CACHE_CONTROL = "/cache_control"
"""Anthropic's field for a cache mark, which many Chat clients send too."""


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def read_cache_control(extras: Extras) -> tuple[str | None, str]:
    """Return pointer and lifetime of a `cache_control` field that another dialect borrowed; no pointer if none."""
    raw = extras.fields.get(CACHE_CONTROL)
    match json.peek(raw) if raw is not None else None:
        case {"type": "ephemeral", "ttl": str(lifetime), **rest} if not rest:
            return CACHE_CONTROL, lifetime
        case {"type": "ephemeral", **rest} if not rest:
            return CACHE_CONTROL, ""
        case _:
            return None, ""


def find_nearest_lifetime(lifetime: str, allowed: tuple[str, ...]) -> str:
    """Return the allowed lifetime that is nearest by ratio; "", the default, if none is given or it is unknown."""
    if lifetime in allowed:
        return lifetime
    requested = parse_lifetime(lifetime)
    return min(allowed, key=lambda one: abs(log(parse_lifetime(one) / requested))) if requested and allowed else ""


def parse_lifetime(lifetime: str) -> int:
    """Return a lifetime such as "5m" in seconds; 0 if it cannot be parsed."""
    number, unit = lifetime[:-1], lifetime[-1:]
    return int(number) * _SECONDS.get(unit, 0) if number.isdecimal() and len(number) < 10 else 0


def adapt_mark(lifetime: str, pointer: str, adaptation: Adaptation, *, in_assistant_turn: bool) -> str | None:
    """Return the cache mark's lifetime at the target; None if the target takes no mark here."""
    traits = adaptation.traits
    if not traits.cache_marks:
        adaptation.ledger.report_dropped(pointer, "the target has no cache marks")
        return None
    if in_assistant_turn and not traits.marks_anywhere:
        adaptation.ledger.report_dropped(pointer, "the target takes no cache marks in assistant messages")
        return None
    nearest = find_nearest_lifetime(lifetime, traits.cache_lifetimes)
    if nearest != lifetime:
        used = f"{nearest!r} is the nearest" if nearest else "its default is used"
        adaptation.ledger.report_approximated(
            f"{pointer}/ttl", f"the target has no cache lifetime {lifetime!r}: {used}"
        )
    adaptation.has_cache_marks = True
    return nearest


def has_marks(request: Request, document: bytes) -> bool:
    """Return whether a request has a cache mark, in the document that it comes from or in its messages."""
    if CACHE_CONTROL[1:].encode() in document:
        return True
    return any(True for message in request.messages for part in message.parts for _ in _list_lifetimes(part))


def are_marks_compatible(messages: Sequence[Message], max_marks: int) -> bool:
    """Return whether the marks of a history are valid wherever it is split: few enough, and of one lifetime."""
    lifetimes = [lifetime for message in messages for part in message.parts for lifetime in _list_lifetimes(part)]
    return len(lifetimes) <= max_marks and len(set(lifetimes)) < 2


def _list_lifetimes(part: AnyPart) -> Iterator[str]:
    for item in part.content if isinstance(part, ToolResult) else ():
        yield from _list_lifetimes(item)
    if part.cache is not None:
        yield part.cache
    elif part.extras is not None:
        pointer, lifetime = read_cache_control(part.extras)
        if pointer is not None:
            yield lifetime


def limit_marks(turns: tuple[Message, ...], traits: Traits, ledger: Ledger) -> tuple[Message, ...]:
    """Return turns with at most as many marks as the target takes, and lifetimes in the order it requires."""
    if traits.cache_marks_max is None:
        return turns
    count = sum(1 for turn in turns for part in turn.parts for _ in _list_lifetimes(part))
    return _MarkLimiter(traits, ledger, count - traits.cache_marks_max).limit(turns) if count else turns


class _MarkLimiter:
    def __init__(self, traits: Traits, ledger: Ledger, surplus: int) -> None:
        self._max_marks = traits.cache_marks_max
        self._default = traits.cache_lifetimes[0]
        """The lifetime of a mark that gives none."""
        self._ledger = ledger
        self._surplus = surplus
        self._shortest: str | None = None

    def limit(self, turns: tuple[Message, ...]) -> tuple[Message, ...]:
        limited: list[Message] = []
        for turn in turns:
            parts = tuple(self._limit_part(part) for part in turn.parts)
            is_same = all(map(is_, parts, turn.parts))
            limited.append(turn if is_same else structs.replace(turn, parts=parts))
        return tuple(limited)

    def _limit_part(self, part: AnyPart) -> AnyPart:
        if isinstance(part, ToolResult) and any(item.cache is not None for item in part.content):
            content = tuple(self._limit_part(item) for item in part.content)
            part = structs.replace(part, content=content)
        if part.cache is None:
            return part
        lifetime = self._limit_lifetime(part, part.cache)
        return part if lifetime == part.cache else structs.replace(part, cache=lifetime)

    def _limit_lifetime(self, part: AnyPart, lifetime: str) -> str | None:
        if self._surplus > 0:
            self._surplus -= 1
            self._ledger.report_dropped(
                self._find_pointer(part), f"the target takes at most {self._max_marks} cache marks: the last are kept"
            )
            return None
        shortest = self._shortest
        if shortest is not None and parse_lifetime(lifetime or self._default) > parse_lifetime(
            shortest or self._default
        ):
            self._ledger.report_approximated(
                f"{self._find_pointer(part)}/ttl", "a cache mark may not outlive one before it"
            )
            return shortest
        self._shortest = lifetime
        return lifetime

    def _find_pointer(self, part: AnyPart) -> str:
        """Return the pointer of a mark in the caller's document: in its dialect's own field, or in `cache_control`."""
        pointer, borrowed = self._ledger.find_pointer("part.cache", part), part.where + CACHE_CONTROL
        return borrowed if self._ledger.has(borrowed) and not self._ledger.has(pointer) else pointer
