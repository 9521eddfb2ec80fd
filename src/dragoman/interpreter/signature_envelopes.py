"""Send another vendor's signatures to a client in envelopes, and open the envelopes when they come back.

A vendor's signature must come back unchanged on the part it signs. If the client's dialect has a field for its own
vendor's signatures, a foreign signature is sent there in an envelope that names its issuer, so that it is recognised
when it comes back and is never sent to another vendor. If reasoning can hold a signature but a call cannot, an empty
reasoning part before the call holds it. Some clients store streamed reasoning in the pieces in which it came; then the
envelope is on the last piece.
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

UNSIGNED = ""
"""The value in an envelope for reasoning without a signature: it only names the vendor, so that no other takes it."""
_MAGIC = "dragoman1"
ENVELOPE_MARKER = b64encode(_MAGIC.encode())
"""The prefix of every envelope."""
ENVELOPE_PREFIX = ENVELOPE_MARKER.decode()
_FOREIGN = "reasoning of another vendor's model cannot be replayed"
EnvelopeKind = Literal["self", "call", "redacted"]
PartPosition = tuple[int, int]
"""The index of a message, and of a part in it."""


def seal_signature(signature: Signature, kind: EnvelopeKind, client_issuer: str) -> Signature:
    """Return a foreign signature in an envelope; it is base64, because Google's field holds bytes."""
    signature = Signature(signature.issuer, signature.value, find_item_id(signature))
    content = f"{_render_issuer(signature)}.{kind}.{_compute_checksum(signature)}.{signature.value}"
    return Signature(client_issuer, b64encode(f"{_MAGIC}.{content}".encode()).decode())


def find_item_id(signature: Signature) -> str:
    """Return the item id that the envelope stores with the signature; "" if it has a dot, the envelope's separator."""
    return "" if "." in signature.item else signature.item


def open_envelope(signature: Signature) -> tuple[Signature, EnvelopeKind] | None:
    """Return the signature in an envelope and the envelope's kind; None for a plain signature or a damaged envelope."""
    if not signature.value.startswith(ENVELOPE_PREFIX):
        return None
    try:
        magic, issuer, kind, checksum, value = b64decode(signature.value, validate=True).decode().split(".", 4)
    except (binascii.Error, ValueError):
        return None
    issuer, _, item = issuer.partition(":")
    inner = Signature(issuer, value, item)
    if magic != _MAGIC or checksum != _compute_checksum(inner) or kind not in ("self", "call", "redacted"):
        return None
    return inner, kind


def _compute_checksum(signature: Signature) -> str:
    return sha256(f"{_render_issuer(signature)}.{signature.value}".encode()).hexdigest()[:12]


def _render_issuer(signature: Signature) -> str:
    """Return the issuer, with the id of the signed item if the issuer verifies that."""
    return f"{signature.issuer}:{signature.item}" if signature.item else signature.issuer


def join_thoughts(messages: tuple[Message, ...], adaptation: Adaptation) -> tuple[Message, ...]:
    """Join reasoning that came back in its streamed pieces, if the target takes it: it must come back unmodified."""
    changed: dict[PartPosition, Reasoning | None] = {}
    for positioned_pieces in _find_streamed(messages):
        pieces = [piece for _, piece in positioned_pieces]
        position, last = positioned_pieces[-1]
        if not _is_accepted(last, adaptation.traits):
            continue
        for earlier, piece in positioned_pieces[:-1]:
            drop_extras(piece, adaptation)
            changed[earlier] = None
        text = "".join(text for piece in pieces for text in piece.texts)
        changed[position] = structs.replace(last, texts=(text,))
    if not changed:
        return messages
    joined: list[Message] = []
    for message in _replace_parts(messages, changed):
        if message.parts:
            joined.append(message)
        else:
            drop_extras(message, adaptation)
    return tuple(joined)


def _is_accepted(reasoning: Reasoning, traits: Traits) -> bool:
    found = open_envelope(reasoning.signature) if reasoning.signature is not None else None
    is_own = found is not None and found[0].issuer == traits.issuer
    return traits.reasoning_text or (traits.shows_thinking and is_own)


def _find_streamed(messages: tuple[Message, ...]) -> Iterator[list[tuple[PartPosition, Reasoning]]]:
    """Yield reasoning that is in pieces: consecutive unsigned parts, also across messages, and one with an envelope."""
    pieces: list[tuple[PartPosition, Reasoning]] = []
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


def _replace_parts(messages: tuple[Message, ...], changed: Mapping[PartPosition, AnyPart | None]) -> Iterator[Message]:
    """Yield the messages with some parts replaced, or removed if the replacement is None."""
    touched = {number for number, _ in changed}
    for number, message in enumerate(messages):
        if number not in touched:
            yield message
            continue
        parts = (changed.get((number, index), part) for index, part in enumerate(message.parts))
        yield structs.replace(message, parts=tuple(part for part in parts if part is not None))


def open_envelopes(messages: tuple[Message, ...], unsigned_issuer: str = "") -> tuple[Message, ...]:
    """Return the messages with the signatures that came back in envelopes on the parts they sign.

    Unsigned reasoning of `unsigned_issuer`, which takes it back, keeps an empty signature that names the issuer.
    """
    finished: list[Message] = []
    waiting: Signature | None = None
    is_changed = False
    for message in messages:
        if message.role != "assistant":
            finished.append(message)
            waiting = None
            continue
        parts, waiting = _restore_parts(message.parts, waiting, unsigned_issuer)
        is_same = len(parts) == len(message.parts) and all(map(is_, parts, message.parts))
        is_changed = is_changed or not is_same
        if parts:
            finished.append(message if is_same else structs.replace(message, parts=parts))
    return tuple(finished) if is_changed else messages


def _restore_parts(
    parts: tuple[AnyPart, ...], waiting: Signature | None, unsigned_issuer: str
) -> tuple[tuple[AnyPart, ...], Signature | None]:
    finished: list[AnyPart] = []
    for part in parts:
        found = open_envelope(part.signature) if part.signature is not None else None
        if found is not None:
            signature, kind = found
            if kind == "call" and isinstance(part, Reasoning):
                waiting = signature
                if any(part.texts):
                    finished.append(structs.replace(part, signature=None))
            elif kind == "redacted":
                finished.append(Reasoning(redacted=True, signature=signature, where=part.where))
            else:
                is_kept = bool(signature.value or (signature.issuer and signature.issuer == unsigned_issuer))
                if not is_kept and isinstance(part, Reasoning):
                    finished.append(structs.replace(part, signature=None, spelling=signature.item))
                else:
                    finished.append(structs.replace(part, signature=signature if is_kept else None))
        elif waiting is not None and isinstance(part, ToolCall):
            finished.append(structs.replace(part, signature=part.signature or waiting))
            waiting = None
        else:
            finished.append(part)
    return tuple(finished), waiting


def remove_foreign_envelopes(messages: tuple[Message, ...], issuer: str, ledger: Ledger) -> tuple[Message, ...]:
    """Remove from a history the signatures and reasoning in envelopes of vendors other than `issuer`.

    A vendor must not see what another vendor signed.
    """
    pieces = {
        position: piece
        for positioned_pieces in _find_streamed(messages)
        if not _is_own(positioned_pieces[-1][1], issuer)
        for position, piece in positioned_pieces[:-1]
    }
    for piece in pieces.values():
        ledger.report_dropped(piece.where, _FOREIGN)
    kept: list[Message] = []
    for before, message in zip(messages, _replace_parts(messages, dict.fromkeys(pieces)), strict=True):
        parts = tuple(_remove_from_parts(message.parts, issuer, ledger))
        # A message with only foreign reasoning is dropped too: no vendor takes an empty message.
        if parts or not before.parts:
            kept.append(structs.replace(message, parts=parts))
            continue
        for pointer in before.extras.fields if before.extras is not None else ():
            ledger.report_dropped(before.where + pointer, "its message is dropped: nothing else in it can be sent")
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
            ledger.report_dropped_signature(part, f"signed by {found[0].issuer}: only its models can read it")
            yield structs.replace(part, signature=None)
