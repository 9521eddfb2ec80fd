"""Restore the signatures and the signed reasoning that a client did not send back, from a signature store.

Many clients drop fields they do not know: a call comes back without its signature, or without the reasoning before it.
A reply is divided into sections: each ends with a call, and an answer without calls is one section. What is signed in a
section is saved when it is sent to a client (`signature_recorder`), and looked up when the section comes back without
it. A section is identified by the id of its call and the digest of the call's name and arguments, because ids are
reused; an answer without calls by its text.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from dragoman.core.parts import AnyPart, Reasoning, Text, ToolCall
from dragoman.core.request import Message
from dragoman.core.response import Response
from dragoman.core.traits import Traits
from dragoman.interpreter.signature_envelopes import UNSIGNED, open_envelope
from dragoman.interpreter.signature_recorder import SignatureRecorder, SignedSection, build_text_id, digest_call
from dragoman.interpreter.translation import PlacedSignature, SignatureLookup

_Position = tuple[int, int]
"""The index of a message, and of a part in it."""
_Placed = tuple[_Position, AnyPart]
_END = Message(role="user", parts=())


class UnsignedSection(Struct, frozen=True):
    """A section that came back without signatures, and its position in a history."""

    id: str
    """The id under which its signatures are saved."""
    start: _Position
    end: _Position
    """Its first part and its last, which is the call if it has one; they may be in several messages."""
    call: ToolCall | None
    has_reasoning: bool
    """Signed reasoning came back in this turn."""

    @property
    def digest(self) -> str:
        """The digest of its call; empty if it has none."""
        return digest_call(self.call.name, self.call.arguments) if self.call is not None else ""

    def list_parts(self, messages: Sequence[Message]) -> list[_Placed]:
        """Return its parts with their positions."""
        first, last = self.start[0], self.end[0]
        return [
            ((at, index), part)
            for at, message in enumerate(messages[first : last + 1], first)
            for index, part in enumerate(message.parts)
            if self.start <= (at, index) <= self.end
        ]


def find_unsigned_sections(messages: Sequence[Message]) -> list[UnsignedSection]:
    """Return the sections that came back without the signature of their call or without signed reasoning."""
    found: list[UnsignedSection] = []
    texts: list[str] = []
    start, is_answer, has_reasoning, has_call_envelope = (0, 0), True, False, False
    for at, message in enumerate((*messages, _END)):
        if message.role != "assistant":
            if texts and is_answer and not has_reasoning:
                found.append(UnsignedSection(build_text_id("".join(texts)), start, (at, -1), None, has_reasoning))
            texts, start, is_answer, has_reasoning, has_call_envelope = [], (at + 1, 0), True, False, False
            continue
        for index, part in enumerate(message.parts):
            if isinstance(part, Text):
                texts.append(part.text)
                is_answer = is_answer and part.signature is None
            elif isinstance(part, ToolCall):
                is_answer = False
                if part.signature is None and part.id and not has_call_envelope:
                    found.append(UnsignedSection(part.id, start, (at, index), part, has_reasoning))
                start = (at, index + 1)
            elif not isinstance(part, Reasoning):
                is_answer = is_answer and part.signature is None
            elif part.signature is not None:
                opened = open_envelope(part.signature)
                has_call_envelope = has_call_envelope or (opened is not None and opened[1] == "call")
                has_reasoning = has_reasoning or opened is None or (opened[1] != "call" and opened[0].value != UNSIGNED)
    return found


def find_unknown_ids(sections: Iterable[UnsignedSection], signer: SignatureLookup) -> list[str]:
    """Return the ids of sections that the signer must look up first; if one is signed, the request is parsed again."""
    ids = dict.fromkeys([section.id for section in sections])
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
        parts = section.list_parts(messages)
        if placed:
            replaced.update(_place_parts(parts, section.call, placed))
        signature = saved.call
        if signature is not None and traits.call_signatures and signature.issuer == traits.issuer:
            position, call = parts[-1]
            *before, _ = replaced.get(position, [call])
            replaced[position] = [*before, structs.replace(call, signature=signature)]
    if not replaced:
        return messages
    touched = {number for number, _ in replaced}
    return tuple(
        [_replace_parts(message, at, replaced) if at in touched else message for at, message in enumerate(messages)]
    )


def remove_signatures(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return a history without signatures and without the reasoning that was signed."""
    unsigned: list[Message] = []
    for message in messages:
        parts = tuple([_remove_signature(part) for part in message.parts if not _is_signed_reasoning(part)])
        if parts or not message.parts:
            unsigned.append(structs.replace(message, parts=parts))
    return tuple(unsigned)


def _is_signed_reasoning(part: AnyPart) -> bool:
    return isinstance(part, Reasoning) and part.signature is not None


def _remove_signature(part: AnyPart) -> AnyPart:
    return structs.replace(part, signature=None) if isinstance(part, ToolCall | Text) and part.signature else part


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


def _place_parts(
    parts: Sequence[_Placed], call: ToolCall | None, placed: Sequence[PlacedSignature]
) -> dict[_Position, list[AnyPart]]:
    """Return what replaces the parts of a section so that saved parts are where the vendor sent them.

    The text that the client sent back may be shorter or in another place: reasoning is never after the section's call.
    """
    waiting, replaced, offset = deque(placed), dict[_Position, list[AnyPart]](), 0
    reasoning_text = _squash(text for one in placed for text in one.texts)
    for position, part in parts:
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
        elif part is call:
            replaced[position] = [*map(_build_reasoning, _drop_texts(waiting)), part]
            waiting.clear()
    if left := _drop_texts(waiting):
        position, last = parts[-1]
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
