"""Events of a reply, encoded as chunks of generateContent.

Rules: exactly `data: ` and one line of JSON a chunk: google-genai fails on comments, event names and `[DONE]`. Parts
that are not text are written when they are whole. Sources are named in the last chunk, as Google does.
"""

from msgspec import Raw, structs

from dragoman.core.events import (
    Event,
    Failed,
    Finished,
    Native,
    PartCited,
    PartDelta,
    PartEnded,
    PartNative,
    PartSigned,
    PartStarted,
    Started,
    UsageSeen,
)
from dragoman.core.parts import AnyPart, Citation, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.request import Request
from dragoman.core.response import Finish, Usage
from dragoman.core.value import Extras, own_extras
from dragoman.dialects.decoder import Encoder
from dragoman.dialects.gemini import code_assist
from dragoman.dialects.gemini.errors import build_error
from dragoman.dialects.gemini.grounding import joined, write_grounding
from dragoman.dialects.gemini.response import identity, wrap, write_reply, write_reply_part
from dragoman.dialects.gemini.wire import NAME
from dragoman.wire import json
from dragoman.wire.splice import graft

_END = b"\r\n\r\n"


class _Held:
    """A part that is written when it is whole."""

    __slots__ = ("fields", "part", "pieces", "signature")

    def __init__(self, part: AnyPart) -> None:
        self.part = part
        self.pieces: list[str] = []
        self.signature: Signature | None = part.signature
        self.fields: dict[str, bytes] = dict(own_extras(part, NAME) or {})


class _Spoken:
    """A text as it is told, with the sources named for it; `thought` is the member that marks a thought, or nothing."""

    __slots__ = ("citations", "head", "piece", "pieces", "signature", "tail", "thought")

    def __init__(self, thought: bytes, before: bytes, behind: bytes) -> None:
        self.thought = thought
        self.head = before + b'{"text":'
        self.tail = thought + b"}" + behind
        self.piece = 0
        self.pieces: list[str] = []
        self.citations: list[Citation] = []
        self.signature: Signature | None = None

    def part(self) -> AnyPart:
        if self.thought:
            return Reasoning(texts=("".join(self.pieces),))
        return Text(text="".join(self.pieces), citations=tuple(self.citations), signature=self.signature)


class GeminiEncoder(Encoder):
    """Events in, bytes for the client out."""

    def __init__(self, request: Request | None) -> None:
        self._request = request
        self._enveloped = code_assist.enveloped(request)
        self._identity: dict[str, str] = {}
        self._head = b""
        self._tail = b""
        self._texts: dict[int, _Spoken] = {}
        self._told: list[_Spoken | AnyPart] = []
        """What has been told, in order; a part that is not text stands for itself."""
        self._cited = False
        self._held: dict[int, _Held] = {}
        self._said = False
        self._usage: Usage | None = None
        self._fields: dict[str, bytes] = {}
        self._frame(Started("", ""))

    def feed(self, event: Event) -> bytes:
        """Take the next event."""
        if isinstance(event, PartDelta):
            return self._append(event.index, event.text, event.piece)
        match event:
            case PartStarted(index, part):
                return self._start(index, part)
            case PartEnded(index, complete):
                return self._finish_part(index, complete)
            case PartSigned(index, signature):
                return self._sign(index, signature)
            case PartCited(index, citation):
                self._cite(index, citation)
            case PartNative(index, dialect, field, raw) if dialect == NAME:
                return self._add_field(index, {field: raw})
            case UsageSeen(usage):
                self._usage = usage
            case Native(dialect, field, raw) if dialect == NAME:
                self._fields[field] = raw
            case Started():
                self._frame(event)
            case Finished(finish):
                return self._last(finish)
            case Failed(problem):
                return b"data: " + json.one_line(build_error(problem).body) + _END
            case _:
                pass
        return b""

    def _frame(self, started: Started) -> None:
        """Prepare what stands around the parts of every chunk."""
        self._identity = identity(started.id, started.model, self._request)
        head = b'data: {"response":{' if self._enveloped else b"data: {"
        members = json.encode(self._identity)[1:-1]
        end = b"}}" if self._enveloped else b"}"
        self._head = head + b'"candidates":[{"content":{"parts":['
        self._tail = b'],"role":"model"},"index":0}]' + (b"," + members if members else b"") + end + _END

    def _chunk(self, part: bytes) -> bytes:
        self._said = True
        return self._head + part + self._tail

    def _start(self, index: int, part: AnyPart) -> bytes:
        if not isinstance(part, Text | Refusal | Reasoning) or (isinstance(part, Reasoning) and part.redacted):
            self._held[index] = _Held(part)
            return b""
        thought = b',"thought":true' if isinstance(part, Reasoning) else b""
        spoken = self._texts[index] = _Spoken(thought, self._head, self._tail)
        self._told.append(spoken)
        fields = own_extras(part, NAME)
        return self._add_field(index, fields) if fields else b""

    def _append(self, index: int, text: str, piece: int) -> bytes:
        spoken = self._texts.get(index)
        if spoken is None:
            held = self._held.get(index)
            if held is not None:
                held.pieces.append(text)
            return b""
        if piece and piece != spoken.piece:
            # One part is one thought: separate summaries stay apart by a blank line.
            spoken.piece = piece
            text = "\n\n" + text
        spoken.pieces.append(text)
        self._said = True
        return spoken.head + json.encode(text) + spoken.tail

    def _sign(self, index: int, signature: Signature) -> bytes:
        spoken = self._texts.get(index)
        if spoken is not None:
            spoken.signature = signature
            value = json.encode(signature.value)
            return self._chunk(b'{"text":""' + spoken.thought + b',"thoughtSignature":' + value + b"}")
        if index in self._held:
            self._held[index].signature = signature
        return b""

    def _cite(self, index: int, citation: Citation) -> None:
        spoken = self._texts.get(index)
        if spoken is not None and not spoken.thought and citation.url and citation.dialect != NAME:
            spoken.citations.append(citation)
            self._cited = True

    def _sources(self) -> dict[str, bytes]:
        """Name the sources of all that was told, in the parts that a reader of the stream puts together."""
        told: list[AnyPart] = []
        thinking = False
        for item in self._told:
            if not isinstance(item, _Spoken):
                told.append(item)
                thinking = False
            elif item.pieces or item.signature is not None:
                if not (thinking and item.thought):
                    told.append(item.part())
                thinking = bool(item.thought) and item.signature is None
        return write_grounding(joined(told))

    def _add_field(self, index: int, fields: dict[str, bytes]) -> bytes:
        spoken = self._texts.get(index)
        if spoken is not None:
            return self._chunk(json.one_line(graft(b'{"text":""' + spoken.thought + b"}", fields)))
        if index in self._held:
            self._held[index].fields.update(fields)
        return b""

    def _finish_part(self, index: int, complete: bool) -> bytes:
        held = self._held.pop(index, None)
        if held is None:
            return b""
        part = _whole(held, complete)
        written = write_reply_part(part)
        if written is None:
            return b""
        self._told.append(part)
        return self._chunk(json.one_line(json.encode(written)))

    def _last(self, finish: Finish) -> bytes:
        parts = [Raw(b'{"text":""}')] if self._said else []
        fields = {**self._sources(), **self._fields} if self._cited else self._fields
        body = write_reply(parts=parts, finish=finish, usage=self._usage, fields=fields, identity=self._identity)
        if self._enveloped:
            body = wrap(body, self._fields)
        return b"data: " + json.one_line(body) + _END


def _whole(held: _Held, complete: bool) -> AnyPart:
    part = held.part
    extras = Extras(NAME, held.fields) if held.fields else None
    if isinstance(part, ToolCall):
        arguments = part.arguments + "".join(held.pieces)
        return ToolCall(
            id=part.id,
            name=part.name,
            arguments=arguments or "{}",
            complete=complete,
            signature=held.signature,
            extras=extras,
        )
    return structs.replace(part, signature=held.signature, extras=extras)
