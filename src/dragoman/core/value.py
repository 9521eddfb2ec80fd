"""What every core value shares: where it stood, how it was spelled, and what only its own dialect understands.

Two values are equal when they mean the same. `where` and `spelling` are about the document a value was
read from, not about its meaning, so equality ignores them.
"""

from typing import Any

from msgspec import Struct


class Extras(Struct, frozen=True):
    """Fields nobody but `dialect` understands, kept as raw JSON by JSON pointer relative to their owner."""

    dialect: str
    fields: dict[str, bytes]


class Value(Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """Base of messages, parts, tools and replies."""

    where: str = ""
    """JSON pointer in the document this was read from; empty for a value we made."""
    spelling: str = ""
    """The source dialect's own word where the core has one word for several; read only by that dialect."""
    extras: Extras | None = None

    def __eq__(self, other: object) -> bool:
        """Compare meaning: every field except `where` and `spelling`."""
        if self.__class__ is not other.__class__:
            return False
        return all(getattr(self, name) == getattr(other, name) for name in self.__struct_fields__[2:])

    def __ne__(self, other: object) -> bool:
        """Without this, Struct's own comparison of all fields would answer."""
        return not self == other

    def __hash__(self) -> int:
        """Equal values hash alike; extras hold dicts, so only the type takes part."""
        return hash(self.__class__)


def own_extras(value: Any, dialect: str) -> dict[str, bytes] | None:
    """Return the extras of `value` that belong to `dialect`, or None."""
    extras: Extras | None = value.extras
    return extras.fields if extras is not None and extras.dialect == dialect else None
