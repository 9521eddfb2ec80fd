"""What only its own dialect understands is taken off a value, and booked."""

from typing import Any

from dragoman.core.parts import Media, Part, Signature, ToolCall
from dragoman.core.request import Role
from dragoman.core.value import Extras, Value
from dragoman.interpreter.fitting import Fitting
from dragoman.interpreter.implied import book_unsaid, is_echo, says_nothing
from dragoman.interpreter.shared_fields import borrowed_mark, nearest_lifetime, shared_in_images


def drop_extras(value: Value, fitting: Fitting) -> None:
    """Book every field that only another dialect understands."""
    if value.extras is not None and value.extras.dialect != fitting.traits.dialect:
        for pointer, raw in value.extras.fields.items():
            book_unsaid(value.where + pointer, raw, value.extras.dialect, fitting.traits.dialect, fitting.ledger)


def without_foreign(part: Part, role: Role, fitting: Fitting) -> dict[str, Any]:
    """Return the changes that take from a part of a message what only its own dialect can say, and book them."""
    traits = fitting.traits
    changes: dict[str, Any] = {}
    cache, place = part.cache, fitting.ledger.place("part.cache", part) if part.cache is not None else ""
    if part.extras is not None and part.extras.dialect != traits.dialect:
        borrowed, lifetime = borrowed_mark(part.extras)
        if borrowed is not None and cache is None and traits.cache_marks:
            cache, place = lifetime, part.where + borrowed
        else:
            borrowed = None
        image = isinstance(part, Media) and part.kind == "image"
        shared = shared_in_images(part.extras.dialect, traits.dialect) if image else {}
        kept: dict[str, bytes] = {}
        for pointer, raw in part.extras.fields.items():
            if pointer in shared:
                kept[shared[pointer]] = raw
            elif pointer != borrowed and not is_echo(part, pointer, raw):
                book_unsaid(part.where + pointer, raw, part.extras.dialect, fitting.traits.dialect, fitting.ledger)
        changes["extras"] = Extras(traits.dialect, kept) if kept else None
    if cache is not None:
        fitted = _fit_mark(cache, place, fitting, spoken=role == "assistant" or isinstance(part, ToolCall))
        if fitted != part.cache:
            changes["cache"] = fitted
    if part.signature is not None and part.signature.issuer != traits.issuer:
        drop_signature(part, part.signature, fitting)
        changes["signature"] = None
    return changes


def drop_signature(part: Part, signature: Signature, fitting: Fitting) -> None:
    """Book a signature that the target cannot use, unless it only stands for one that is missing."""
    if not says_nothing(signature):
        fitting.ledger.field_dropped("part.signature", f"signed by {signature.issuer}", part)


def _fit_mark(lifetime: str, place: str, fitting: Fitting, *, spoken: bool) -> str | None:
    """Return how long the target is asked to keep what ends here; None where it takes no mark."""
    traits = fitting.traits
    if not traits.cache_marks:
        fitting.ledger.dropped(place, "the target has no cache marks")
        return None
    if spoken and not traits.marks_anywhere:
        fitting.ledger.dropped(place, "the target has no cache marks on what the model said")
        return None
    nearest = nearest_lifetime(lifetime, traits.cache_lifetimes)
    if nearest != lifetime:
        kept = f"{nearest!r} is the nearest" if nearest else "its default stands"
        fitting.ledger.approximated(f"{place}/ttl", f"the target keeps nothing for {lifetime!r}: {kept}")
    fitting.marked = True
    return nearest
