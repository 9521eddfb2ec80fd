"""Ids that the simulator assigns to items, and the data encoded in them.

The vendor remembers which items belong together: a call that followed a reasoning item must come back with that item,
and an item of a reply that was not stored is unknown later. Here the id itself encodes that: the reply it belongs to,
its position, whether the reply was stored, and whether a reasoning item came before it.
"""

import hashlib

from msgspec import Struct

_DIGIT_COUNT = 24
_CHECKSUM_LENGTH = 20
_STORED_FLAG = 1
_AFTER_THOUGHT_FLAG = 2


class ItemId(Struct, frozen=True, kw_only=True):
    """The data in an id that the simulator assigned. `reply` are the 24 digits of the reply's own id."""

    prefix: str
    reply: str
    index: int
    stored: bool
    after_thought: bool


def encode_item_id(item: ItemId) -> str:
    """Return an id; it is always the same for the same position of the same reply."""
    flags = _STORED_FLAG * item.stored | _AFTER_THOUGHT_FLAG * item.after_thought
    payload = f"{item.reply:0>{_DIGIT_COUNT}}{item.index:02x}{flags:02x}"
    return f"{item.prefix}_{payload}{_build_checksum(payload)}"


def decode_item_id(item_id: str) -> ItemId | None:
    """Decode an id; None if the simulator did not assign it."""
    prefix, _, payload = item_id.rpartition("_")
    data, check = payload[:-_CHECKSUM_LENGTH], payload[-_CHECKSUM_LENGTH:]
    if len(data) != _DIGIT_COUNT + 4 or check != _build_checksum(data):
        return None
    flags = int(data[-2:], 16)
    return ItemId(
        prefix=prefix,
        reply=data[:_DIGIT_COUNT],
        index=int(data[_DIGIT_COUNT : _DIGIT_COUNT + 2], 16),
        stored=bool(flags & _STORED_FLAG),
        after_thought=bool(flags & _AFTER_THOUGHT_FLAG),
    )


def build_thought_id(item: ItemId) -> str:
    """Return the id of the reasoning item right before an item."""
    return encode_item_id(
        ItemId(prefix="rs", reply=item.reply, index=item.index - 1, stored=item.stored, after_thought=False)
    )


def encode_response_id(reply: str) -> str:
    """Return the id of a response."""
    return _encode_id("resp", reply)


def encode_conversation_id(digits: str) -> str:
    """Return the id of a conversation."""
    return _encode_id("conv", digits)


def decode_response_id(response_id: str) -> str:
    """Return the digits of a reply from its response id; "" if the simulator did not assign it."""
    return _decode_digits("resp", response_id)


def is_issued_conversation(conversation_id: str) -> bool:
    """Return whether the simulator assigned this conversation id."""
    return bool(_decode_digits("conv", conversation_id))


def _encode_id(prefix: str, digits: str) -> str:
    payload = f"{digits:0>{_DIGIT_COUNT}}ffff"
    return f"{prefix}_{payload}{_build_checksum(payload)}"


def _decode_digits(prefix: str, encoded: str) -> str:
    digits = encoded.removeprefix(f"{prefix}_")[:_DIGIT_COUNT]
    return digits if len(digits) == _DIGIT_COUNT and _encode_id(prefix, digits) == encoded else ""


def _build_checksum(text: str) -> str:
    return hashlib.sha256(f"dragoman-sim {text}".encode()).hexdigest()[:_CHECKSUM_LENGTH]
