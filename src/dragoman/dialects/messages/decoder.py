"""Decodes the frames of a Messages stream into events.

Rules: a block without deltas in the core (an opaque one) is emitted whole when it stops, so that it includes the input
it received in deltas; a call's input is taken from its deltas, or from its start if all deltas were empty. A reply is
complete only after `message_stop`.
"""

from collections.abc import Iterator
from typing import assert_never, cast

from msgspec import structs

from dragoman.core import events
from dragoman.core.parts import Opaque, Reasoning, Search, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.stream import replay_part
from dragoman.dialects.decoder import FrameDecoder
from dragoman.dialects.messages.decoder_state import OpenBlock, UsageTotals
from dragoman.dialects.messages.errors import read_error_event
from dragoman.dialects.messages.parts import read_citation, read_part
from dragoman.dialects.messages.response import complete_call, drop_nulls, parse_response, read_finish, require_name
from dragoman.dialects.messages.searches import read_web_search
from dragoman.dialects.messages.tool_search import read_search
from dragoman.dialects.messages.wire import (
    ISSUER,
    NAME,
    BlockDelta,
    BlockStart,
    BlockStop,
    CitationsDelta,
    Delta,
    ErrorEvent,
    JsonDelta,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    SignatureDelta,
    StreamEvent,
    TextDelta,
)
from dragoman.wire.json import Malformed, decode, decode_object, encode, is_json, is_nested_too_deeply
from dragoman.wire.pointer import escape
from dragoman.wire.shape import Shape, get_raw_members
from dragoman.wire.sse import Frame
from dragoman.wire.unread import Unknown, Unread

_EVENT: Shape[StreamEvent] = Shape(StreamEvent)
_EMPTY_INPUTS = ("", "{}")


class MessagesDecoder(FrameDecoder):
    """Decodes the bytes of a Messages stream into events."""

    def __init__(self) -> None:
        super().__init__(parse_whole=parse_response)
        self._id: str | None = None
        self._count = 0
        self._open: dict[int, OpenBlock] = {}
        self._has_call = False
        self._usage = UsageTotals()
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None

    def _decode_frame(self, frame: Frame) -> None:
        event, unread = _EVENT.read(frame.data)
        if type(event) is BlockDelta:
            self._append_delta(event, unread)
        else:
            self._events.extend(self._decode_event(event, frame, unread))

    def _end(self) -> None:
        raise Problem("malformed_reply", "the stream ended before message_stop")

    def _decode_event(self, event: StreamEvent, frame: Frame, unread: Unread | None) -> Iterator[events.Event]:
        if self._id is None and not isinstance(event, MessageStart | Ping | ErrorEvent):
            yield self._start_reply("", "")
        match event:
            case MessageStart():
                yield from self._read_message_start(event, unread)
            case BlockStart():
                yield from self._open_block(event, unread)
            case BlockStop(index):
                if index in self._open:
                    yield from self._end_block(self._open.pop(index))
            case MessageDelta():
                yield from self._read_message_delta(event, unread)
            case MessageStop():
                yield from self._finish(unread)
            case ErrorEvent():
                raise read_error_event(frame.data)
            case Unknown():
                yield self._decode_unknown(frame)
            case BlockDelta() | Ping():
                pass
            case _:
                assert_never(event)

    def _decode_unknown(self, frame: Frame) -> events.Event:
        members = decode_object(frame.data)
        # Proxies report errors in their own formats, without Anthropic's type.
        if frame.event == "error" or ("error" in members and "type" not in members):
            raise read_error_event(frame.data)
        kind = decode(members["type"]) if "type" in members else frame.event
        return events.Native(NAME, "/" + escape(str(kind)), frame.data)

    def _start_reply(self, reply_id: str, model: str) -> events.Started:
        self._id = reply_id
        return events.Started(reply_id, model)

    def _read_message_start(self, event: MessageStart, unread: Unread | None) -> Iterator[events.Event]:
        message = event.message
        # Anthropic sometimes sends the same message_start twice.
        if self._id is None:
            yield self._start_reply(message.id or "", message.model or "")
        elif self._id != message.id or self._count:
            raise Malformed("a second message_start")
        for position, block in enumerate(message.content or ()):
            part = complete_call(read_part(block, f"/message/content/{position}", unread))
            part = structs.replace(part, where=f"/content/{position}")
            self._has_call = self._has_call or isinstance(part, ToolCall)
            yield from replay_part(self._count, part)
            self._count += 1
        if message.usage is not None:
            yield events.UsageSeen(self._usage.update(message.usage, unread, "/message/usage"))
        self._stop_reason = message.stop_reason
        self._stop_sequence = message.stop_sequence
        yield from _to_native_events(get_raw_members(message))
        if unread is not None:
            yield from _to_native_events(unread.take("/message"))
            yield from _to_native_events(unread.rest())

    def _open_block(self, event: BlockStart, unread: Unread | None) -> Iterator[events.Event]:
        if event.index in self._open:
            raise Malformed(f"block {event.index} started twice")
        part = read_part(event.content_block, "/content_block", unread)
        part = structs.replace(part, where=f"/content/{event.index}")
        block = self._open[event.index] = OpenBlock(part)
        if unread is not None:
            yield from _to_native_events(unread.rest())
        if isinstance(part, Opaque):
            return
        block.index = self._count
        self._count += 1
        match part:
            case ToolCall(arguments=arguments):
                part = require_name(part)
                block.initial_input = "" if arguments in _EMPTY_INPUTS else arguments
                yield events.PartStarted(block.index, structs.replace(part, arguments=""))
            case Text() | Reasoning(redacted=False):
                *opening, _ended = replay_part(block.index, part)
                yield from opening
            case _:
                yield events.PartStarted(block.index, part)

    def _append_delta(self, event: BlockDelta, unread: Unread | None) -> None:
        block = self._open.get(event.index)
        if block is None:
            raise Malformed(f"a delta for block {event.index}, which is not open")
        delta = event.delta
        if type(delta) is block.delta_type:
            text = cast("TextDelta", delta).text
            if text:
                if block.fragments is not None:
                    block.fragments.append(text)
                if not block.initial_input:
                    self._events.append(events.PartDelta(block.index, text))
        else:
            self._events.extend(_read_other_delta(block, delta))
        if unread is not None:
            block.add_fields(unread.take("/delta") or {})
            self._events.extend(_to_native_events(unread.rest()))

    def _end_block(self, block: OpenBlock) -> Iterator[events.Event]:
        complete = True
        match block.part:
            case Opaque() as part:
                block.index = self._count
                self._count += 1
                raw = block.complete(part.raw)
                if type(part) is Search:  # its query comes in deltas
                    part = read_web_search(raw, part.where) or part
                elif raw is not part.raw:
                    part = read_search(structs.replace(part, raw=raw))
                yield events.PartStarted(block.index, part)
            case ToolCall():
                streamed = "".join(block.fragments or ())
                complete = not streamed or is_json(streamed) or is_nested_too_deeply(streamed)
                if block.initial_input:
                    yield events.PartDelta(block.index, streamed if streamed and complete else block.initial_input)
                    complete = True
                elif not streamed:
                    yield events.PartDelta(block.index, "{}")
                self._has_call = self._has_call or complete
            case _:
                pass
        if not isinstance(block.part, Opaque):
            for pointer, value in block.join_fields().items():
                yield events.PartNative(block.index, NAME, pointer, encode(value))
        yield events.PartEnded(block.index, complete)

    def _read_message_delta(self, event: MessageDelta, unread: Unread | None) -> Iterator[events.Event]:
        if event.delta.stop_reason is not None:
            self._stop_reason = event.delta.stop_reason
        if event.delta.stop_sequence is not None:
            self._stop_sequence = event.delta.stop_sequence
        yield from _to_native_events(get_raw_members(event.delta))
        yield from _to_native_events(get_raw_members(event))
        if event.usage is not None:
            yield events.UsageSeen(self._usage.update(event.usage, unread, "/usage"))
        if unread is not None:
            yield from _to_native_events(unread.take("/delta"))
            yield from _to_native_events(unread.rest())

    def _finish(self, unread: Unread | None) -> Iterator[events.Event]:
        for block in list(self._open.values()):
            yield from self._end_block(block)
        self._open.clear()
        if unread is not None:
            yield from _to_native_events(unread.rest())
        self._is_over = True
        yield events.Finished(read_finish(self._stop_reason, self._stop_sequence, has_call=self._has_call))


def _to_native_events(fields: dict[str, bytes] | None) -> Iterator[events.Native]:
    for pointer, raw in drop_nulls(fields or {}).items():
        yield events.Native(NAME, pointer, raw)


def _read_other_delta(block: OpenBlock, delta: Delta) -> Iterator[events.Event]:
    part = block.part
    match delta:
        case SignatureDelta(signature) if isinstance(part, Reasoning):
            if signature:
                yield events.PartSigned(block.index, Signature(ISSUER, signature))
        case CitationsDelta(citation) if isinstance(part, Text):
            yield events.PartCited(block.index, read_citation(citation))
        case JsonDelta(text) if block.fragments is not None:
            block.fragments.append(text)
        case other:
            raw = other.raw if isinstance(other, Unknown) else encode(other)
            members = decode_object(raw).items()
            block.add_fields({"/" + escape(name): bytes(value) for name, value in members if name != "type"})
