"""State of a streamed reply while it is decoded: its open blocks, and its usage so far.

Rules: pieces of unknown text are concatenated, and any other value is replaced by the latest; the counts of usage are
totals that replace earlier ones field by field and must not be added.
"""

from typing import Any

from msgspec import Raw, structs

from dragoman.core.parts import AnyPart, Reasoning, Text, ToolCall
from dragoman.core.response import Usage
from dragoman.core.value import Extras
from dragoman.dialects.messages.response import read_usage
from dragoman.dialects.messages.wire import NAME, Delta, JsonDelta, TextDelta, ThinkingDelta, UsageShape
from dragoman.wire.json import decode, decode_object, encode, is_json, with_members
from dragoman.wire.pointer import unescape
from dragoman.wire.unread import Unread

_DELTA_TYPES: dict[type[AnyPart], type[Delta]] = {Text: TextDelta, ToolCall: JsonDelta, Reasoning: ThinkingDelta}


class OpenBlock:
    """A block between its start and stop events; `index` is the index of its part, -1 until the part has started."""

    __slots__ = ("_fields", "delta_type", "fragments", "index", "initial_input", "part")

    def __init__(self, part: AnyPart) -> None:
        self.part = part
        self.index = -1
        self.delta_type = _DELTA_TYPES.get(type(part))
        self.fragments: list[str] | None = None if isinstance(part, Text | Reasoning) else []
        self.initial_input = ""
        """The input of a call in its start event, if it is not empty."""
        self._fields: dict[str, list[Any]] = {}
        """Unknown members of deltas by pointer, each with its pieces."""

    def add_fields(self, fields: dict[str, bytes]) -> None:
        """Collect unknown members of a delta until the block is complete: they may be text in pieces."""
        for pointer, raw in fields.items():
            self._fields.setdefault(pointer, []).append(decode(raw))

    def join_fields(self) -> dict[str, Any]:
        """Return the unknown members of the deltas by pointer."""
        return {pointer: _join_pieces(pieces) for pointer, pieces in self._fields.items()}

    def complete(self, raw: bytes) -> bytes:
        """Return the JSON of an opaque block with the content of its deltas inserted."""
        streamed = "".join(self.fragments or ())
        if not streamed and not self._fields:
            return raw
        members = {name: bytes(value) for name, value in decode_object(raw).items()}
        if streamed:
            members["input"] = streamed.encode() if is_json(streamed) else encode(streamed)
        for pointer, value in self.join_fields().items():
            name = unescape(pointer[1:])
            initial = decode(members[name]) if name in members else None
            members[name] = encode(initial + value if isinstance(initial, str) and isinstance(value, str) else value)
        return with_members(b"{}", members)


def _join_pieces(pieces: list[Any]) -> Any:
    texts: list[str] = []
    for piece in reversed(pieces):
        if not isinstance(piece, str):
            break
        texts.append(piece)
    return "".join(reversed(texts)) if texts else pieces[-1]


class UsageTotals:
    """The usage of a reply so far."""

    def __init__(self) -> None:
        self._counts = UsageShape()
        self._searches: int | None = None
        self._fields: dict[str, bytes] = {}

    def update(self, usage: UsageShape, unread: Unread | None, where: str) -> Usage:
        """Replace the counts that an event has, and return all counts."""
        for name in usage.__struct_fields__:
            value = getattr(usage, name)
            if value is not None and not isinstance(value, Raw):
                setattr(self._counts, name, value)
        update = read_usage(usage, unread.take(where) if unread is not None else None)
        if update.extras is not None:
            self._fields.update(update.extras.fields)
        if update.searches is not None:
            self._searches = update.searches
        totals = read_usage(self._counts, None)
        extras = Extras(NAME, dict(self._fields)) if self._fields else None
        return structs.replace(totals, searches=self._searches, extras=extras)
