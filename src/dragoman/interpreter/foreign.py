"""What only its own dialect understands is taken off a value, and booked."""

from typing import Any

from dragoman.core.parts import Part
from dragoman.core.value import Extras, Value
from dragoman.interpreter.fitting import Fitting
from dragoman.interpreter.kin import borrowed_mark, shared_in_parts


def drop_extras(value: Value, fitting: Fitting) -> None:
    """Book every field that only another dialect understands."""
    if value.extras is not None:
        for pointer in value.extras.fields:
            fitting.ledger.dropped(value.where + pointer, "not known to the target")


def without_foreign(part: Part, fitting: Fitting) -> dict[str, Any]:
    """Return the changes that take from a part what only its own dialect can say, and book them."""
    changes: dict[str, Any] = {}
    if part.extras is not None:
        place, lifetime = borrowed_mark(part.extras)
        borrowed = place if part.cache is None and fitting.traits.cache_marks else None
        if borrowed is not None:
            changes["cache"] = lifetime
        shared = shared_in_parts(part.extras.dialect, fitting.traits.dialect)
        kept: dict[str, bytes] = {}
        for pointer, raw in part.extras.fields.items():
            if pointer in shared:
                kept[shared[pointer]] = raw
            elif pointer != borrowed:
                fitting.ledger.dropped(part.where + pointer, "not known to the target")
        changes["extras"] = Extras(fitting.traits.dialect, kept) if kept else None
    if part.cache is not None and not fitting.traits.cache_marks:
        fitting.ledger.field_dropped("part.cache", "the target has no cache marks", part)
        changes["cache"] = None
    if part.signature is not None and part.signature.issuer != fitting.traits.issuer:
        fitting.ledger.field_dropped("part.signature", f"signed by {part.signature.issuer}", part)
        changes["signature"] = None
    return changes
