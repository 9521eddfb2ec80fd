"""Decodes Responses stream events into core events.

Rules: a part starts as soon as its kind is known, and deltas are emitted as they arrive. The finished item is
authoritative: whatever the deltas left out (a suffix, a citation, the signature, a field) is emitted from it before the
part ends. Items that are only in the terminal event are emitted from there; items that were emitted before are skipped.
Items are found by id, or by output index, because some servers send ids that change from event to event. Items of
hosted tools are emitted when they are done, so their progress events are ignored.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from msgspec import Raw
from msgspec.json import Decoder

from dragoman.core.events import Event, Finished, Native, Started, UsageSeen
from dragoman.core.parts import AnyPart, Opaque, Reasoning, Refusal, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.dialects.decoder import FrameDecoder
from dragoman.dialects.responses.decoder_state import EventWriter, OpenItem, OpenItems, OpenPart
from dragoman.dialects.responses.errors import read_error
from dragoman.dialects.responses.items import CONTENT, decode_item
from dragoman.dialects.responses.output import FIRST_PART, ITEM_FIELDS, SAME_MESSAGE
from dragoman.dialects.responses.parts import build_extras, read_part
from dragoman.dialects.responses.response import STREAM_FIELDS, find_finish, parse_response, read_head, read_output_at
from dragoman.dialects.responses.wire import (
    NAME,
    PADDING,
    PROGRESS,
    ContentPart,
    OutputText,
    RefusalText,
    StreamEvent,
    WireItem,
    decode_known,
)
from dragoman.wire import json
from dragoman.wire.shape import Shape, non_null_bytes
from dragoman.wire.sse import Frame

_EVENT: Decoder[StreamEvent] = Decoder(StreamEvent)
_PART: Shape[ContentPart] = Shape(ContentPart)
_Handler = Callable[["ResponsesDecoder", StreamEvent], None]


def _read_event_type(frame: Frame) -> str:
    kind = json.decode_object(frame.data).get("type") if json.first_byte(frame.data) == b"{" else None
    event_type = None if kind is None else json.peek(kind)
    return event_type if isinstance(event_type, str) else frame.event


class ResponsesDecoder(FrameDecoder):
    """Decodes upstream bytes into core events."""

    def __init__(self) -> None:
        super().__init__(parse_whole=parse_response)
        self._writer = EventWriter(self._events)
        self._items = OpenItems()
        self._events_before_start: list[Event] = []
        self._started = False
        self._native_count = 0

    def _end(self) -> None:
        raise Problem("malformed_reply", "the stream ended before the reply was complete")

    def _decode_frame(self, frame: Frame) -> None:
        if frame.data == b"[DONE]":
            return
        event = decode_known(_EVENT, frame.data)
        if event is None:
            # Not an object, or a member has an unexpected type.
            event_type = _read_event_type(frame)
            if event_type in self._handlers:
                raise json.Malformed(f"the stream event {event_type} does not have the expected structure")
            self._keep_event(event_type, frame.data)
            return
        event_type = event.type or frame.event
        handler = self._handlers.get(event_type)
        if handler is not None:
            handler(self, event)
        elif event_type == "error" or non_null_bytes(event.error) is not None:
            self._raise_error(event, frame.data)
        else:
            self._keep_event(event_type, frame.data)

    def _keep_event(self, event_type: str, data: bytes) -> None:
        """Keep an unknown event as a vendor field; one before the start is emitted after it."""
        if event_type in PADDING:
            return
        kind, _, rest = event_type.removeprefix("response.").partition(".")
        if kind in PROGRESS and rest != "partial_image":
            return
        native = Native(NAME, f"{STREAM_FIELDS}{self._native_count}", json.one_line(data))
        self._native_count += 1
        (self._events if self._started else self._events_before_start).append(native)

    def _raise_error(self, event: StreamEvent, data: bytes) -> None:
        """Raise the problem of an `error` event: flat in OpenAI's documentation, nested in the live service."""
        raw = data if non_null_bytes(event.error) is None else bytes(event.error)
        members: dict[str, Any] = json.decode(raw) if json.first_byte(raw) == b"{" else {"message": json.decode(raw)}
        if non_null_bytes(event.error) is None:
            members = {name: members.get(name) for name in ("code", "message", "param")}
        raise read_error(members, None)

    def _on_response_start(self, event: StreamEvent) -> None:
        if self._started:
            return
        if non_null_bytes(event.response) is None:
            self._start(Started("", ""))
            return
        head = read_head(json.decode_object(event.response))
        self._start(Started(head.id, head.model, head.created))

    def _start(self, started: Started) -> None:
        if self._started:
            return
        self._started = True
        self._events.append(started)
        self._events.extend(self._events_before_start)

    # Items

    def _add_item(self, event: StreamEvent, item: WireItem | None) -> OpenItem:
        """Add an item; the previous item starts now if it has not started yet, to keep the order of parts.

        A reasoning item starts late, because its kind of text (summary or raw) is not known at first.
        """
        self._start(Started("", ""))
        previous = self._items.get_last()
        if previous is not None and not previous.done:
            self._begin_item(previous)
        return self._items.add(event, item)

    def _on_item_added(self, event: StreamEvent) -> None:
        item, _ = decode_item(event.item)
        known = self._items.find_by_id(item)
        if known is not None and not known.done:
            return
        known = self._add_item(event, item)
        if item is not None and item.type in ("function_call", "custom_tool_call"):
            self._begin_item(known)

    def _begin_item(self, open_item: OpenItem, spelling: str = "") -> None:
        """Start the part of a call or reasoning item, once."""
        item = open_item.item
        if open_item.started or item is None:
            return
        extras = build_extras({} if item.id is None else {"/id": json.encode(item.id)})
        match item.type:
            case "reasoning":
                part: AnyPart = Reasoning(where=open_item.where, spelling=spelling, extras=extras)
            case "function_call" | "custom_tool_call" if item.call_id and item.name:
                form = "json" if item.type == "function_call" else "text"
                part = ToolCall(
                    where=open_item.where,
                    extras=extras,
                    id=item.call_id,
                    name=item.name,
                    arguments="",
                    form=form,
                    namespace=item.namespace or "",
                )
            case _:
                return
        open_item.started = True
        open_item.parts[0] = self._writer.start_part(part)

    # Message items

    def _open_content_part(self, event: StreamEvent, *, refusal: bool = False) -> OpenPart | None:
        """Return the open part that an event of a message item refers to; start it if it has not started.

        Returns None if the part has ended or is not part of a message item.
        """
        known = self._items.find(event)
        if known is None:
            known = self._add_item(event, WireItem(type="message", id=event.item_id))
        key = event.content_index or 0
        part = known.parts.get(key)
        if part is not None or known.done or known.item is None or known.item.type != "message":
            return part if part is not None and not part.ended and isinstance(part.part, Text | Refusal) else None
        fields: dict[str, bytes] = {}
        if not known.parts:
            for name, value in (("id", known.item.id), ("phase", known.item.phase)):
                if value is not None:
                    fields[ITEM_FIELDS + name] = json.encode(value)
        if known.parts:
            # Earlier parts ended when the last one started.
            self._writer.end_part(next(reversed(known.parts.values())))
        spelling = SAME_MESSAGE if known.parts else FIRST_PART
        kind = Refusal if refusal else Text
        where = f"{known.where}/content/{key}"
        part = self._writer.start_part(kind(where=where, spelling=spelling, extras=build_extras(fields), text=""))
        known.parts[key] = part
        return part

    def _on_content_added(self, event: StreamEvent) -> None:
        members = json.decode_object(event.part) if non_null_bytes(event.part) is not None else {}
        match json.decode(members["type"]) if "type" in members else "output_text":
            case "output_text":
                self._open_content_part(event)
            case "refusal":
                self._open_content_part(event, refusal=True)
            case "reasoning_text":
                self._open_reasoning_part(event, CONTENT)
            case _:
                pass

    def _on_text_delta(self, event: StreamEvent) -> None:
        self._writer.append_delta(self._open_content_part(event), event.delta)

    def _on_refusal_delta(self, event: StreamEvent) -> None:
        self._writer.append_delta(self._open_content_part(event, refusal=True), event.delta)

    def _on_text_done(self, event: StreamEvent) -> None:
        part = self._open_content_part(event, refusal=event.refusal is not None)
        if part is not None:
            self._writer.append_missing(part, (event.text if event.refusal is None else event.refusal) or "")

    def _on_content_done(self, event: StreamEvent) -> None:
        known = self._items.find(event)
        part = known.parts.get(event.content_index or 0) if known else None
        if part is None or part.ended or non_null_bytes(event.part) is None:
            return
        wire, unread = _PART.read(event.part)
        if isinstance(wire, OutputText | RefusalText):
            self._writer.reconcile(part, read_part(wire, "", unread.rest() if unread else None))

    def _on_annotation(self, event: StreamEvent) -> None:
        part = self._open_content_part(event)
        if part is not None and non_null_bytes(event.annotation) is not None:
            self._writer.write_citation(part, bytes(event.annotation))

    # Calls and reasoning

    def _find_call_part(self, event: StreamEvent) -> OpenPart | None:
        known = self._items.find(event)
        part = known.parts.get(0) if known else None
        return part if part is not None and not part.ended and isinstance(part.part, ToolCall) else None

    def _on_arguments_delta(self, event: StreamEvent) -> None:
        self._writer.append_delta(self._find_call_part(event), event.delta)

    def _on_arguments_done(self, event: StreamEvent) -> None:
        part = self._find_call_part(event)
        if part is not None:
            self._writer.append_missing(part, (event.arguments if event.input is None else event.input) or "")

    def _open_reasoning_part(self, event: StreamEvent, spelling: str) -> OpenPart | None:
        """Return the open reasoning part if it has this kind of text, else None."""
        known = self._items.find(event)
        if known is None:
            known = self._add_item(event, WireItem(type="reasoning", id=event.item_id))
        self._begin_item(known, spelling)
        part = known.parts.get(0)
        if part is None or part.ended or not isinstance(part.part, Reasoning):
            return None
        if part.part.spelling != spelling and (part.pieces or not spelling):
            return None
        return part

    def _on_summary_delta(self, event: StreamEvent) -> None:
        self._writer.append_delta(self._open_reasoning_part(event, ""), event.delta, event.summary_index or 0)

    def _on_summary_done(self, event: StreamEvent) -> None:
        part = self._open_reasoning_part(event, "")
        if part is not None and event.text is not None:
            self._writer.append_missing(part, event.text, event.summary_index or 0)

    def _on_reasoning_delta(self, event: StreamEvent) -> None:
        self._writer.append_delta(self._open_reasoning_part(event, CONTENT), event.delta, event.content_index or 0)

    def _on_reasoning_done(self, event: StreamEvent) -> None:
        part = self._open_reasoning_part(event, CONTENT)
        if part is not None and event.text is not None:
            self._writer.append_missing(part, event.text, event.content_index or 0)

    # The end of an item

    def _on_item_done(self, event: StreamEvent) -> None:
        item, _ = decode_item(event.item)
        known = self._items.find_by_id(item)
        if known is None or known.done:
            known = self._items.find(event)
        if known is None or known.done:
            known = self._add_item(event, item)
        self._finish_item(known, read_output_at(event.item, event.output_index or 0), item)
        self._release(self._items.pop_released(known))

    def _finish_item(self, open_item: OpenItem, parts: list[AnyPart], item: WireItem | None) -> None:
        open_item.done = True
        if not open_item.parts:
            open_item.pending_parts = parts
            return
        status = item.status if item else None
        is_opaque = len(parts) == 1 and isinstance(parts[0], Opaque) and parts[0].spelling != FIRST_PART
        if is_opaque:
            # Some servers send the text in events and omit it from the item.
            self._end_parts(open_item)
            return
        for opened, part in zip(open_item.match_parts(len(parts)), parts, strict=True):
            if opened is None:
                self._writer.write_part(part)
            elif not opened.ended:
                self._writer.reconcile(opened, part)
                self._writer.end_part(opened, status)
        self._end_parts(open_item)

    def _release(self, items: list[OpenItem]) -> None:
        """Emit pending parts in order: hosted tools run in parallel, so an item may be done before an earlier one."""
        for known in items:
            for part in known.pending_parts:
                self._writer.write_part(part)
            known.pending_parts = []

    def _end_parts(self, open_item: OpenItem) -> None:
        """End the parts that are still open, with the content that was emitted."""
        for part in open_item.parts.values():
            self._writer.end_part(part)

    # The end of the reply

    def _on_terminal(self, event: StreamEvent) -> None:
        members = json.decode_object(event.response)
        output = members.pop("output", None)
        if "status" not in members:
            members["status"] = Raw(json.encode(event.type.removeprefix("response.")))
        head = read_head(members)
        self._start(Started(head.id, head.model, head.created))
        seen = self._items.count()
        for index, raw in enumerate(json.decode_array(non_null_bytes(output) or b"[]")):
            item, _ = decode_item(raw)
            known = self._items.find_by_id(item) or self._items.find_at(index, seen)
            known = known or self._items.append(OpenItem(item, index))
            if not known.done:
                self._finish_item(known, read_output_at(raw, index), item)
        self._release(self._items.list_all())
        for known in self._items.list_all():
            self._end_parts(known)
        events = self._events
        events.extend([Native(NAME, name, raw) for name, raw in head.fields.items()])
        if head.usage is not None:
            events.append(UsageSeen(head.usage))
        events.append(Finished(find_finish(head, self._writer.parts)))
        self._is_over = True

    _handlers: ClassVar[dict[str, "_Handler"]] = {
        "response.created": _on_response_start,
        "response.queued": _on_response_start,
        "response.in_progress": _on_response_start,
        "response.output_item.added": _on_item_added,
        "response.content_part.added": _on_content_added,
        "response.output_text.delta": _on_text_delta,
        "response.output_text.done": _on_text_done,
        "response.output_text.annotation.added": _on_annotation,
        "response.refusal.delta": _on_refusal_delta,
        "response.refusal.done": _on_text_done,
        "response.content_part.done": _on_content_done,
        "response.function_call_arguments.delta": _on_arguments_delta,
        "response.function_call_arguments.done": _on_arguments_done,
        "response.custom_tool_call_input.delta": _on_arguments_delta,
        "response.custom_tool_call_input.done": _on_arguments_done,
        "response.reasoning_summary_part.added": _on_summary_delta,
        "response.reasoning_summary_text.delta": _on_summary_delta,
        "response.reasoning_summary_text.done": _on_summary_done,
        "response.reasoning_summary_part.done": _on_summary_delta,
        "response.reasoning_text.delta": _on_reasoning_delta,
        "response.reasoning_text.done": _on_reasoning_done,
        "response.output_item.done": _on_item_done,
        "response.completed": _on_terminal,
        "response.incomplete": _on_terminal,
        "response.cancelled": _on_terminal,
        "response.failed": _on_terminal,
    }
