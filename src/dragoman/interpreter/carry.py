"""Signatures in a client that has no field for them.

A vendor's signature must come back unchanged on the part it signs. Where the client's dialect has a field of its own
for signatures, a foreign one travels there in an envelope that names its issuer, so that it is known on return and
never reaches another vendor. Where a call cannot hold one but reasoning can, an empty reasoning part before the call
carries it.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Literal

from msgspec import structs

from dragoman.core.parts import AnyPart, Reasoning, Signature, ToolCall
from dragoman.core.request import Message
from dragoman.interpreter.ledger import Ledger

_MAGIC = "dragoman1"
MARK = b64encode(_MAGIC.encode())
"""How every envelope begins."""
UNSIGNED = Signature("", "")
"""In an envelope: reasoning that nobody signed, so that no vendor takes it for its own."""
_PREFIX = MARK.decode()
Bearer = Literal["self", "call", "redacted"]


def sealed(signature: Signature, bearer: Bearer, client_issuer: str) -> Signature:
    """Put a foreign signature in an envelope; base64, because Google's field holds bytes."""
    inside = f"{signature.issuer}.{bearer}.{_check(signature)}.{signature.value}"
    return Signature(client_issuer, b64encode(f"{_MAGIC}.{inside}".encode()).decode())


def opened(signature: Signature) -> tuple[Signature, Bearer] | None:
    """Return what an envelope holds; None for anything else, a damaged envelope included."""
    if not signature.value.startswith(_PREFIX):
        return None
    try:
        magic, issuer, bearer, check, value = b64decode(signature.value, validate=True).decode().split(".", 4)
    except (binascii.Error, ValueError):
        return None
    inner = Signature(issuer, value)
    if magic != _MAGIC or check != _check(inner) or bearer not in ("self", "call", "redacted"):
        return None
    return inner, bearer


def _check(signature: Signature) -> str:
    return sha256(f"{signature.issuer}.{signature.value}".encode()).hexdigest()[:12]


def restored(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Put signatures that came back in envelopes on the parts they sign."""
    if not _has_envelope(messages):
        return messages
    finished: list[Message] = []
    waiting: Signature | None = None
    for message in messages:
        if message.role != "assistant":
            finished.append(message)
            waiting = None
            continue
        parts, waiting = _restore_parts(message.parts, waiting)
        if parts:
            finished.append(structs.replace(message, parts=parts))
    return tuple(finished)


def _has_envelope(messages: tuple[Message, ...]) -> bool:
    for message in messages:
        if message.role == "assistant":
            for part in message.parts:
                if part.signature is not None and part.signature.value.startswith(_PREFIX):
                    return True
    return False


def _restore_parts(
    parts: tuple[AnyPart, ...], waiting: Signature | None
) -> tuple[tuple[AnyPart, ...], Signature | None]:
    finished: list[AnyPart] = []
    for part in parts:
        found = opened(part.signature) if part.signature is not None else None
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


def native(messages: tuple[Message, ...], issuer: str, ledger: Ledger) -> tuple[Message, ...]:
    """Take out of a history what stands in envelopes and is not `issuer`'s own: it must not see the rest."""
    return tuple(
        structs.replace(message, parts=tuple(_native_parts(message.parts, issuer, ledger))) for message in messages
    )


def _native_parts(parts: tuple[AnyPart, ...], issuer: str, ledger: Ledger) -> Iterator[AnyPart]:
    for part in parts:
        found = opened(part.signature) if part.signature is not None else None
        if found is None:
            yield part
        elif found[0].issuer == issuer and found[1] != "call":
            yield structs.replace(part, signature=found[0])
        elif isinstance(part, Reasoning):
            ledger.dropped(part.where, "reasoning of another vendor's model cannot be replayed")
        else:
            ledger.field_dropped("part.signature", f"signed by {found[0].issuer}", part)
            yield structs.replace(part, signature=None)
