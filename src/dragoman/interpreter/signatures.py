"""Restore the signatures and the signed reasoning that a client did not send back, from a signature store.

Many clients drop fields they do not know: a call comes back without its signature, or without the reasoning before it.
A reply is divided into sections: each ends with a call, and an answer without calls is one section. What is signed in a
section is saved when it is sent to a client, and looked up when the section comes back without it. A section is
identified by the id of its call and the digest of the call's name and arguments, because ids are reused; an answer
without calls by its text.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from msgspec import Struct, structs

from dragoman.core.events import Event, Finished, PartDelta, PartEnded, PartSigned, PartStarted
from dragoman.core.parts import AnyPart, Reasoning, Signature, Text, ToolCall
from dragoman.core.request import Message
from dragoman.core.response import Response
from dragoman.core.traits import Traits
from dragoman.interpreter.signature_envelopes import ENVELOPE_PREFIX, UNSIGNED, open_envelope
from dragoman.interpreter.translation import PlacedKind, PlacedSignature, SavedSignatures, SignatureLookup
from dragoman.wire import json

_MAX_RECORDED = 8 << 20
"""A reply with more bytes is not recorded any further."""
_NO_SIGNATURES = SavedSignatures()
_Position = tuple[int, int]
"""The index of a message, and of a part in it."""
_Placed = tuple[_Position, AnyPart]


def has_envelope(messages: Iterable[Message]) -> bool:
    """Return whether a signature came back in an envelope, which is rare."""
    for message in messages:
        if message.role == "assistant":
            for part in message.parts:
                if part.signature is not None and part.signature.value.startswith(ENVELOPE_PREFIX):
                    return True
    return False


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


class UnsignedSection(Struct, frozen=True):
    """A section that came back without signatures, and its position in a history."""

    parts: tuple[_Placed, ...]
    """Its parts, of one or more messages, with their positions; the last is the call if it has one."""
    call: ToolCall | None
    has_reasoning: bool
    """Signed reasoning came back in this turn."""

    @property
    def id(self) -> str:
        """The id under which its signatures are saved."""
        return build_text_id(_join_texts(self.parts)) if self.call is None else self.call.id

    @property
    def digest(self) -> str:
        """The digest of its call; empty if it has none."""
        return digest_call(self.call.name, self.call.arguments) if self.call is not None else ""


def _join_texts(parts: Iterable[_Placed]) -> str:
    return "".join([part.text for _, part in parts if isinstance(part, Text)])


def find_unsigned_sections(messages: Sequence[Message]) -> list[UnsignedSection]:
    """Return the sections that came back without the signature of their call or without signed reasoning."""
    found: list[UnsignedSection] = []
    turn: list[_Placed] = []
    for at, message in enumerate(messages):
        if message.role == "assistant":
            turn += [((at, index), part) for index, part in enumerate(message.parts)]
        elif turn:
            found += _divide_turn(turn)
            turn = []
    if turn:
        found += _divide_turn(turn)
    return found


def _divide_turn(turn: list[_Placed]) -> Iterator[UnsignedSection]:
    start = 0
    has_call = has_reasoning = has_call_envelope = is_signed = False
    for index, (_, part) in enumerate(turn):
        if isinstance(part, ToolCall):
            has_call = True
            if part.signature is None and part.id and not has_call_envelope:
                yield UnsignedSection(tuple(turn[start : index + 1]), part, has_reasoning)
            start = index + 1
        elif isinstance(part, Reasoning) and part.signature is not None:
            opened = open_envelope(part.signature)
            has_call_envelope = has_call_envelope or (opened is not None and opened[1] == "call")
            has_reasoning = has_reasoning or opened is None or (opened[1] != "call" and opened[0].value != UNSIGNED)
        is_signed = is_signed or (part.signature is not None and not isinstance(part, Reasoning))
    if not (has_call or has_reasoning or is_signed) and any(isinstance(part, Text) for _, part in turn):
        yield UnsignedSection(tuple(turn), None, has_reasoning)


def find_unknown_ids(sections: Iterable[UnsignedSection], signer: SignatureLookup) -> list[str]:
    """Return the ids of sections that the signer must look up first; if one is signed, the request is parsed again."""
    ids = dict.fromkeys(section.id for section in sections)
    return [section_id for section_id in ids if signer.find_signatures(section_id) is None]


def restore_signatures(
    messages: tuple[Message, ...], sections: Iterable[UnsignedSection], signer: SignatureLookup, traits: Traits
) -> tuple[Message, ...]:
    """Add to a history what the signer has saved for its sections and the target takes."""
    replaced: dict[_Position, list[AnyPart]] = {}
    for section in sections:
        known = signer.find_signatures(section.id)
        saved = known.get(section.digest) if known else None
        if saved is None:
            continue
        placed = () if section.has_reasoning else tuple(one for one in saved.placed if _takes(traits, one))
        if placed:
            replaced.update(_place_parts(section, placed))
        signature = saved.call
        if signature is not None and traits.call_signatures and signature.issuer == traits.issuer:
            position, call = section.parts[-1]
            *before, _ = replaced.get(position, [call])
            replaced[position] = [*before, structs.replace(call, signature=signature)]
    if not replaced:
        return messages
    touched = {number for number, _ in replaced}
    return tuple(
        [_replace_parts(message, at, replaced) if at in touched else message for at, message in enumerate(messages)]
    )


def _replace_parts(message: Message, at: int, replaced: dict[_Position, list[AnyPart]]) -> Message:
    parts = [new for index, part in enumerate(message.parts) for new in replaced.get((at, index), [part])]
    return structs.replace(message, parts=tuple(parts))


def _takes(traits: Traits, placed: PlacedSignature) -> bool:
    """Return whether the target takes a saved part: it gets only what its own vendor has signed."""
    issuer = placed.signature.issuer
    if placed.kind == "text":
        return traits.text_signatures and issuer == traits.issuer
    return (traits.shows_thinking and issuer == traits.issuer) or (
        traits.reasoning_text and bool(issuer) and issuer == traits.reasoning_issuer
    )


def _place_parts(section: UnsignedSection, placed: Sequence[PlacedSignature]) -> dict[_Position, list[AnyPart]]:
    """Return what replaces the parts of a section so that saved parts are where the vendor sent them.

    The text that the client sent back may be shorter or in another place: reasoning is never after the section's call.
    """
    waiting, replaced, offset = deque(placed), dict[_Position, list[AnyPart]](), 0
    reasoning_text = _squash(text for one in placed for text in one.texts)
    for position, part in section.parts:
        if isinstance(part, Text):
            pieces = _split_text(part, offset, waiting)
            offset += len(part.text)
            while waiting and waiting[0].kind == "text" and not waiting[0].length and waiting[0].offset <= offset:
                # An empty text with a signature signs the text before it.
                pieces[-1] = structs.replace(pieces[-1], signature=waiting.popleft().signature)
            replaced[position] = pieces
        elif isinstance(part, Reasoning) and part.signature is None and not part.redacted:
            if reasoning_text and _squash(part.texts).startswith(reasoning_text):
                replaced[position] = []  # the client sent only the text of what is restored
        elif part is section.call:
            replaced[position] = [*map(_build_reasoning, _drop_texts(waiting)), part]
            waiting.clear()
    if left := _drop_texts(waiting):
        position, last = section.parts[-1]
        replaced[position] = [*replaced.get(position, [last]), *map(_build_reasoning, left)]
    return replaced


def _split_text(text: Text, offset: int, waiting: deque[PlacedSignature]) -> list[AnyPart]:
    """Return a text that starts at an offset of its section, with the saved parts that belong before or inside it."""
    pieces: list[AnyPart] = []
    while waiting and waiting[0].offset < offset + len(text.text):
        one = waiting.popleft()
        cut = max(one.offset - offset, 0)
        if cut:
            pieces.append(Text(text=text.text[:cut], where=text.where))
            text, offset = structs.replace(text, text=text.text[cut:]), one.offset
        if one.kind != "text":
            pieces.append(_build_reasoning(one))
        elif one.length == len(text.text):
            text = structs.replace(text, signature=one.signature)
            break
        elif one.length < len(text.text):
            signed = text.text[: one.length]
            pieces.append(Text(text=signed, where=text.where, signature=one.signature))
            text, offset = structs.replace(text, text=text.text[one.length :]), offset + one.length
    return [*pieces, text]


def _drop_texts(placed: Iterable[PlacedSignature]) -> list[PlacedSignature]:
    return [one for one in placed if one.kind != "text"]


def _build_reasoning(placed: PlacedSignature) -> Reasoning:
    return Reasoning(texts=placed.texts, redacted=placed.kind == "redacted", signature=placed.signature)


def _squash(texts: Iterable[str]) -> str:
    return "".join("".join(texts).split())


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
        self._size = 0
        self.ended: list[SignedSection] = []
        """The sections that have ended; the code that saves them clears the list."""

    def find_deltas(self, index: int) -> list[PartDelta] | None:
        """Return the list to which the deltas of an open part are appended; None for a part that is not recorded."""
        found = self._open.get(index)
        return None if found is None else found[1]

    def add_bytes(self, size: int) -> bool:
        """Count the bytes of the stream; return False if it is too large to be recorded any further."""
        self._size += size
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
            opened = open_envelope(part.signature)
            signature, kind = (part.signature, "") if opened is None else opened
            if kind == "call":
                self._call_signature = signature
            elif signature.value != UNSIGNED:
                is_redacted = part.redacted or kind == "redacted"
                self._place("redacted" if is_redacted else "reasoning", signature, texts=part.texts)

    def _place(self, kind: PlacedKind, signature: Signature, *, texts: tuple[str, ...] = (), length: int = 0) -> None:
        self._placed.append(PlacedSignature(kind, signature, self._offset, texts, length))

    def _end_call(self, call: ToolCall) -> None:
        opened = open_envelope(call.signature) if call.signature is not None else None
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
        signed = tuple(one for one in self._placed if one.kind == "text")
        if signed and not self._has_call and any(self._texts):
            saved = SavedSignatures(None, signed)
            self.ended.append(SignedSection(build_text_id("".join(self._texts)), "", saved))


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


def find_signed_sections(response: Response) -> list[SignedSection]:
    """Return the sections of a whole reply if any part of it is signed, else an empty list."""
    for part in response.parts:
        if part.signature is not None:
            break
    else:
        return []
    recorder = SignatureRecorder()
    for part in response.parts:
        recorder.record_part(part)
    recorder.end_reply()
    return recorder.ended
