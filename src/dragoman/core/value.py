"""The base class of core values: the pointer and spelling in the source document, and the extras.

Two values are equal when they mean the same. `where` and `spelling` describe the document from which a value was
parsed, not its meaning, so equality ignores them.
"""

from typing import Any

from msgspec import Struct


class Extras(Struct, frozen=True):
    """Fields that only `dialect` understands, kept as raw JSON by JSON pointer relative to their owner."""

    dialect: str
    fields: dict[str, bytes]


class Value(Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """Base of messages, parts, tools and replies."""

    where: str = ""
    """JSON pointer in the document from which this was parsed; empty for a value that Dragoman generated."""
    spelling: str = ""
    """The source dialect's own form where the core has one form for several; only that dialect uses it."""
    extras: Extras | None = None

    def __eq__(self, other: object) -> bool:
        """Compare meaning: every field except `where` and `spelling`."""
        if self.__class__ is not other.__class__:
            return False
        return all(getattr(self, name) == getattr(other, name) for name in self.__struct_fields__[2:])

    def __ne__(self, other: object) -> bool:
        """Use `__eq__`: otherwise Struct's own comparison of all fields would be used."""
        return not self == other

    def __hash__(self) -> int:
        """Hash the type only: equal values must hash alike, and extras hold dicts, which have no hash."""
        return hash(self.__class__)


def own_extras(value: Any, dialect: str) -> dict[str, bytes] | None:
    """Return the extras of `value` that belong to `dialect`, or None."""
    extras: Extras | None = value.extras
    return extras.fields if extras is not None and extras.dialect == dialect else None
