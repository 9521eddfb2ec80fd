"""Decodes a stream of generateContent. A whole reply that `response` does not read directly is a stream of one chunk.

The decoder accepts SSE (`alt=sse`), bare JSON (one array, or one value per line), and a bare JSON error in the middle
of SSE. The reply ends with the stream, not with the finish reason: usage may follow it.

Rules: adjacent texts of one kind (text or thought) are one part, because chunk boundaries have no meaning; a signature
ends the part it signs, so text after it is a new part; an empty text with a signature signs the text before it. An
empty text without a signature is dropped. Only candidate 0 is the reply; others are kept raw. `finish` emits what is
known only at the end: it ends open parts, then emits usage, native fields and the finish. Citations are emitted when
their text ends.
"""

import re
from contextlib import suppress

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from dragoman.core import events
from dragoman.core.parts import Opaque, Reasoning, Signature, Text, ToolCall
from dragoman.core.problems import EMPTY_REPLY_CODE, Problem
from dragoman.core.response import Finish
from dragoman.core.stream import replay_part
from dragoman.core.value import Extras
from dragoman.dialects.decoder import FrameDecoder
from dragoman.dialects.gemini.decoder_state import Assembler, OtherCandidates
from dragoman.dialects.gemini.errors import read_frame
from dragoman.dialects.gemini.finish import read_block_reason, read_finish, read_usage
from dragoman.dialects.gemini.grounding import CITATION_FIELD, GROUNDING_FIELD, SourceReader, read_search_call
from dragoman.dialects.gemini.parts import read_part
from dragoman.dialects.gemini.wire import (
    ABSENT,
    ISSUER,
    NAME,
    REPLY,
    Candidate,
    FunctionCall,
    GeminiPart,
    GenerateContentResponse,
    TextChunk,
)
from dragoman.wire import json
from dragoman.wire.json_stream import JsonStreamReader
from dragoman.wire.shape import get_raw_members, non_null_bytes
from dragoman.wire.sse import Frame, SseReader
from dragoman.wire.unread import Unread

_TEXT_CHUNK: Decoder[TextChunk] = Decoder(TextChunk)
_SHORT_USAGE = 64
"""Usage shorter than this number of bytes may have no counts."""
_DONE = b"[DONE]"
_BARE_JSON = re.compile(rb"[\r\n]\{")


class GeminiChunkReader:
    """Decodes the chunks of one reply into events, which it appends to the list `events`. The owner may clear the list.

    `feed` raises `Malformed`, or a `Problem` if the chunk is an error.
    """

    def __init__(self, sink: list[events.Event] | None = None) -> None:
        self.events: list[events.Event] = [] if sink is None else sink
        self._started = False
        self._id = ""
        self._model = ""
        self._count = 0
        self._open = -1
        self._is_thought = False
        self._is_signed = False
        self._partial: tuple[int, Assembler] | None = None
        self._has_call = False
        self._has_candidate = False
        self._finish_reason: str | int | None = None
        self._block_reason = ""
        self._usage = ABSENT
        self._has_counts = False
        self._is_usage_pending = False
        """The first usage has just arrived. It is emitted at once, for clients whose streams start with usage."""
        self._sent_usage = ABSENT
        self._native: dict[str, bytes] = {}
        self._others: OtherCandidates | None = None
        self._texts: list[str] = []
        """All texts of the reply, without thoughts."""
        self._text_starts: dict[int, int] = {}
        """For each text part, the index of its first text in `_texts`."""
        self._layout: list[int] = []
        """For each part of the first chunk, the number of texts before it."""
        self._sources: SourceReader | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the reply has a finish reason or a block reason."""
        return self._finish_reason is not None or bool(self._block_reason)

    def feed(self, body: bytes) -> None:
        """Decode one chunk or an array of chunks."""
        for chunk in map(bytes, json.decode_array(body)) if body.startswith(b"[") else (body,):
            self._read(chunk)

    def append_text(self, body: bytes) -> bool:
        """Decode a chunk that only continues the open text; return False for any other chunk, which needs `feed`."""
        if self._open < 0 or self._is_signed:
            return False
        try:
            chunk = _TEXT_CHUNK.decode(body)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return False
        part = chunk.candidates[0].content.parts[0]
        usage = chunk.usage_metadata
        if part.thought is not self._is_thought or (usage and not (self._has_counts and len(usage) > _SHORT_USAGE)):
            return False
        if usage:
            self._usage = usage
        if not part.thought:
            self._texts.append(part.text)
        self.events.append(events.PartDelta(self._open, part.text))
        return True

    def finish(self) -> None:
        """Emit the end of the reply; raise a `Problem` if there was no candidate."""
        if not self._has_candidate and not self._block_reason:
            raise Problem("malformed_reply", "the reply has no candidates", code=EMPTY_REPLY_CODE)
        self._start()
        if self._partial is not None:
            self._end_partial(complete=self._finish().reason == "stop" and self._partial[1].is_whole)
        self._end_open(last=True)
        self.emit_usage()
        if self._sources is not None:
            self._native.update(self._sources.build_fields())
            search = self._sources.build_search()
            if search is not None:
                self.events.extend(replay_part(self._count, search))
        if self._others is not None:
            self._native.update(self._others.build_fields())
        self.events.extend(events.Native(NAME, field, raw) for field, raw in self._native.items())
        self.events.append(events.Finished(self._finish()))

    def emit_usage(self) -> None:
        """Emit the latest usage, if it has not been emitted."""
        if self._started and self._usage and self._usage is not self._sent_usage:
            self._sent_usage = self._usage
            self.events.append(events.UsageSeen(read_usage(bytes(self._usage))))

    def _finish(self) -> Finish:
        if self._block_reason and self._finish_reason is None:
            return Finish("filtered", self._block_reason)
        return read_finish(self._finish_reason, has_call=self._has_call)

    def _read(self, body: bytes) -> None:
        chunk, unread = REPLY.read(body)
        if chunk.error and non_null_bytes(chunk.error) is not None:
            raise read_frame(body)
        if chunk.response and (inner := non_null_bytes(chunk.response)) is not None:
            trace = non_null_bytes(chunk.trace_id)
            if trace is not None:
                self._native["/traceId"] = trace
            if unread is not None:
                self._native.update(unread.rest())
            body = inner
            chunk, unread = REPLY.read(inner)
        self._native.update(get_raw_members(chunk) or {})
        self._read_chunk(chunk, unread, body)

    def _read_chunk(self, chunk: GenerateContentResponse, unread: Unread | None, body: bytes) -> None:
        if not self._started:
            self._id = chunk.response_id or self._id
            self._model = chunk.model_version or self._model
        if chunk.usage_metadata:
            self._read_usage(chunk.usage_metadata)
        if chunk.prompt_feedback:
            feedback = self._native["/promptFeedback"] = bytes(chunk.prompt_feedback)
            self._block_reason = read_block_reason(feedback) or self._block_reason
        for position, candidate in enumerate(chunk.candidates or ()):
            index = position if candidate.index is None else candidate.index
            if index == 0:
                self._read_candidate(candidate, position, unread)
            else:
                self._others = self._others or OtherCandidates()
                self._others.add(index, body, position)
                if unread is not None:
                    unread.take(f"/candidates/{position}")
        if unread is not None:
            self._native.update(unread.rest())
        if self._is_usage_pending and self._started:
            self._is_usage_pending = False
            self.emit_usage()

    def _read_usage(self, raw: Raw) -> None:
        if self._has_counts and len(raw) > _SHORT_USAGE:
            self._usage = raw
            return
        has_counts = b'TokenCount"' in bytes(raw) or b'_token_count"' in bytes(raw)
        # Vertex sends usage without counts until the end; it must not replace counts that arrived earlier.
        if has_counts or not self._has_counts:
            self._usage = raw
        self._is_usage_pending = has_counts and not self._has_counts
        self._has_counts = self._has_counts or has_counts

    def _read_candidate(self, candidate: Candidate, position: int, unread: Unread | None) -> None:
        self._has_candidate = True
        self._start()
        content = candidate.content
        parts = (content.parts if content is not None else None) or ()
        if isinstance(parts, GeminiPart):
            parts = [parts]
        if candidate.grounding_metadata:
            self._read_sources(GROUNDING_FIELD, candidate.grounding_metadata)
        if candidate.citation_metadata:
            self._read_sources(CITATION_FIELD, candidate.citation_metadata)
        is_first = self._count == 0
        if is_first:
            self._layout.clear()
        for index, part in enumerate(parts):
            where = f"/candidates/{position}/content/parts/{index}"
            fields = unread.take(where) if unread is not None else None
            if is_first:
                self._layout.append(len(self._texts))
            # Part indexes restart at 0 in each chunk; pointers are those of a whole reply.
            self._read_part(part, where if is_first else f"/candidates/0/content/parts/{self._count}", fields)
        if unread is not None:
            for pointer, raw in (unread.take(f"/candidates/{position}") or {}).items():
                self._native["/candidates/0" + pointer] = raw
        self._native.update(get_raw_members(candidate, "/candidates/0") or {})
        if candidate.finish_reason is not None:
            self._finish_reason = candidate.finish_reason

    def _read_sources(self, field: str, raw: Raw) -> None:
        # Read before the parts of the same chunk end, so that each part can emit its own citations.
        self._native[field] = b""
        if self._sources is None:
            self._sources = SourceReader(self._texts, self._text_starts, self._layout)
        self._sources.add(field, bytes(raw))

    def _read_part(self, part: GeminiPart, where: str, fields: dict[str, bytes] | None) -> None:
        call = part.function_call
        is_text_or_call = part.function_response is None and part.inline_data is None and part.file_data is None
        if is_text_or_call and call is None and (part.text is not None or (part.thought_signature and not fields)):
            self._read_text(part, where, fields)
        elif is_text_or_call and call is not None and part.text is None and (call.name or self._partial is not None):
            # A call without a name continues the open partial call.
            self._read_call(call, part.thought_signature, where, fields)
        else:
            self._end_open()
            found = read_part(part, where, fields)
            search = read_search_call(found) if type(found) is Opaque else None
            self.events.extend(replay_part(self._count, search or found))
            self._count += 1

    def _read_text(self, part: GeminiPart, where: str, fields: dict[str, bytes] | None) -> None:
        text = part.text
        signature = part.thought_signature
        if not text and not signature and not fields:
            return
        thought = part.thought is True
        if self._open < 0 or self._is_signed or self._is_thought is not thought:
            self._end_open()
            self._open = self._count
            self._count += 1
            self._is_thought = thought
            started = Reasoning(where=where) if thought else Text(text="", where=where)
            self.events.append(events.PartStarted(self._open, started))
            if not thought:
                self._text_starts[self._open] = len(self._texts)
        if text:
            if not thought:
                self._texts.append(text)
            self.events.append(events.PartDelta(self._open, text))
        if fields:
            self.events.extend(events.PartNative(self._open, NAME, field, raw) for field, raw in fields.items())
        if signature:
            self.events.append(events.PartSigned(self._open, Signature(ISSUER, signature)))
            self._is_signed = True

    def _read_call(
        self, call: FunctionCall, signature: str | None, where: str, fields: dict[str, bytes] | None
    ) -> None:
        pieces = non_null_bytes(call.partial_args) if call.partial_args else None
        arguments = non_null_bytes(call.args)
        if arguments is not None:
            json.require_shallow(arguments)
        continues = bytes(call.will_continue) == b"true"
        if call.name:
            if self._partial is not None:
                self._end_partial(complete=self._partial[1].is_whole)
            self._end_open()
            index = self._count
            self._count += 1
            extras = Extras(NAME, fields) if fields else None
            started = ToolCall(id=call.id or "", name=call.name, arguments="", where=where, extras=extras)
            self.events.append(events.PartStarted(index, started))
            if signature:
                self.events.append(events.PartSigned(index, Signature(ISSUER, signature)))
            if not continues and pieces is None:
                self.events.append(events.PartDelta(index, "{}" if arguments is None else arguments.decode()))
                self.events.append(events.PartEnded(index))
                self._has_call = True
                return
            self._partial = (index, Assembler())
        if self._partial is None:
            return
        if arguments is not None:
            self._partial[1].set_arguments(arguments)
        if pieces is not None:
            self._partial[1].feed(pieces)
        if not continues:
            self._end_partial(complete=True)

    def _end_partial(self, *, complete: bool) -> None:
        if self._partial is None:
            return
        index, assembler = self._partial
        self._partial = None
        self.events.append(events.PartDelta(index, assembler.render(complete=complete)))
        self.events.append(events.PartEnded(index, complete))
        self._has_call = self._has_call or complete

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self.events.append(events.Started(self._id, self._model))

    def _end_open(self, *, last: bool = False) -> None:
        if self._open >= 0:
            if not self._is_thought and self._sources is not None:
                citations = self._sources.build_citations(self._open, last=last)
                self.events.extend(events.PartCited(self._open, citation) for citation in citations)
            self.events.append(events.PartEnded(self._open))
            self._open = -1
            self._is_signed = False


class GeminiReader(SseReader):
    """Reads SSE, bare JSON (one frame per value), and SSE followed by bare JSON, as in Vertex's late errors."""

    def __init__(self) -> None:
        super().__init__()
        self._values: JsonStreamReader | None = None

    def close(self) -> list[Frame]:
        """Return the frames that the end of the stream completes; raise `Malformed` if a JSON value is cut off."""
        if self._values is None:
            return super().close()
        self._values.close()
        return []

    def _feed_lines(self, chunk: bytes, lines: list[bytes]) -> list[Frame]:
        if self._values is not None:
            return [Frame("", value) for value in self._values.feed(chunk)]
        is_start = self._first and not self._partial_line
        if is_start:
            chunk = chunk.lstrip()
            lines = chunk.splitlines()
        if chunk.startswith((b"{", b"[") if is_start else b"{") and not self._partial_line:
            start = 0
        elif (found := _BARE_JSON.search(chunk)) is not None:
            start = found.end() - 1
        else:
            return super()._feed_lines(chunk, lines)
        frames = [*super()._feed_lines(chunk[:start], chunk[:start].splitlines()), *super().close()]
        self._values, self._between = JsonStreamReader(), False
        return [*frames, *self._feed_lines(chunk[start:], [])]


class GeminiDecoder(FrameDecoder):
    """Decodes the bytes of a generateContent stream into events."""

    def __init__(self) -> None:
        super().__init__(GeminiReader())
        self._chunks = GeminiChunkReader(self._events)

    def _decode_frame(self, frame: Frame) -> None:
        data = frame.data
        if self._chunks.append_text(data):
            return
        if data == _DONE:
            self._end()
        elif b"\n" in data:
            # A server that omits the blank lines between events puts several JSON values into one frame.
            values = JsonStreamReader()
            for value in [*values.feed(data), *values.close()]:
                self._chunks.feed(value)
        elif data:
            self._chunks.feed(data)

    def _end(self) -> None:
        if not self._chunks.is_finished:
            raise Problem("malformed_reply", "the stream ended before the reply was finished")
        self._chunks.finish()
        self._is_over = True

    def _fail(self, error: json.Malformed | Problem) -> None:
        with suppress(json.Malformed):
            self._chunks.emit_usage()
        super()._fail(error)
