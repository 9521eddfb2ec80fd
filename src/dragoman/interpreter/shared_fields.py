"""Fields that two dialects share: those of one vendor by name and meaning, and words that callers of one borrow."""

from math import log

from dragoman.core.value import Extras
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.fitting import Fitting
from dragoman.wire import json
from dragoman.wire.pointer import escape

_CACHE_OPTIONS = "/prompt_cache_options"
_TIER = "/service_tier"
_STORE = "/store"
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


def shared_in_images(source: str, target: str) -> dict[str, str]:
    """Return the fields of an image that mean the same in both dialects, by their pointers in each."""
    here, there = DIALECTS.get(source), DIALECTS.get(target)
    if here is None or there is None or here is there or not here.image_detail or not there.image_detail:
        return {}
    return {here.image_detail: there.image_detail}


def shared_fields(source: str, target: str) -> frozenset[str]:
    """Return the pointers of request fields that mean the same in both dialects."""
    here, there = DIALECTS.get(source), DIALECTS.get(target)
    if here is None or there is None or here is there or here.issuer != there.issuer:
        return frozenset()
    return here.shared_fields & there.shared_fields


def shared_value(pointer: str, raw: bytes, fitting: Fitting) -> bytes | None:
    """Return a shared field as the target takes it; None, and booked, if it takes nothing of it."""
    if pointer == _TIER and json.peek(raw) not in fitting.traits.tiers:
        fitting.ledger.dropped(pointer, "the target has no such tier")
        return None
    if pointer == _STORE and raw == b"true":
        why = "kept in the target's form: it cannot be fetched again in the caller's"
        fitting.ledger.approximated(pointer, why)
    return _cache_options(raw, fitting) if pointer == _CACHE_OPTIONS else raw


def _cache_options(raw: bytes, fitting: Fitting) -> bytes | None:
    pointer = _CACHE_OPTIONS
    names, lifetimes = fitting.traits.cache_options, fitting.traits.options_lifetimes
    if not names or not json.is_object(raw):
        fitting.ledger.dropped(pointer, "the model has no such setting")
        return None
    kept: dict[str, bytes] = {}
    for name, value in json.decode_object(raw).items():
        place = f"{pointer}/{escape(name)}"
        if name not in names:
            fitting.ledger.dropped(place, "not known to the target")
            continue
        kept[name] = bytes(value)
        asked = json.peek(value) if name == "ttl" else None
        if isinstance(asked, str) and (nearest := nearest_lifetime(asked, lifetimes)) != asked:
            fitting.ledger.approximated(place, f"the target's nearest lifetime is {nearest or 'its default'!r}")
            del kept[name]
            if nearest:
                kept[name] = json.encode(nearest)
    return json.with_members(b"{}", kept) if kept else None
