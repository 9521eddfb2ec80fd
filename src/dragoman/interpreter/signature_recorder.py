"""Record what is signed in a reply as it is sent to a client; `signatures` restores it.

A reply is divided into sections: each ends with a call, and an answer without calls is one section.
"""

from collections.abc import Sequence
from hashlib import sha256

from msgspec import Struct, structs

from dragoman.core.events import Event, Finished, PartDelta, PartEnded, PartSigned, PartStarted
from dragoman.core.parts import AnyPart, Reasoning, Signature, Text, ToolCall
from dragoman.interpreter.signature_envelopes import ENVELOPE_PREFIX, UNSIGNED, EnvelopeKind, open_envelope
from dragoman.interpreter.translation import PlacedKind, PlacedSignature, SavedSignatures
from dragoman.wire import json

_MAX_RECORDED = 8 << 20
"""A reply with more bytes is not recorded any further."""
_MAX_LOOSE = 8 << 10
"""Bytes of the stream after which short deltas are joined: a delta takes more memory than its text."""
_MAX_JOINED = 16 << 10
"""Characters of a delta to which no others are joined."""
_NO_SIGNATURES = SavedSignatures()


class SignedSection(Struct, frozen=True):
    """A section of a reply as it was sent to a client, and what is signed in it."""

    id: str
    digest: str
    saved: SavedSignatures


def digest_call(name: str, arguments: str) -> str:
    """Return a hash of a call's name and arguments that does not depend on the formatting of the JSON."""
    content = json.encode_sorted(json.decode(arguments)) if json.is_json(arguments) else arguments.encode()
    return sha256(name.encode() + b"\0" + content).hexdigest()[:32]


def build_text_id(text: str) -> str:
    """Return the id of an answer without calls; white space around its text does not matter."""
    return f"text:{sha256(text.strip().encode(errors='surrogatepass')).hexdigest()}"


def _open(signature: Signature) -> tuple[Signature, EnvelopeKind] | None:
    return open_envelope(signature) if signature.value.startswith(ENVELOPE_PREFIX) else None


class SignatureRecorder:
    """Records what is signed in a reply as it is sent to the client."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[AnyPart, list[PartDelta]]] = {}
        self._call_signature: Signature | None = None
        """The signature for the next call, from the envelope of a reasoning part before it."""
        self._placed: list[PlacedSignature] = []
        self._texts: list[str] = []
        self._offset = 0
        self._has_call = False
        self._size = self._joined_size = 0
        self.ended: list[SignedSection] = []
        """The sections that have ended; the code that saves them clears the list."""

    def find_deltas(self, index: int) -> list[PartDelta] | None:
        """Return the list to which the deltas of an open part are appended; None for a part that is not recorded."""
        found = self._open.get(index)
        return None if found is None else found[1]

    def add_bytes(self, size: int) -> bool:
        """Count the bytes of the stream; return False if it is too large to be recorded any further."""
        self._size += size
        if self._size - self._joined_size > _MAX_LOOSE:
            self._joined_size = self._size
            for _, deltas in self._open.values():
                _join_deltas(deltas)
        return self._size <= _MAX_RECORDED

    def record_event(self, event: Event) -> None:
        """Record an event that is sent to the client."""
        match event:
            case PartStarted(index, ToolCall() | Reasoning() | Text() as part):
                self._open[index] = (part, [])
            case PartDelta(index) if index in self._open:
                self._open[index][1].append(event)
            case PartSigned(index, signature) if index in self._open:
                part, deltas = self._open[index]
                self._open[index] = (structs.replace(part, signature=signature), deltas)
            case PartEnded(index) if index in self._open:
                self.record_part(_complete_part(*self._open.pop(index)))
            case Finished():
                self.end_reply()
            case _:
                pass

    def record_part(self, part: AnyPart) -> None:
        """Record a complete part."""
        if isinstance(part, ToolCall):
            self._end_call(part)
        elif isinstance(part, Text):
            if part.signature is not None:
                self._place("text", part.signature, length=len(part.text))
            self._texts.append(part.text)
            self._offset += len(part.text)
        elif isinstance(part, Reasoning) and part.signature is not None:
            opened = _open(part.signature)
            signature, kind = (part.signature, "") if opened is None else opened
            if kind == "call":
                self._call_signature = signature
            elif signature.value != UNSIGNED:
                is_redacted = part.redacted or kind == "redacted"
                self._place("redacted" if is_redacted else "reasoning", signature, texts=part.texts)

    def _place(self, kind: PlacedKind, signature: Signature, *, texts: tuple[str, ...] = (), length: int = 0) -> None:
        self._placed.append(PlacedSignature(kind, signature, self._offset, texts, length))

    def _end_call(self, call: ToolCall) -> None:
        opened = _open(call.signature) if call.signature is not None else None
        signature = call.signature if opened is None else opened[0]
        saved = SavedSignatures(signature or self._call_signature, tuple(self._placed))
        # The digest of an unsigned call is never looked up.
        digest = digest_call(call.name, call.arguments) if saved != _NO_SIGNATURES else ""
        self.ended.append(SignedSection(call.id, digest, saved))
        self._call_signature, self._has_call = None, True
        self._placed.clear()
        self._offset = 0

    def end_reply(self) -> None:
        """Record the end of the reply, which ends the section of an answer without calls.

        Only its signed texts are saved: another conversation may have an answer with the same text, and its reasoning,
        which no vendor requires then, would be out of place there.
        """
        if self._has_call or not self._placed:
            return
        signed = tuple([one for one in self._placed if one.kind == "text"])
        if signed and any(self._texts):
            saved = SavedSignatures(None, signed)
            self.ended.append(SignedSection(build_text_id("".join(self._texts)), "", saved))


def _join_deltas(deltas: list[PartDelta]) -> None:
    """Join the short deltas of the last piece at the end of a list; long ones are joined already."""
    start = len(deltas)
    while start and deltas[start - 1].piece == deltas[-1].piece and len(deltas[start - 1].text) < _MAX_JOINED:
        start -= 1
    if start < len(deltas):
        text = "".join([delta.text for delta in deltas[start:]])
        deltas[start:] = [structs.replace(deltas[-1], text=text)]


def _complete_part(part: AnyPart, deltas: Sequence[PartDelta]) -> AnyPart:
    """Return a part with the text of its deltas."""
    if isinstance(part, Reasoning):
        pieces: dict[int, list[str]] = {}
        for delta in deltas:
            pieces.setdefault(delta.piece, []).append(delta.text)
        return structs.replace(part, texts=(*part.texts, *map("".join, pieces.values())))
    text = "".join([delta.text for delta in deltas])
    if isinstance(part, ToolCall):
        return structs.replace(part, arguments=part.arguments + text)
    return structs.replace(part, text=part.text + text) if isinstance(part, Text) else part
