"""Ids the simulator gives to items, and what it knows of an id it gave.

The vendor remembers which item came with which: a call that followed a thought must come back with that thought, and
an item of a reply that was not stored is unknown later. Here the id itself remembers: it holds the reply it belongs to,
its place, whether the reply was stored, and whether a thought went before.
"""

import hashlib

from msgspec import Struct

_DIGIT_COUNT = 24
_CHECKSUM_LENGTH = 20
_STORED_FLAG = 1
_AFTER_THOUGHT_FLAG = 2


class ItemId(Struct, frozen=True, kw_only=True):
    """What an id of ours says. `reply` are the 24 digits of the reply's own id."""

    prefix: str
    reply: str
    index: int
    stored: bool
    after_thought: bool


def encode_item_id(item: ItemId) -> str:
    """Make an id; the same twice for the same place of the same reply."""
    marks = _STORED_FLAG * item.stored | _AFTER_THOUGHT_FLAG * item.after_thought
    told = f"{item.reply:0>{_DIGIT_COUNT}}{item.index:02x}{marks:02x}"
    return f"{item.prefix}_{told}{_build_checksum(told)}"


def decode_item_id(item_id: str) -> ItemId | None:
    """Read an id; None for one the simulator did not give."""
    prefix, _, told = item_id.rpartition("_")
    known, check = told[:-_CHECKSUM_LENGTH], told[-_CHECKSUM_LENGTH:]
    if len(known) != _DIGIT_COUNT + 4 or check != _build_checksum(known):
        return None
    marks = int(known[-2:], 16)
    return ItemId(
        prefix=prefix,
        reply=known[:_DIGIT_COUNT],
        index=int(known[_DIGIT_COUNT : _DIGIT_COUNT + 2], 16),
        stored=bool(marks & _STORED_FLAG),
        after_thought=bool(marks & _AFTER_THOUGHT_FLAG),
    )


def build_thought_id(item: ItemId) -> str:
    """Return the id of the thought that came right before an item."""
    return encode_item_id(
        ItemId(prefix="rs", reply=item.reply, index=item.index - 1, stored=item.stored, after_thought=False)
    )


def encode_response_id(reply: str) -> str:
    """Return the id of a whole reply."""
    return _encode_id("resp", reply)


def encode_conversation_id(digits: str) -> str:
    """Return the id of a conversation."""
    return _encode_id("conv", digits)


def decode_response_id(response_id: str) -> str:
    """Return the reply an id of a whole reply stands for; "" for an id the simulator did not give."""
    return _decode_digits("resp", response_id)


def is_issued_conversation(conversation_id: str) -> bool:
    """Whether the simulator gave this id of a conversation."""
    return bool(_decode_digits("conv", conversation_id))


def _encode_id(prefix: str, digits: str) -> str:
    told = f"{digits:0>{_DIGIT_COUNT}}ffff"
    return f"{prefix}_{told}{_build_checksum(told)}"


def _decode_digits(prefix: str, encoded: str) -> str:
    digits = encoded.removeprefix(f"{prefix}_")[:_DIGIT_COUNT]
    return digits if len(digits) == _DIGIT_COUNT and _encode_id(prefix, digits) == encoded else ""


def _build_checksum(text: str) -> str:
    return hashlib.sha256(f"dragoman-sim {text}".encode()).hexdigest()[:_CHECKSUM_LENGTH]
