"""Signatures of calls that a client did not bring back, restored from a store.

Many clients drop what they do not know: a call comes back without the signature it came with. The store of signatures
is told of every signed call as the client is, and asked for those that are missing. A call is known by its id and by
the digest of its name and arguments: ids are used again.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import chain
from operator import attrgetter

from msgspec import Struct, structs

from dragoman.core.events import Event, PartDelta, PartEnded, PartSigned, PartStarted
from dragoman.core.parts import AnyPart, Reasoning, Signature, ToolCall
from dragoman.core.request import Message
from dragoman.core.response import Response
from dragoman.interpreter.signature_envelopes import ENVELOPE_PREFIX, open_envelope
from dragoman.interpreter.translation import SignatureLookup
from dragoman.wire import json

_get_parts, _get_signature = attrgetter("parts"), attrgetter("signature")


def has_envelope(messages: Iterable[Message]) -> bool:
    """Tell whether a signature came back in an envelope, which is rare."""
    if not any(map(_get_signature, chain.from_iterable(map(_get_parts, messages)))):
        return False
    parts = [part for message in messages if message.role == "assistant" for part in message.parts]
    return any(part.signature is not None and part.signature.value.startswith(ENVELOPE_PREFIX) for part in parts)


class SignedCall(Struct, frozen=True):
    """A call as a client was told of it, and who signed it."""

    id: str
    digest: str
    signature: Signature | None


def digest_call(name: str, arguments: str) -> str:
    """Return what a call says, in short: however its client lays the arguments out."""
    said = json.encode_sorted(json.decode(arguments)) if json.is_json(arguments) else arguments.encode()
    return sha256(name.encode() + b"\0" + said).hexdigest()[:32]


class UnsignedCall(Struct, frozen=True):
    """A call whose signature is neither on it nor carried by a thought before it, and its place in a history."""

    message: int
    part: int
    call: ToolCall


def find_unsigned_calls(messages: Sequence[Message]) -> list[UnsignedCall]:
    """Find the calls that came without their signatures."""
    found: list[UnsignedCall] = []
    is_carried = False
    for at, message in enumerate(messages):
        if message.role != "assistant":
            is_carried = False
            continue
        for index, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                if part.signature is None and part.id and not is_carried:
                    found.append(UnsignedCall(at, index, part))
            elif isinstance(part, Reasoning):
                carried = open_envelope(part.signature) if part.signature is not None else None
                is_carried = is_carried or (carried is not None and carried[1] == "call")
    return found


def find_unknown_ids(calls: Iterable[UnsignedCall], signer: SignatureLookup) -> list[str]:
    """Return the ids of calls that the signer must look up first."""
    return [unsigned.call.id for unsigned in calls if signer.find_signatures(unsigned.call.id) is None]


def restore_signatures(
    messages: tuple[Message, ...], calls: Iterable[UnsignedCall], signer: SignatureLookup
) -> tuple[Message, ...]:
    """Give calls of a history the signatures that they came without, as far as the signer knows them."""
    signed: dict[int, list[AnyPart]] = {}
    for unsigned in calls:
        call, known = unsigned.call, signer.find_signatures(unsigned.call.id)
        if known and (signature := known.get(digest_call(call.name, call.arguments))) is not None:
            parts = signed.setdefault(unsigned.message, list(messages[unsigned.message].parts))
            parts[unsigned.part] = structs.replace(call, signature=signature)
    if not signed:
        return messages
    return tuple(
        [structs.replace(one, parts=tuple(signed[at])) if at in signed else one for at, one in enumerate(messages)]
    )


class CallRecorder:
    """Notes the calls of a reply as its client is told of them."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[AnyPart, list[str]]] = {}
        self._has_envelope: Signature | None = None
        self.ended: list[SignedCall] = []
        """The calls that have ended; whoever keeps their signatures clears it."""

    def has_open(self, index: int) -> bool:
        """Tell whether the deltas of a part are noted."""
        return index in self._open

    def append_delta(self, index: int, text: str) -> None:
        """Note the delta of a part."""
        if index in self._open:
            self._open[index][1].append(text)

    def record_event(self, event: Event) -> None:
        """Note an event that a client receives."""
        if type(event) is PartStarted:
            part = event.part
            if isinstance(part, ToolCall | Reasoning):
                self._open[event.index] = (part, [part.arguments] if isinstance(part, ToolCall) else [])
        elif type(event) is PartDelta:
            self.append_delta(event.index, event.text)
        elif type(event) is PartEnded and event.index in self._open:
            part, texts = self._open.pop(event.index)
            self.record_end(part, "".join(texts))
        elif type(event) is PartSigned and event.index in self._open:
            part, texts = self._open[event.index]
            self._open[event.index] = (structs.replace(part, signature=event.signature), texts)

    def record_end(self, part: AnyPart, arguments: str) -> None:
        """Note a part that is over, a call with all its arguments."""
        if isinstance(part, ToolCall):
            signature = part.signature or self._has_envelope
            self._has_envelope = None
            # What an unsigned call says is nobody's question.
            digest = digest_call(part.name, arguments) if signature is not None else ""
            self.ended.append(SignedCall(part.id, digest, signature))
        elif isinstance(part, Reasoning) and part.signature is not None:
            found = open_envelope(part.signature)
            self._has_envelope = found[0] if found is not None and found[1] == "call" else None


def find_signed_calls(response: Response) -> list[SignedCall]:
    """Return the calls of a whole reply in which something is signed; none of any other."""
    for part in response.parts:
        if part.signature is not None:
            break
    else:
        return []
    watch = CallRecorder()
    for part in response.parts:
        watch.record_end(part, part.arguments if isinstance(part, ToolCall) else "")
    return watch.ended
