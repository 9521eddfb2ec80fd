"""Encodes events as chunks of a generateContent stream.

Rules: a chunk is exactly `data: ` and one line of JSON, because google-genai fails on comments, event names and
`[DONE]`. Parts other than text are buffered and sent whole. The last chunk has the sources, as in Google's streams.
"""

from typing import assert_never

from msgspec import Raw, structs

from dragoman.core import events
from dragoman.core.parts import AnyPart, Citation, Reasoning, Refusal, Search, Signature, Text, ToolCall
from dragoman.core.request import Request
from dragoman.core.response import Finish, Usage
from dragoman.core.value import Extras, own_extras
from dragoman.dialects.decoder import Encoder
from dragoman.dialects.gemini import code_assist
from dragoman.dialects.gemini.errors import build_error
from dragoman.dialects.gemini.grounding_writer import is_own_part, join_texts, write_grounding
from dragoman.dialects.gemini.response import build_identity, wrap_reply, write_reply, write_reply_part
from dragoman.dialects.gemini.wire import NAME
from dragoman.wire import json
from dragoman.wire.splice import graft

_END = b"\r\n\r\n"


class _BufferedPart:
    """A part that is sent when it is complete."""

    __slots__ = ("fields", "part", "pieces", "signature")

    def __init__(self, part: AnyPart) -> None:
        self.part = part
        self.pieces: list[str] = []
        self.signature: Signature | None = part.signature
        self.fields: dict[str, bytes] = dict(own_extras(part, NAME) or {})


class _StreamedText:
    """A text that is streamed, with its citations; `thought` is the JSON member that marks a thought, or empty."""

    __slots__ = ("citations", "head", "piece", "pieces", "signature", "tail", "thought")

    def __init__(self, thought: bytes, chunk_head: bytes, chunk_tail: bytes) -> None:
        self.thought = thought
        self.head = chunk_head + b'{"text":'
        self.tail = thought + b"}" + chunk_tail
        self.piece = 0
        self.pieces: list[str] = []
        self.citations: list[Citation] = []
        self.signature: Signature | None = None

    def build_part(self) -> AnyPart:
        if self.thought:
            return Reasoning(texts=("".join(self.pieces),))
        return Text(text="".join(self.pieces), citations=tuple(self.citations), signature=self.signature)


class GeminiEncoder(Encoder):
    """Encodes events into the bytes of a generateContent stream."""

    def __init__(self, request: Request | None) -> None:
        self._request = request
        self._uses_envelope = code_assist.uses_envelope(request)
        self._identity: dict[str, str] = {}
        self._head = b""
        self._tail = b""
        self._texts: dict[int, _StreamedText] = {}
        self._sent_parts: list[_StreamedText | AnyPart] = []
        """The parts that were sent, in order."""
        self._has_citations = False
        self._searches: list[Search] = []
        self._buffered: dict[int, _BufferedPart] = {}
        self._has_content = False
        self._usage: Usage | None = None
        self._fields: dict[str, bytes] = {}
        self._set_template(events.Started("", ""))

    def feed(self, event: events.Event) -> bytes:
        """Return the bytes for the next event."""
        if isinstance(event, events.PartDelta):
            return self._append(event.index, event.text, event.piece)
        match event:
            case events.PartStarted(index, part):
                return self._start(index, part)
            case events.PartEnded(index, complete):
                return self._finish_part(index, complete)
            case events.PartSigned(index, signature):
                return self._sign(index, signature)
            case events.PartCited(index, citation):
                self._cite(index, citation)
            case events.PartNative(index, dialect, field, raw) if dialect == NAME:
                return self._add_field(index, {field: raw})
            case events.UsageSeen(usage):
                self._usage = usage
            case events.Native(dialect, field, raw) if dialect == NAME:
                self._fields[field] = raw
            case events.Started():
                self._set_template(event)
            case events.Finished(finish):
                return self._write_last_chunk(finish)
            case events.Failed(problem):
                return b"data: " + json.one_line(build_error(problem).body) + _END
            case events.PartNative() | events.Native():
                pass
            case _:
                assert_never(event)
        return b""

    def _set_template(self, started: events.Started) -> None:
        """Prepare the bytes before and after the part of every chunk."""
        self._identity = build_identity(started.id, started.model, self._request)
        head = b'data: {"response":{' if self._uses_envelope else b"data: {"
        members = json.encode(self._identity)[1:-1]
        end = b"}}" if self._uses_envelope else b"}"
        self._head = head + b'"candidates":[{"content":{"parts":['
        self._tail = b'],"role":"model"},"index":0}]' + (b"," + members if members else b"") + end + _END

    def _write_chunk(self, part: bytes) -> bytes:
        self._has_content = True
        return self._head + part + self._tail

    def _start(self, index: int, part: AnyPart) -> bytes:
        if type(part) is Search and not is_own_part(part):
            if part.dialect != NAME:
                self._searches.append(part)
            return b""
        if not isinstance(part, Text | Refusal | Reasoning) or (isinstance(part, Reasoning) and part.redacted):
            self._buffered[index] = _BufferedPart(part)
            return b""
        thought = b',"thought":true' if isinstance(part, Reasoning) else b""
        streamed = self._texts[index] = _StreamedText(thought, self._head, self._tail)
        self._sent_parts.append(streamed)
        fields = own_extras(part, NAME)
        return self._add_field(index, fields) if fields else b""

    def _append(self, index: int, text: str, piece: int) -> bytes:
        streamed = self._texts.get(index)
        if streamed is None:
            buffered = self._buffered.get(index)
            if buffered is not None:
                buffered.pieces.append(text)
            return b""
        if piece and piece != streamed.piece:
            # A part has one thought: a blank line separates several summaries.
            streamed.piece = piece
            text = "\n\n" + text
        streamed.pieces.append(text)
        self._has_content = True
        return streamed.head + json.encode(text) + streamed.tail

    def _sign(self, index: int, signature: Signature) -> bytes:
        streamed = self._texts.get(index)
        if streamed is not None:
            streamed.signature = signature
            value = json.encode(signature.value)
            return self._write_chunk(b'{"text":""' + streamed.thought + b',"thoughtSignature":' + value + b"}")
        if index in self._buffered:
            self._buffered[index].signature = signature
        return b""

    def _cite(self, index: int, citation: Citation) -> None:
        streamed = self._texts.get(index)
        if streamed is not None and not streamed.thought and citation.url and citation.dialect != NAME:
            streamed.citations.append(citation)
            self._has_citations = True

    def _write_sources(self) -> dict[str, bytes]:
        """Return the grounding metadata of all sent parts, numbered as a client numbers the parts that it assembles."""
        parts: list[AnyPart] = []
        thinking = False
        for item in self._sent_parts:
            if not isinstance(item, _StreamedText):
                parts.append(item)
                thinking = False
            elif item.pieces or item.signature is not None:
                if not (thinking and item.thought):
                    parts.append(item.build_part())
                thinking = bool(item.thought) and item.signature is None
        return write_grounding(join_texts(parts), self._searches)

    def _add_field(self, index: int, fields: dict[str, bytes]) -> bytes:
        streamed = self._texts.get(index)
        if streamed is not None:
            return self._write_chunk(json.one_line(graft(b'{"text":""' + streamed.thought + b"}", fields)))
        if index in self._buffered:
            self._buffered[index].fields.update(fields)
        return b""

    def _finish_part(self, index: int, complete: bool) -> bytes:
        buffered = self._buffered.pop(index, None)
        if buffered is None:
            return b""
        part = _build_part(buffered, complete)
        written = write_reply_part(part)
        if written is None:
            return b""
        self._sent_parts.append(part)
        return self._write_chunk(json.one_line(json.encode(written)))

    def _write_last_chunk(self, finish: Finish) -> bytes:
        parts = [Raw(b'{"text":""}')] if self._has_content else []
        has_sources = self._has_citations or self._searches
        fields = {**self._write_sources(), **self._fields} if has_sources else self._fields
        body = write_reply(parts=parts, finish=finish, usage=self._usage, fields=fields, identity=self._identity)
        if self._uses_envelope:
            body = wrap_reply(body, self._fields)
        return b"data: " + json.one_line(body) + _END


def _build_part(buffered: _BufferedPart, complete: bool) -> AnyPart:
    part = buffered.part
    extras = Extras(NAME, buffered.fields) if buffered.fields else None
    if isinstance(part, ToolCall):
        arguments = part.arguments + "".join(buffered.pieces)
        return ToolCall(
            id=part.id,
            name=part.name,
            arguments=arguments or "{}",
            complete=complete,
            signature=buffered.signature,
            extras=extras,
        )
    return structs.replace(part, signature=buffered.signature, extras=extras)
