"""Stream events of the wire, decoded into events of the core.

Rules: a part starts as soon as its kind is known and grows by deltas, but the word that counts is the item when it is
done: whatever the deltas left out (a suffix, a source, the signature, a field) is told from it before the part ends.
Items that only the terminal object has are told from there; items it has again are not told twice. Items are found
by id, and by output index where servers give ids that change from event to event. Hosted tools' items are told
whole when done, so their progress is padding.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from msgspec import Raw
from msgspec.json import Decoder

from dragoman.core.events import Event, Finished, Native, Started, UsageSeen
from dragoman.core.parts import AnyPart, Opaque, Reasoning, Refusal, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.dialects.decoder import FrameDecoder
from dragoman.dialects.responses.decoder_state import Items, OpenItem, OpenPart, Teller
from dragoman.dialects.responses.errors import read_error
from dragoman.dialects.responses.items import CONTENT, decode_item
from dragoman.dialects.responses.output import FIRST, ITEM_FIELDS, SAME
from dragoman.dialects.responses.parts import extras_of, read_part
from dragoman.dialects.responses.response import STREAM_FIELDS, finish_of, read_head, read_output_at
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
from dragoman.wire.shape import Shape, present
from dragoman.wire.sse import Frame

_EVENT: Decoder[StreamEvent] = Decoder(StreamEvent)
_PART: Shape[ContentPart] = Shape(ContentPart)
_Handler = Callable[["ResponsesDecoder", StreamEvent], None]


def _word(frame: Frame) -> str:
    kind = json.decode_object(frame.data).get("type") if json.first_byte(frame.data) == b"{" else None
    word = None if kind is None else json.peek(kind)
    return word if isinstance(word, str) else frame.event


class ResponsesDecoder(FrameDecoder):
    """Bytes in, events out."""

    def __init__(self) -> None:
        super().__init__()
        self._teller = Teller(self._events)
        self._items = Items()
        self._early: list[Event] = []
        self._started = False
        self._natives = 0

    def _end(self) -> None:
        raise Problem("malformed_reply", "the stream ended before the reply was complete")

    def _take(self, frame: Frame) -> None:
        if frame.data == b"[DONE]":
            return
        event = decode_known(_EVENT, frame.data)
        if event is None:
            # Not an object, or a member has another type than in the events we know.
            word = _word(frame)
            if word in self._handlers:
                raise json.Malformed(f"the event {word} is not as it should be")
            self._native(word, frame.data)
            return
        word = event.type or frame.event
        handler = self._handlers.get(word)
        if handler is not None:
            handler(self, event)
        elif word == "error" or present(event.error) is not None:
            self._error(event, frame.data)
        else:
            self._native(word, frame.data)

    def _native(self, word: str, data: bytes) -> None:
        """Keep an event nobody reads; one before the start has to wait for it."""
        if word in PADDING:
            return
        kind, _, rest = word.removeprefix("response.").partition(".")
        if kind in PROGRESS and rest != "partial_image":
            return
        native = Native(NAME, f"{STREAM_FIELDS}{self._natives}", json.one_line(data))
        self._natives += 1
        (self._events if self._started else self._early).append(native)

    def _error(self, event: StreamEvent, data: bytes) -> None:
        """An error event is flat in the documents and nested in the live service."""
        raw = data if present(event.error) is None else bytes(event.error)
        members: dict[str, Any] = json.decode(raw) if json.first_byte(raw) == b"{" else {"message": json.decode(raw)}
        if present(event.error) is None:
            members = {name: members.get(name) for name in ("code", "message", "param")}
        raise read_error(members, None)

    def _begin(self, event: StreamEvent) -> None:
        if self._started:
            return
        if present(event.response) is None:
            self._start(Started("", ""))
            return
        head = read_head(json.decode_object(event.response))
        self._start(Started(head.id, head.model, head.created))

    def _start(self, started: Started) -> None:
        if self._started:
            return
        self._started = True
        self._events.append(started)
        self._events.extend(self._early)

    # Items

    def _register(self, event: StreamEvent, item: WireItem | None) -> OpenItem:
        """Note an item; reasoning that waits for its kind of text starts now, to keep its place."""
        self._start(Started("", ""))
        waiting = self._items.last()
        if waiting is not None and not waiting.done:
            self._begin_item(waiting)
        return self._items.add(event, item)

    def _added(self, event: StreamEvent) -> None:
        item, _ = decode_item(event.item)
        known = self._items.by_id(item)
        if known is not None and not known.done:
            return
        known = self._register(event, item)
        if item is not None and item.type in ("function_call", "custom_tool_call"):
            self._begin_item(known)

    def _begin_item(self, known: OpenItem, spelling: str = "") -> None:
        """Start the one part of a call or reasoning item, once."""
        item = known.item
        if known.begun or item is None:
            return
        extras = extras_of({} if item.id is None else {"/id": json.encode(item.id)})
        match item.type:
            case "reasoning":
                part: AnyPart = Reasoning(where=known.where, spelling=spelling, extras=extras)
            case "function_call" | "custom_tool_call" if item.call_id and item.name:
                form = "json" if item.type == "function_call" else "text"
                part = ToolCall(
                    where=known.where,
                    extras=extras,
                    id=item.call_id,
                    name=item.name,
                    arguments="",
                    form=form,
                    namespace=item.namespace or "",
                )
            case _:
                return
        known.begun = True
        known.parts[0] = self._teller.open(part)

    # Message items

    def _content_part(self, event: StreamEvent, *, refusal: bool = False) -> OpenPart | None:
        """Return the open part an event of a message is about, and start it if it has not been announced."""
        known = self._items.find(event)
        if known is None:
            known = self._register(event, WireItem(type="message", id=event.item_id))
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
            # Any before the last were ended when that one began.
            self._teller.end(next(reversed(known.parts.values())))
        spelling = SAME if known.parts else FIRST
        kind = Refusal if refusal else Text
        where = f"{known.where}/content/{key}"
        part = self._teller.open(kind(where=where, spelling=spelling, extras=extras_of(fields), text=""))
        known.parts[key] = part
        return part

    def _content_added(self, event: StreamEvent) -> None:
        members = json.decode_object(event.part) if present(event.part) is not None else {}
        match json.decode(members["type"]) if "type" in members else "output_text":
            case "output_text":
                self._content_part(event)
            case "refusal":
                self._content_part(event, refusal=True)
            case "reasoning_text":
                self._reasoning(event, CONTENT)
            case _:
                pass

    def _text_delta(self, event: StreamEvent) -> None:
        self._teller.grow(self._content_part(event), event.delta)

    def _refusal_delta(self, event: StreamEvent) -> None:
        self._teller.grow(self._content_part(event, refusal=True), event.delta)

    def _text_done(self, event: StreamEvent) -> None:
        part = self._content_part(event, refusal=event.refusal is not None)
        if part is not None:
            self._teller.complete(part, (event.text if event.refusal is None else event.refusal) or "")

    def _content_done(self, event: StreamEvent) -> None:
        known = self._items.find(event)
        part = known.parts.get(event.content_index or 0) if known else None
        if part is None or part.ended or present(event.part) is None:
            return
        wire, unread = _PART.read(event.part)
        if isinstance(wire, OutputText | RefusalText):
            self._teller.reconcile(part, read_part(wire, "", unread.rest() if unread else None))

    def _annotation(self, event: StreamEvent) -> None:
        part = self._content_part(event)
        if part is not None and present(event.annotation) is not None:
            self._teller.cite(part, bytes(event.annotation))

    # Calls and reasoning

    def _call_part(self, event: StreamEvent) -> OpenPart | None:
        known = self._items.find(event)
        part = known.parts.get(0) if known else None
        return part if part is not None and not part.ended and isinstance(part.part, ToolCall) else None

    def _arguments_delta(self, event: StreamEvent) -> None:
        self._teller.grow(self._call_part(event), event.delta)

    def _arguments_done(self, event: StreamEvent) -> None:
        part = self._call_part(event)
        if part is not None:
            self._teller.complete(part, (event.arguments if event.input is None else event.input) or "")

    def _reasoning(self, event: StreamEvent, spelling: str) -> OpenPart | None:
        """Return the open reasoning part, if it is made of this kind of text."""
        known = self._items.find(event)
        if known is None:
            known = self._register(event, WireItem(type="reasoning", id=event.item_id))
        self._begin_item(known, spelling)
        part = known.parts.get(0)
        if part is None or part.ended or not isinstance(part.part, Reasoning):
            return None
        if part.part.spelling != spelling and (part.pieces or not spelling):
            return None
        return part

    def _summary_delta(self, event: StreamEvent) -> None:
        self._teller.grow(self._reasoning(event, ""), event.delta, event.summary_index or 0)

    def _summary_done(self, event: StreamEvent) -> None:
        part = self._reasoning(event, "")
        if part is not None and event.text is not None:
            self._teller.complete(part, event.text, event.summary_index or 0)

    def _reasoning_delta(self, event: StreamEvent) -> None:
        self._teller.grow(self._reasoning(event, CONTENT), event.delta, event.content_index or 0)

    def _reasoning_done(self, event: StreamEvent) -> None:
        part = self._reasoning(event, CONTENT)
        if part is not None and event.text is not None:
            self._teller.complete(part, event.text, event.content_index or 0)

    # The end of an item

    def _done(self, event: StreamEvent) -> None:
        item, _ = decode_item(event.item)
        known = self._items.by_id(item)
        if known is None or known.done:
            known = self._items.find(event)
        if known is None or known.done:
            known = self._register(event, item)
        self._finish_item(known, read_output_at(event.item, event.output_index or 0), item)
        self._release(self._items.released(known))

    def _finish_item(self, known: OpenItem, parts: list[AnyPart], item: WireItem | None) -> None:
        known.done = True
        if not known.parts:
            known.held = parts
            return
        status = item.status if item else None
        carried = len(parts) == 1 and isinstance(parts[0], Opaque) and parts[0].spelling != FIRST
        if carried:
            # A server that tells the text in events and leaves it out of the item.
            self._abandon(known)
            return
        for key, part in enumerate(parts):
            opened = known.parts.get(key)
            if opened is None:
                self._teller.tell(part)
            elif not opened.ended:
                self._teller.reconcile(opened, part)
                self._teller.end(opened, status)
        self._abandon(known)

    def _release(self, items: list[OpenItem]) -> None:
        """Tell items that were done before an earlier one of the same kind, which run side by side, in their order."""
        for known in items:
            for part in known.held:
                self._teller.tell(part)
            known.held = []

    def _abandon(self, known: OpenItem) -> None:
        """End what has not been ended, with what was told of it."""
        for part in known.parts.values():
            self._teller.end(part)

    # The end of the reply

    def _terminal(self, event: StreamEvent) -> None:
        members = json.decode_object(event.response)
        output = members.pop("output", None)
        if "status" not in members:
            members["status"] = Raw(json.encode(event.type.removeprefix("response.")))
        head = read_head(members)
        self._start(Started(head.id, head.model, head.created))
        told = self._items.count()
        for index, raw in enumerate(json.decode_array(present(output) or b"[]")):
            item, _ = decode_item(raw)
            known = self._items.by_id(item) or self._items.at(index, told)
            known = known or self._items.append(OpenItem(item, index))
            if not known.done:
                self._finish_item(known, read_output_at(raw, index), item)
        self._release(self._items.all())
        for known in self._items.all():
            self._abandon(known)
        events = self._events
        events.extend([Native(NAME, name, raw) for name, raw in head.fields.items()])
        if head.usage is not None:
            events.append(UsageSeen(head.usage))
        events.append(Finished(finish_of(head, self._teller.parts)))
        self._over = True

    _handlers: ClassVar[dict[str, "_Handler"]] = {
        "response.created": _begin,
        "response.queued": _begin,
        "response.in_progress": _begin,
        "response.output_item.added": _added,
        "response.content_part.added": _content_added,
        "response.output_text.delta": _text_delta,
        "response.output_text.done": _text_done,
        "response.output_text.annotation.added": _annotation,
        "response.refusal.delta": _refusal_delta,
        "response.refusal.done": _text_done,
        "response.content_part.done": _content_done,
        "response.function_call_arguments.delta": _arguments_delta,
        "response.function_call_arguments.done": _arguments_done,
        "response.custom_tool_call_input.delta": _arguments_delta,
        "response.custom_tool_call_input.done": _arguments_done,
        "response.reasoning_summary_part.added": _summary_delta,
        "response.reasoning_summary_text.delta": _summary_delta,
        "response.reasoning_summary_text.done": _summary_done,
        "response.reasoning_summary_part.done": _summary_delta,
        "response.reasoning_text.delta": _reasoning_delta,
        "response.reasoning_text.done": _reasoning_done,
        "response.output_item.done": _done,
        "response.completed": _terminal,
        "response.incomplete": _terminal,
        "response.cancelled": _terminal,
        "response.failed": _terminal,
    }
