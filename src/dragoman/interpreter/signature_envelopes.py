"""Signatures in envelopes, for a client that has no field for them.

A vendor's signature must come back unchanged on the part it signs. Where the client's dialect has a field of its own
for signatures, a foreign one travels there in an envelope that names its issuer, so that it is known on return and
never reaches another vendor. Where a call cannot hold one but reasoning can, an empty reasoning part before the call
carries it. A client that keeps a streamed thought in the pieces it came in has its envelope on the last of them.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from operator import is_
from typing import Literal

from msgspec import structs

from dragoman.core.parts import AnyPart, Reasoning, Signature, ToolCall
from dragoman.core.request import Message
from dragoman.core.traits import Traits
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.foreign_fields import drop_extras
from dragoman.interpreter.ledger import Ledger

_MAGIC = "dragoman1"
ENVELOPE_MARKER = b64encode(_MAGIC.encode())
"""How every envelope begins."""
UNSIGNED = Signature("", "")
"""In an envelope: reasoning that nobody signed, so that no vendor takes it for its own."""
ENVELOPE_PREFIX = ENVELOPE_MARKER.decode()
_FOREIGN = "reasoning of another vendor's model cannot be replayed"
EnvelopeKind = Literal["self", "call", "redacted"]
Place = tuple[int, int]
"""A message and a part in it."""


def seal_signature(signature: Signature, kind: EnvelopeKind, client_issuer: str) -> Signature:
    """Put a foreign signature in an envelope; base64, because Google's field holds bytes."""
    signature = Signature(signature.issuer, signature.value, find_item_id(signature))
    inside = f"{_render_issuer(signature)}.{kind}.{_compute_checksum(signature)}.{signature.value}"
    return Signature(client_issuer, b64encode(f"{_MAGIC}.{inside}".encode()).decode())


def find_item_id(signature: Signature) -> str:
    """Return the id of the item that an envelope names beside the signature, if its form can hold it."""
    return "" if "." in signature.item else signature.item


def open_envelope(signature: Signature) -> tuple[Signature, EnvelopeKind] | None:
    """Return what an envelope holds; None for anything else, a damaged envelope included."""
    if not signature.value.startswith(ENVELOPE_PREFIX):
        return None
    try:
        magic, issuer, bearer, check, value = b64decode(signature.value, validate=True).decode().split(".", 4)
    except (binascii.Error, ValueError):
        return None
    issuer, _, item = issuer.partition(":")
    inner = Signature(issuer, value, item)
    if magic != _MAGIC or check != _compute_checksum(inner) or bearer not in ("self", "call", "redacted"):
        return None
    return inner, bearer


def _compute_checksum(signature: Signature) -> str:
    return sha256(f"{_render_issuer(signature)}.{signature.value}".encode()).hexdigest()[:12]


def _render_issuer(signature: Signature) -> str:
    """Name the issuer, and the item it issued the signature for if it checks that."""
    return f"{signature.issuer}:{signature.item}" if signature.item else signature.issuer


def join_thoughts(messages: tuple[Message, ...], adaptation: Adaptation) -> tuple[Message, ...]:
    """Make one thought of the pieces it was streamed in, if the target takes it: it must come back unmodified."""
    changed: dict[Place, Reasoning | None] = {}
    for thought in _find_streamed(messages):
        pieces = [piece for _, piece in thought]
        place, last = thought[-1]
        if not _is_accepted(last, adaptation.traits):
            continue
        for earlier, piece in thought[:-1]:
            drop_extras(piece, adaptation)
            changed[earlier] = None
        text = "".join(text for piece in pieces for text in piece.texts)
        changed[place] = structs.replace(last, texts=(text,))
    if not changed:
        return messages
    joined: list[Message] = []
    for message in _replace_parts(messages, changed):
        if message.parts:
            joined.append(message)
        else:
            drop_extras(message, adaptation)
    return tuple(joined)


def _is_accepted(thought: Reasoning, traits: Traits) -> bool:
    found = open_envelope(thought.signature) if thought.signature is not None else None
    own = found is not None and found[0].issuer == traits.issuer
    return traits.reasoning_text or (traits.shows_thinking and own)


def _find_streamed(messages: tuple[Message, ...]) -> Iterator[list[tuple[Place, Reasoning]]]:
    """Find thoughts that stand in pieces: unsigned ones in a row, over messages too, and the envelope behind them."""
    pieces: list[tuple[Place, Reasoning]] = []
    for number, message in enumerate(messages):
        if message.role != "assistant":
            pieces = []
            continue
        for index, part in enumerate(message.parts):
            if not isinstance(part, Reasoning) or part.redacted:
                pieces = []
                continue
            pieces.append(((number, index), part))
            if part.signature is None:
                continue
            found = open_envelope(part.signature)
            if len(pieces) > 1 and found is not None and found[1] == "self":
                yield pieces
            pieces = []


def _replace_parts(messages: tuple[Message, ...], changed: Mapping[Place, AnyPart | None]) -> Iterator[Message]:
    """Yield the messages with some parts exchanged, or taken out."""
    touched = {number for number, _ in changed}
    for number, message in enumerate(messages):
        if number not in touched:
            yield message
            continue
        parts = (changed.get((number, index), part) for index, part in enumerate(message.parts))
        yield structs.replace(message, parts=tuple(part for part in parts if part is not None))


def open_envelopes(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Put signatures that came back in envelopes on the parts they sign."""
    finished: list[Message] = []
    waiting: Signature | None = None
    is_changed = False
    for message in messages:
        if message.role != "assistant":
            finished.append(message)
            waiting = None
            continue
        parts, waiting = _restore_parts(message.parts, waiting)
        is_same = len(parts) == len(message.parts) and all(map(is_, parts, message.parts))
        is_changed = is_changed or not is_same
        if parts:
            finished.append(message if is_same else structs.replace(message, parts=parts))
    return tuple(finished) if is_changed else messages


def _restore_parts(
    parts: tuple[AnyPart, ...], waiting: Signature | None
) -> tuple[tuple[AnyPart, ...], Signature | None]:
    finished: list[AnyPart] = []
    for part in parts:
        found = open_envelope(part.signature) if part.signature is not None else None
        if found is not None:
            signature, bearer = found
            if bearer == "call" and isinstance(part, Reasoning):
                waiting = signature
                if any(part.texts):
                    finished.append(structs.replace(part, signature=None))
            elif bearer == "redacted":
                finished.append(Reasoning(redacted=True, signature=signature, where=part.where))
            else:
                finished.append(structs.replace(part, signature=signature if signature.issuer else None))
        elif waiting is not None and isinstance(part, ToolCall):
            finished.append(structs.replace(part, signature=part.signature or waiting))
            waiting = None
        else:
            finished.append(part)
    return tuple(finished), waiting


def remove_foreign_envelopes(messages: tuple[Message, ...], issuer: str, ledger: Ledger) -> tuple[Message, ...]:
    """Take out of a history what stands in envelopes and is not `issuer`'s own: it must not see the rest."""
    pieces = {
        place: piece
        for thought in _find_streamed(messages)
        if not _is_own(thought[-1][1], issuer)
        for place, piece in thought[:-1]
    }
    for piece in pieces.values():
        ledger.report_dropped(piece.where, _FOREIGN)
    kept: list[Message] = []
    for before, message in zip(messages, _replace_parts(messages, dict.fromkeys(pieces)), strict=True):
        parts = tuple(_remove_from_parts(message.parts, issuer, ledger))
        # A message of nothing but foreign thoughts is gone with them: no vendor takes an empty one.
        if parts or not before.parts:
            kept.append(structs.replace(message, parts=parts))
            continue
        for pointer in before.extras.fields if before.extras is not None else ():
            ledger.report_dropped(before.where + pointer, "its message said nothing else")
    return tuple(kept)


def _is_own(part: AnyPart, issuer: str) -> bool:
    found = open_envelope(part.signature) if part.signature is not None else None
    return found is not None and found[0].issuer == issuer


def _remove_from_parts(parts: tuple[AnyPart, ...], issuer: str, ledger: Ledger) -> Iterator[AnyPart]:
    for part in parts:
        found = open_envelope(part.signature) if part.signature is not None else None
        if found is None:
            yield part
        elif found[0].issuer == issuer and found[1] != "call":
            yield structs.replace(part, signature=found[0])
        elif isinstance(part, Reasoning):
            ledger.report_dropped(part.where, _FOREIGN)
        else:
            ledger.report_dropped_field("part.signature", f"signed by {found[0].issuer}", part)
            yield structs.replace(part, signature=None)
