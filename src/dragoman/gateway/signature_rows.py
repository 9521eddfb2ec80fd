"""Convert what is signed in a section of a reply to a row of the store and back."""

from collections.abc import Mapping

import msgspec

from dragoman.core.parts import Signature
from dragoman.interpreter.translation import PlacedSignature, SavedSignatures
from dragoman.sessions.signatures import SignatureRow

_MAX_STORED = 1 << 20
"""Larger reasoning before one call is not stored: the next request is sent without it."""
_ENTRY_BYTES = 200
"""The estimated size of a cache entry without its values."""
_PLACED = msgspec.json.Decoder(tuple[PlacedSignature, ...])


def build_row(saved: SavedSignatures) -> SignatureRow | None:
    """Return the row for what is signed in a section; None if that is nothing, or too large."""
    issuer, value = (saved.call.issuer, saved.call.value) if saved.call is not None else ("", "")
    reasoning = msgspec.json.encode(saved.placed) if saved.placed else b""
    if len(value) + len(reasoning) > _MAX_STORED or not (value or reasoning):
        return None
    return SignatureRow(issuer, value, reasoning)


def read_row(row: SignatureRow) -> SavedSignatures:
    """Return what is signed in the section of a row."""
    call = Signature(row.issuer, row.value) if row.value else None
    return SavedSignatures(call, _PLACED.decode(row.reasoning) if row.reasoning else ())


def measure_saved(saved: Mapping[str, SavedSignatures]) -> int:
    """Return the estimated size of a cache entry; an entry without values is not counted."""
    size = 0
    for one in saved.values():
        size += _ENTRY_BYTES + (len(one.call.value) if one.call is not None else 0)
        size += sum(_ENTRY_BYTES + len(part.signature.value) + sum(map(len, part.texts)) for part in one.placed)
    return size
