"""Decodes the frames of a Messages stream into events.

Rules: a block without deltas in the core (an opaque one) is emitted whole when it stops, so that it includes the input
it received in deltas; a call's input is taken from its deltas, or from its start if all deltas were empty; usage is a
snapshot in which later numbers replace earlier ones field by field. A reply is complete only after `message_stop`.
"""

from collections.abc import Iterator
from typing import Any, assert_never, cast

from msgspec import Raw, structs

from dragoman.core import events
from dragoman.core.parts import AnyPart, Opaque, Reasoning, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.stream import replay_part
from dragoman.core.value import Extras
from dragoman.dialects.decoder import FrameDecoder
from dragoman.dialects.messages.errors import read_error_event
from dragoman.dialects.messages.parts import read_citation, read_part
from dragoman.dialects.messages.response import (
    complete_call,
    drop_nulls,
    parse_response,
    read_finish,
    read_usage,
    require_name,
)
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
    ThinkingDelta,
    UsageShape,
)
from dragoman.wire.json import Malformed, decode, decode_object, encode, is_json, with_members
from dragoman.wire.pointer import escape, unescape
from dragoman.wire.shape import Shape, get_raw_members
from dragoman.wire.sse import Frame
from dragoman.wire.unread import Unknown, Unread

_EVENT: Shape[StreamEvent] = Shape(StreamEvent)
_EMPTY_INPUTS = ("", "{}")


_DELTA_TYPES: dict[type[AnyPart], type[Delta]] = {Text: TextDelta, ToolCall: JsonDelta, Reasoning: ThinkingDelta}


class _OpenBlock:
    """A block between its start and stop events; `index` is the index of its part, -1 until the part has started."""

    __slots__ = ("delta_type", "fields", "fragments", "index", "initial_input", "part")

    def __init__(self, part: AnyPart) -> None:
        self.part = part
        self.index = -1
        self.delta_type = _DELTA_TYPES.get(type(part))
        self.fragments: list[str] | None = None if isinstance(part, Text | Reasoning) else []
        self.initial_input = ""
        """The input of a call in its start event, if it is not empty."""
        self.fields: dict[str, list[Any]] = {}
        """Unknown members of deltas by pointer, each with its pieces."""


class MessagesDecoder(FrameDecoder):
    """Decodes the bytes of a Messages stream into events."""

    def __init__(self) -> None:
        super().__init__(parse_whole=parse_response)
        self._id: str | None = None
        self._count = 0
        self._open: dict[int, _OpenBlock] = {}
        self._has_call = False
        self._counts = UsageShape()
        self._usage_fields: dict[str, bytes] = {}
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
            yield self._update_usage(message.usage, unread, "/message/usage")
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
        block = self._open[event.index] = _OpenBlock(part)
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
            _keep_fields(block, unread.take("/delta") or {})
            self._events.extend(_to_native_events(unread.rest()))

    def _end_block(self, block: _OpenBlock) -> Iterator[events.Event]:
        complete = True
        match block.part:
            case Opaque() as part:
                block.index = self._count
                self._count += 1
                yield events.PartStarted(block.index, structs.replace(part, raw=_complete_block(block, part.raw)))
            case ToolCall():
                streamed = "".join(block.fragments or ())
                complete = not streamed or is_json(streamed)
                if block.initial_input:
                    yield events.PartDelta(block.index, streamed if streamed and complete else block.initial_input)
                    complete = True
                elif not streamed:
                    yield events.PartDelta(block.index, "{}")
                self._has_call = self._has_call or complete
            case _:
                pass
        if not isinstance(block.part, Opaque):
            for pointer, pieces in block.fields.items():
                yield events.PartNative(block.index, NAME, pointer, encode(_join_pieces(pieces)))
        yield events.PartEnded(block.index, complete)

    def _update_usage(self, usage: UsageShape, unread: Unread | None, where: str) -> events.UsageSeen:
        """Replace the counts by the new ones, field by field: they are totals and must not be added."""
        for name in usage.__struct_fields__:
            value = getattr(usage, name)
            if value is not None and not isinstance(value, Raw):
                setattr(self._counts, name, value)
        update = read_usage(usage, unread.take(where) if unread is not None else None)
        if update.extras is not None:
            self._usage_fields.update(update.extras.fields)
        totals = read_usage(self._counts, None)
        extras = Extras(NAME, dict(self._usage_fields)) if self._usage_fields else None
        return events.UsageSeen(structs.replace(totals, extras=extras))

    def _read_message_delta(self, event: MessageDelta, unread: Unread | None) -> Iterator[events.Event]:
        if event.delta.stop_reason is not None:
            self._stop_reason = event.delta.stop_reason
        if event.delta.stop_sequence is not None:
            self._stop_sequence = event.delta.stop_sequence
        yield from _to_native_events(get_raw_members(event.delta))
        yield from _to_native_events(get_raw_members(event))
        if event.usage is not None:
            yield self._update_usage(event.usage, unread, "/usage")
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


def _read_other_delta(block: _OpenBlock, delta: Delta) -> Iterator[events.Event]:
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
            _keep_fields(block, {"/" + escape(name): bytes(value) for name, value in members if name != "type"})


def _keep_fields(block: _OpenBlock, fields: dict[str, bytes]) -> None:
    """Collect unknown members of a delta until the block is complete: they may be text in pieces."""
    for pointer, raw in fields.items():
        block.fields.setdefault(pointer, []).append(decode(raw))


def _join_pieces(pieces: list[Any]) -> Any:
    """Join the pieces of a member: strings are concatenated; of other values the last one is used."""
    texts: list[str] = []
    for piece in reversed(pieces):
        if not isinstance(piece, str):
            break
        texts.append(piece)
    return "".join(reversed(texts)) if texts else pieces[-1]


def _complete_block(block: _OpenBlock, raw: bytes) -> bytes:
    """Return the JSON of an opaque block with the content of its deltas inserted."""
    streamed = "".join(block.fragments or ())
    if not streamed and not block.fields:
        return raw
    members = {name: bytes(value) for name, value in decode_object(raw).items()}
    if streamed:
        members["input"] = streamed.encode() if is_json(streamed) else encode(streamed)
    for pointer, pieces in block.fields.items():
        name = unescape(pointer[1:])
        value = _join_pieces(pieces)
        initial = decode(members[name]) if name in members else None
        members[name] = encode(initial + value if isinstance(initial, str) and isinstance(value, str) else value)
    return with_members(b"{}", members)
