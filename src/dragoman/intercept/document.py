"""A Gemini request whose fields can be changed one by one; all other bytes stay the same.

In Code Assist's envelope the same fields are one level deeper. Google accepts snake_case as well as camelCase, so a
field is found under either name, and written as the client wrote it.
"""

from dragoman.wire import json
from dragoman.wire.lookup import to_snake_case
from dragoman.wire.splice import remove_member, set_member

_INNER = "request"


def find_member_name(members: dict[str, bytes], name: str) -> str:
    """Return how the field `name` (in camelCase) is spelled in `members`; `name` itself if it is missing."""
    snake = to_snake_case(name)
    return snake if snake in members and name not in members else name


def split_members(raw: bytes) -> dict[str, bytes]:
    """Return the fields of an object with their raw values."""
    return {name: bytes(value) for name, value in json.decode_object(raw).items()}


def items_of(raw: bytes) -> list[bytes]:
    """Return the items of a list; Google also accepts one item instead of a list."""
    if json.first_byte(raw) == b"[":
        return [bytes(item) for item in json.decode_array(raw)]
    if json.first_byte(raw) == b"{":
        return [raw]
    raise json.Malformed("expected a list of objects")


def join_items(items: list[bytes]) -> bytes:
    """Return a JSON list of raw items."""
    return b"[" + b",".join(items) + b"]"


class ObjectFields:
    """A JSON object whose fields can be changed."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._members = split_members(raw)
        self._changed: dict[str, bytes | None] = {}
        """Fields that were set or removed (None); applied when `raw` is read."""

    def get(self, name: str) -> bytes | None:
        """Return a field by its camelCase name; None if it is missing or null."""
        raw = self._members.get(find_member_name(self._members, name))
        return None if raw == b"null" else raw

    def set(self, name: str, raw: bytes) -> None:
        """Set a field."""
        written = find_member_name(self._members, name)
        self._members[written] = self._changed[written] = raw

    def remove(self, name: str) -> None:
        """Remove a field."""
        written = find_member_name(self._members, name)
        if self._members.pop(written, None) is not None:
            self._changed[written] = None

    @property
    def raw(self) -> bytes:
        """The object with all changes applied."""
        for name, raw in self._changed.items():
            self._raw = remove_member(self._raw, name) if raw is None else set_member(self._raw, name, raw)
        self._changed.clear()
        return self._raw

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields as written."""
        return tuple(self._members)


class GeminiDocument(ObjectFields):
    """A request body; its fields are those of the generateContent request, also inside the envelope."""

    def __init__(self, body: bytes, *, wrapped: bool = False) -> None:
        self.envelope: ObjectFields | None = ObjectFields(body) if wrapped else None
        """The outer object of Code Assist; it contains the model."""
        inner = self.envelope.get(_INNER) if self.envelope is not None else body
        if inner is None:
            raise json.Malformed("the Code Assist envelope has no `request`", f"/{_INNER}")
        super().__init__(inner)

    def encode(self) -> bytes:
        """Return the complete body."""
        if self.envelope is None:
            return self.raw
        if self.envelope.get(_INNER) != self.raw:
            self.envelope.set(_INNER, self.raw)
        return self.envelope.raw
