"""Restore the signatures of calls that a client did not send back, from a signature store.

Many clients drop fields they do not know: a call comes back without its signature. Every signed call that is sent to a
client is recorded for the signature store, and missing signatures are looked up there. A call is identified by its id
and the digest of its name and arguments, because ids are reused.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from msgspec import Struct, structs

from dragoman.core.events import Event, PartDelta, PartEnded, PartSigned, PartStarted
from dragoman.core.parts import AnyPart, Reasoning, Signature, ToolCall
from dragoman.core.request import Message
from dragoman.core.response import Response
from dragoman.interpreter.signature_envelopes import ENVELOPE_PREFIX, open_envelope
from dragoman.interpreter.translation import SignatureLookup
from dragoman.wire import json


def has_envelope(messages: Iterable[Message]) -> bool:
    """Return whether a signature came back in an envelope, which is rare."""
    for message in messages:
        if message.role == "assistant":
            for part in message.parts:
                if part.signature is not None and part.signature.value.startswith(ENVELOPE_PREFIX):
                    return True
    return False


class SignedCall(Struct, frozen=True):
    """A call as it was sent to a client, and its signature."""

    id: str
    digest: str
    signature: Signature | None


def digest_call(name: str, arguments: str) -> str:
    """Return a hash of a call's name and arguments that does not depend on the formatting of the JSON."""
    content = json.encode_sorted(json.decode(arguments)) if json.is_json(arguments) else arguments.encode()
    return sha256(name.encode() + b"\0" + content).hexdigest()[:32]


class UnsignedCall(Struct, frozen=True):
    """A call with no signature of its own or in a reasoning part before it, and its position in a history."""

    message: int
    part: int
    call: ToolCall


def find_unsigned_calls(messages: Sequence[Message]) -> list[UnsignedCall]:
    """Return the calls that came without a signature."""
    found: list[UnsignedCall] = []
    has_envelope_before = False
    for at, message in enumerate(messages):
        if message.role != "assistant":
            has_envelope_before = False
            continue
        for index, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                if part.signature is None and part.id and not has_envelope_before:
                    found.append(UnsignedCall(at, index, part))
            elif isinstance(part, Reasoning):
                opened = open_envelope(part.signature) if part.signature is not None else None
                has_envelope_before = has_envelope_before or (opened is not None and opened[1] == "call")
    return found


def find_unknown_ids(calls: Iterable[UnsignedCall], signer: SignatureLookup) -> list[str]:
    """Return the ids of calls that the signer must look up first."""
    return [unsigned.call.id for unsigned in calls if signer.find_signatures(unsigned.call.id) is None]


def restore_signatures(
    messages: tuple[Message, ...], calls: Iterable[UnsignedCall], signer: SignatureLookup
) -> tuple[Message, ...]:
    """Add the missing signatures of calls that the signer knows to a history."""
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
    """Records the calls of a reply as they are sent to the client."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[AnyPart, list[str]]] = {}
        self._next_signature: Signature | None = None
        """The signature for the next call, from the envelope of a reasoning part before it."""
        self.ended: list[SignedCall] = []
        """The calls that have ended; the code that stores their signatures clears the list."""

    def has_open(self, index: int) -> bool:
        """Return whether the deltas of a part are recorded."""
        return index in self._open

    def append_delta(self, index: int, text: str) -> None:
        """Record a delta of a part."""
        if index in self._open:
            self._open[index][1].append(text)

    def record_event(self, event: Event) -> None:
        """Record an event that is sent to the client."""
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
        """Record the end of a part; `arguments` are the complete arguments of a call."""
        if isinstance(part, ToolCall):
            signature = part.signature or self._next_signature
            self._next_signature = None
            # The digest of an unsigned call is never looked up.
            digest = digest_call(part.name, arguments) if signature is not None else ""
            self.ended.append(SignedCall(part.id, digest, signature))
        elif isinstance(part, Reasoning) and part.signature is not None:
            found = open_envelope(part.signature)
            self._next_signature = found[0] if found is not None and found[1] == "call" else None


def find_signed_calls(response: Response) -> list[SignedCall]:
    """Return the calls of a whole reply if any part of it is signed, else an empty list."""
    for part in response.parts:
        if part.signature is not None:
            break
    else:
        return []
    recorder = CallRecorder()
    for part in response.parts:
        recorder.record_end(part, part.arguments if isinstance(part, ToolCall) else "")
    return recorder.ended
