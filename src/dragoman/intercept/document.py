"""A request of Gemini's as an object that can be changed member by member; every byte of the others stays.

In Code Assist's envelope the same members stand one level deeper. Google reads snake_case as well as camelCase, so a
member is found by either, and written as the client wrote it.
"""

import re

from dragoman.wire import json
from dragoman.wire.splice import remove_member, set_member

_INNER = "request"
_CAPITAL = re.compile(r"[A-Z]")


def find_member_name(members: dict[str, bytes], name: str) -> str:
    """Return how a member called `name` in camelCase is written; as it is asked for where there is none."""
    snake = _CAPITAL.sub(lambda found: "_" + found[0].lower(), name)
    return snake if snake in members and name not in members else name


def split_members(raw: bytes) -> dict[str, bytes]:
    """Return the members of an object, each as it stands there."""
    return {name: bytes(value) for name, value in json.decode_object(raw).items()}


def items_of(raw: bytes) -> list[bytes]:
    """Return the items of a list; Google takes one item for a list of it."""
    if json.first_byte(raw) == b"[":
        return [bytes(item) for item in json.decode_array(raw)]
    if json.first_byte(raw) == b"{":
        return [raw]
    raise json.Malformed("expected a list of objects")


def join_items(items: list[bytes]) -> bytes:
    """Write a list."""
    return b"[" + b",".join(items) + b"]"


class ObjectFields:
    """An object whose members can be changed."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._members = split_members(raw)
        self._changed: dict[str, bytes | None] = {}
        """What was set, and what was taken out: written when somebody wants to read it."""

    def get(self, name: str) -> bytes | None:
        """Return a member by its name in camelCase; None where there is none, or null."""
        raw = self._members.get(find_member_name(self._members, name))
        return None if raw == b"null" else raw

    def set(self, name: str, raw: bytes) -> None:
        """Set a member."""
        written = find_member_name(self._members, name)
        self._members[written] = self._changed[written] = raw

    def remove(self, name: str) -> None:
        """Take a member out."""
        written = find_member_name(self._members, name)
        if self._members.pop(written, None) is not None:
            self._changed[written] = None

    @property
    def raw(self) -> bytes:
        """The object as it is now."""
        for name, raw in self._changed.items():
            self._raw = remove_member(self._raw, name) if raw is None else set_member(self._raw, name, raw)
        self._changed.clear()
        return self._raw

    @property
    def names(self) -> tuple[str, ...]:
        """Its members as they are written."""
        return tuple(self._members)


class GeminiDocument(ObjectFields):
    """A request: its members are those of the generateContent request, also in the envelope."""

    def __init__(self, body: bytes, *, wrapped: bool = False) -> None:
        self.envelope: ObjectFields | None = ObjectFields(body) if wrapped else None
        """What stands around it; the model is named there."""
        inner = self.envelope.get(_INNER) if self.envelope is not None else body
        if inner is None:
            raise json.Malformed("the envelope has no request", f"/{_INNER}")
        super().__init__(inner)

    def encode(self) -> bytes:
        """Return the whole body."""
        if self.envelope is None:
            return self.raw
        if self.envelope.get(_INNER) != self.raw:
            self.envelope.set(_INNER, self.raw)
        return self.envelope.raw
