"""Decodes the chunks of a streamed reply into core events.

Rules: `finish_reason` ends the reply, but usage may still follow, so `Finished` is emitted at `[DONE]` or at the end of
the stream. A text part ends when another part starts; a call ends when its arguments are complete and another part
starts, or with the reply. Calls are distinguished by id, then by index, then by order, because compatible servers
repeat, reuse or omit each of these.
"""

from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import structs

from dragoman.core import events
from dragoman.core.parts import AnyPart, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.dialects.chat import wire, wire_reply
from dragoman.dialects.chat.decoder_state import CallTable, FieldPieces, OtherChoices, StreamedCall
from dragoman.dialects.chat.errors import read_error
from dragoman.dialects.chat.fields import REASONING_SPELLINGS, Spelling, find_text_member
from dragoman.dialects.chat.parts import GOOGLE, read_arguments, read_citation, read_part
from dragoman.dialects.chat.reasoning_details import DetailPieces
from dragoman.dialects.chat.response import (
    is_complete,
    is_text,
    list_reasoning,
    parse_response,
    read_finish,
    read_usage,
)
from dragoman.dialects.chat.wire import NAME
from dragoman.dialects.decoder import FrameDecoder
from dragoman.wire.json import Malformed, encode
from dragoman.wire.shape import non_null_bytes
from dragoman.wire.sse import Frame
from dragoman.wire.unread import Unread

if TYPE_CHECKING:
    from msgspec import Raw


_TextKind = Literal["", "text", "reasoning", "refusal"]
_NO_ERROR = (b"{}", b'""', b"false", b"[]")
_MESSAGE = "/choices/0/message"
_DETAILS = f"{_MESSAGE}/reasoning_details"
_CUT_OFF = "the stream ended before the reply was finished"


class ChatDecoder(FrameDecoder):
    """Decodes upstream bytes into core events."""

    def __init__(self) -> None:
        super().__init__(parse_whole=parse_response)
        self._started = False
        self._count = 0
        self._open_kind: _TextKind = ""
        self._open_index = 0
        self._calls = CallTable()
        self._has_refusal = False
        self._details = DetailPieces()
        self._annotation_count = 0
        self._content_count = 0
        self._finish_reason: str | None = None
        self._usage: bytes | None = None
        self._fields = FieldPieces()
        self._last_fields: dict[str, Raw] = {}
        self._other_choices = OtherChoices()

    def _decode_frame(self, frame: Frame) -> None:
        data = frame.data
        if self._open_kind == "text" and not frame.event and self._append_text(data):
            return
        if data[:1] != b"{" and data.strip() == b"[DONE]":
            self._finish(done=True)
            return
        chunk, unread = wire_reply.CHUNK.read(data)
        if chunk.error and (error := non_null_bytes(chunk.error)) is not None and error not in _NO_ERROR:
            raise read_error(error)
        if chunk.object == "error" or frame.event == "error":
            raise read_error(data)
        choices = chunk.choices or ()
        if not self._started and (chunk.id or choices):
            self._start(chunk)
        if chunk.system_fingerprint or chunk.service_tier or chunk.provider:
            for pointer, given in self._find_changed_fields(chunk):
                self._last_fields[pointer] = given
                self._add_field(pointer, bytes(given))
        if chunk.usage and chunk.usage != wire.NULL:
            self._usage = bytes(chunk.usage)
        has_others = False
        for position, choice in enumerate(choices):
            if choice.index:
                has_others = True
            else:
                self._read_choice(choice, position, unread)
        if has_others:
            self._other_choices.add(data)
        if unread is not None:
            self._keep_unread(unread, choices)

    def _append_text(self, data: bytes) -> bool:
        """Emit a chunk that only appends to the open text; return False and emit nothing for any other chunk."""
        try:
            chunk = wire_reply.TEXT_CHUNK.decode(data)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return False
        if (chunk.system_fingerprint or chunk.service_tier or chunk.provider) and self._find_changed_fields(chunk):
            return False
        self._events.append(events.PartDelta(self._open_index, chunk.choices[0].delta.content))
        return True

    def _end(self) -> None:
        self._finish(done=False)

    def _fail(self, error: Malformed | Problem) -> None:
        if self._started and self._usage is not None:
            self._emit_usage()
        super()._fail(error)

    def _start(self, chunk: wire_reply.ChatChunk) -> None:
        self._started = True
        self._events.append(
            events.Started(chunk.id or "", chunk.model or "", int(chunk.created) if chunk.created else None)
        )

    def _find_changed_fields(self, chunk: wire_reply.ChatChunk | wire_reply.ChatTextChunk) -> "list[tuple[str, Raw]]":
        """Return the top-level fields whose value differs from the last chunk that had them."""
        return [
            (pointer, given)
            for pointer, given in (
                ("/system_fingerprint", chunk.system_fingerprint),
                ("/service_tier", chunk.service_tier),
                ("/provider", chunk.provider),
            )
            if given and given != self._last_fields.get(pointer, wire.NULL)
        ]

    def _add_field(self, pointer: str, raw: bytes) -> None:
        if raw != b"null":
            self._fields.add(pointer, raw)

    def _keep_unread(self, unread: Unread, choices: "list[wire_reply.ChunkChoice] | tuple[()]") -> None:
        """Keep unknown fields, by the pointers they would have in a whole reply."""
        for pointer, raw in unread.rest().items():
            if not pointer.startswith("/choices/"):
                self._add_field(pointer, raw)
                continue
            position, _, rest = pointer.removeprefix("/choices/").partition("/")
            if not choices[int(position)].index:
                below = f"message/{rest.removeprefix('delta/')}" if rest.startswith("delta/") else rest
                self._add_field(f"/choices/0/{below}", raw)

    def _read_choice(self, choice: wire_reply.ChunkChoice, position: int, unread: Unread | None) -> None:
        if choice.delta is not None:
            self._read_delta(choice.delta, position, unread)
        if choice.finish_reason:
            self._finish_reason = choice.finish_reason
        if choice.logprobs or choice.native_finish_reason or choice.content_filter_results:
            self._read_choice_fields(choice)

    def _read_choice_fields(self, choice: wire_reply.ChunkChoice) -> None:
        for member, given in (
            ("logprobs", choice.logprobs),
            ("native_finish_reason", choice.native_finish_reason),
            ("content_filter_results", choice.content_filter_results),
        ):
            if given is not wire.ABSENT and given != wire.NULL:
                self._add_field(f"/choices/0/{member}", bytes(given))

    def _read_delta(self, delta: wire_reply.Delta, position: int, unread: Unread | None) -> None:
        if delta.reasoning_content or delta.reasoning or delta.reasoning_text or delta.thinking:
            self._read_reasoning(delta)
        if delta.content:
            if isinstance(delta.content, str):
                self._append_delta("text", delta.content)
            else:
                for index, part in enumerate(delta.content):
                    self._read_content_part(read_part(part, f"/choices/{position}/delta/content/{index}", unread))
        if delta.refusal:
            self._append_delta("refusal", delta.refusal)
        if delta.tool_calls:
            for index, call in enumerate(delta.tool_calls):
                where = f"/choices/{position}/delta/tool_calls/{index}"
                self._read_call(call, unread.take(where) if unread is not None else None)
        legacy = delta.function_call
        if legacy is not None and (legacy.name or legacy.arguments):
            self._read_legacy_call(legacy)
        if delta.annotations:
            self._read_annotations(delta)
        if delta.reasoning_details is not wire.ABSENT:
            raw = bytes(delta.reasoning_details)
            text = self._details.add(raw)
            if text:
                self._append_delta("reasoning", text, Spelling.DETAILS)
            elif text is None:
                self._add_field(_DETAILS, raw)

    def _read_reasoning(self, delta: wire_reply.Delta) -> None:
        """Read the first member with reasoning; another one that does not repeat it is a field of the reply."""
        found = list_reasoning(delta)
        for at, (member, text) in enumerate(found):
            if at == 0:
                self._details.is_repetition = True
                self._append_delta("reasoning", text, REASONING_SPELLINGS[member])
            elif text != found[0][1]:
                self._add_field(f"{_MESSAGE}/{member}", encode(text))
        thinking = non_null_bytes(delta.thinking)
        if thinking is not None and not is_text(delta.thinking):
            self._add_field(f"{_MESSAGE}/thinking", thinking)

    def _append_delta(self, kind: _TextKind, text: str, spelling: str = "") -> None:
        if self._open_kind != kind:
            self._open_part(kind, spelling)
        if text:
            self._events.append(events.PartDelta(self._open_index, text))

    def _open_part(self, kind: _TextKind, spelling: str) -> None:
        self._end_open_part()
        self._end_complete_calls()
        if kind != "reasoning":
            self._emit_details()
        part: AnyPart
        in_list = spelling in (Spelling.PART, Spelling.THINKING)
        where = self._take_content_pointer() if in_list else f"{_MESSAGE}/{find_text_member(kind, spelling)}"
        match kind:
            case "reasoning":
                part = Reasoning(spelling=spelling, where=where)
            case "refusal":
                part = Refusal(text="", spelling=spelling, where=where)
                self._has_refusal = True
            case _:
                part = Text(text="", spelling=spelling, where=where)
        self._open_kind = kind
        self._open_index = self._start_part(part)

    def _take_content_pointer(self) -> str:
        """Return the pointer that the next part of a content list would have in a whole reply."""
        pointer = f"{_MESSAGE}/content/{self._content_count}"
        self._content_count += 1
        return pointer

    def _start_part(self, part: AnyPart) -> int:
        index = self._count
        self._count += 1
        self._events.append(events.PartStarted(index, part))
        return index

    def _end_open_part(self) -> None:
        if self._open_kind == "reasoning" and self._details:
            self._events.append(events.PartSigned(self._open_index, self._details.take()))
        if self._open_kind:
            self._events.append(events.PartEnded(self._open_index))
            self._open_kind = ""

    def _emit_details(self) -> None:
        """Emit details that came without reasoning as a part of their own, before the part that starts now."""
        if self._details:
            part = Reasoning(redacted=True, where=_DETAILS, signature=self._details.take())
            self._events.append(events.PartEnded(self._start_part(part)))

    def _end_complete_calls(self) -> None:
        for call in self._calls.pop_complete():
            call.ended = True
            self._events.append(events.PartEnded(call.index))

    def _read_content_part(self, part: AnyPart) -> None:
        match part:
            case Text(text=text):
                kind: _TextKind = "text"
            case Reasoning(texts=texts):
                kind, text = "reasoning", "".join(texts)
            case Refusal(text=text):
                kind = "refusal"
            case _:
                self._end_open_part()
                self._events.append(
                    events.PartEnded(self._start_part(structs.replace(part, where=self._take_content_pointer())))
                )
                return
        if text or part.extras is not None:
            self._append_delta(kind, text, part.spelling or Spelling.PART)
        if part.extras is not None:
            for field, raw in part.extras.fields.items():
                self._events.append(events.PartNative(self._open_index, NAME, field, raw))

    def _read_annotations(self, delta: wire_reply.Delta) -> None:
        annotations = delta.annotations or []
        if self._open_kind == "text":
            for raw in annotations:
                pointer = f"{_MESSAGE}/annotations/{self._annotation_count}"
                self._annotation_count += 1
                self._events.append(events.PartCited(self._open_index, read_citation(raw, pointer)))
        else:
            self._add_field("/choices/0/message/annotations", encode(annotations))

    def _read_call(self, delta: wire.ReplyCall, unread: dict[str, bytes] | None) -> None:
        custom = delta.custom if delta.type == "custom" or delta.function is None else None
        if custom is not None:
            name, text = custom.name or "", custom.input or ""
        else:
            function = delta.function or wire.ChatFunctionCall()
            name, text = function.name or "", read_arguments(function.arguments)
        call = self._calls.find(delta.id or "", delta.index, name, text)
        if custom is not None and call.index < 0:
            call.form = "text"
        google = delta.extra_content.google if delta.extra_content is not None else None
        if google is not None and google.thought_signature:
            call.signature = Signature(GOOGLE, google.thought_signature)
        for field, raw in (unread or {}).items():
            if raw != b"null":
                call.fields[field] = raw
        self._append_arguments(call, text)

    def _read_legacy_call(self, delta: wire.ChatFunctionCall) -> None:
        call = self._calls.get_legacy_call(delta.name or "")
        self._append_arguments(call, read_arguments(delta.arguments))

    def _append_arguments(self, call: StreamedCall, text: str) -> None:
        """Emit the new data of a call; a call starts once its name and an id or arguments are known."""
        if call.ended:
            call.check_repeat(text)
            return
        call.append_delta(text)
        if call.index < 0:
            if not call.name or not (call.id or call.pieces):
                return
            self._start_call(call)
        elif text:
            self._events.append(events.PartDelta(call.index, text))
            self._calls.mark_changed(call)
        self._emit_call_fields(call)

    def _start_call(self, call: StreamedCall) -> None:
        self._end_open_part()
        self._end_complete_calls()
        self._emit_details()
        spelling = Spelling.FUNCTION_CALL if call.is_legacy else ""
        member = "function_call" if call.is_legacy else f"tool_calls/{call.ordinal}"
        where = f"{_MESSAGE}/{member}"
        part = ToolCall(id=call.id, name=call.name, arguments="", form=call.form, where=where, spelling=spelling)
        call.index = self._start_part(part)
        self._calls.mark_changed(call)
        if call.pieces:
            self._events.append(events.PartDelta(call.index, "".join(call.pieces)))

    def _emit_call_fields(self, call: StreamedCall) -> None:
        if call.signature is not None:
            self._events.append(events.PartSigned(call.index, call.signature))
            call.signature = None
        for field, raw in call.fields.items():
            self._events.append(events.PartNative(call.index, NAME, field, raw))
        call.fields.clear()

    def _finish(self, *, done: bool) -> None:
        """Emit the end of the reply; fail if the stream was cut off.

        Without a `finish_reason`, `[DONE]` ends a reply that has parts and only complete calls.
        """
        if self._finish_reason is None and not (done and self._count and self._calls.are_complete()):
            raise Problem("malformed_reply", _CUT_OFF)
        if not self._started:
            self._start(wire_reply.ChatChunk())
        calls = [call for call in self._calls.calls if not call.is_blank()]
        for call in calls:
            if not call.name:
                raise Problem("malformed_reply", "a tool call has no name")
            if call.index < 0:
                self._start_call(call)
                self._emit_call_fields(call)
        self._end_open_part()
        if self._details:
            self._add_field(_DETAILS, self._details.merge())
        fields = [*self._fields.items(), *self._other_choices.items()]
        stopped_by = dict(fields).get("/choices/0/stop_reason")
        finish = read_finish(
            self._finish_reason, has_call=bool(calls), has_refusal=self._has_refusal, stopped_by=stopped_by
        )
        for call in calls:
            if call.ended:
                continue
            arguments = "".join(call.pieces)
            complete = is_complete(call.form, arguments, finish, call is calls[-1])
            if complete and not arguments and call.form == "json":
                self._events.append(events.PartDelta(call.index, "{}"))
            self._events.append(events.PartEnded(call.index, complete))
        self._events.extend(events.Native(NAME, field, raw) for field, raw in fields)
        self._emit_usage()
        self._events.append(events.Finished(finish))
        self._is_over = True

    def _emit_usage(self) -> None:
        usage = read_usage(self._usage)
        if usage is not None:
            self._events.append(events.UsageSeen(usage))
