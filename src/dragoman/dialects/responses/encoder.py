"""Encodes core events as Responses stream events.

Rules: one item is open at a time; `sequence_number` counts every event from 0; the terminal event contains the complete
reply, because OpenAI's SDKs and Codex read it from there. A message item stays open after its part only if the part
came from this dialect, where another part of the same item may follow. A failure is sent twice: as `response.failed`
for Codex and as an `error` event, both flat and nested, for OpenAI's SDKs.
"""

import re
from typing import Any, assert_never

from msgspec import Raw, structs

from dragoman.core import events
from dragoman.core.parts import AnyPart, Citation, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Usage
from dragoman.core.value import own_extras
from dragoman.dialects.decoder import Encoder
from dragoman.dialects.responses.client_items import render_call_events
from dragoman.dialects.responses.errors import write_error
from dragoman.dialects.responses.items import CONTENT
from dragoman.dialects.responses.output import (
    FIRST_PART,
    SAME_MESSAGE,
    ItemIds,
    announce_item,
    collect_message_fields,
    drop_extras,
    is_message_part,
    render_message_item,
    write_content,
    write_item,
)
from dragoman.dialects.responses.parts import build_extras, write_citations
from dragoman.dialects.responses.remote import render_progress_events
from dragoman.dialects.responses.response import (
    STREAM_FIELDS,
    Outcome,
    encode_with_fields,
    find_outcome,
    render_envelope,
    write_end,
)
from dragoman.dialects.responses.wire import NAME
from dragoman.wire import json

_EVENT_NAME = re.compile(r"[A-Za-z0-9_.-]+")
"""Valid event names; the name is also written outside of JSON, in the SSE `event` line."""
_TERMINAL = {"completed": "response.completed", "failed": "response.failed"}


class _OpenPart:
    """The part that is being streamed; `location` are the members that identify it in events."""

    __slots__ = (
        "citations",
        "delta_piece",
        "fields",
        "held",
        "location",
        "part",
        "piece",
        "pieces",
        "signature",
        "size",
    )

    def __init__(self, part: AnyPart, location: bytes) -> None:
        self.part = part
        self.location = location
        self.held = isinstance(part, ToolCall) and bool(part.native)
        is_reasoning = isinstance(part, Reasoning)
        self.pieces: list[list[str]] = [] if is_reasoning else [[]]
        self.size = 0
        self.piece = -1
        """The last piece of reasoning that has started."""
        self.delta_piece = -1 if is_reasoning else 0
        """The piece that the last delta belongs to."""
        self.citations: list[Citation] = []
        self.signature: Signature | None = part.signature
        self.fields = dict(own_extras(part, NAME) or {})

    def join_text(self, piece: int = 0) -> str:
        return "".join(self.pieces[piece]) if piece < len(self.pieces) else ""

    def build_part(self, *, complete: bool = True) -> AnyPart:
        """Return the part with the content received so far."""
        changes: dict[str, Any] = {"extras": build_extras(self.fields), "signature": self.signature}
        match self.part:
            case Text():
                changes.update(text=self.join_text(), citations=tuple(self.citations))
            case Refusal():
                changes.update(text=self.join_text())
            case ToolCall():
                changes.update(arguments=self.join_text(), complete=complete)
            case Reasoning():
                changes.update(texts=tuple("".join(piece) for piece in self.pieces))
            case _:
                pass
        return structs.replace(self.part, **changes)


class ResponsesEncoder(Encoder):
    """Encodes core events as bytes for the client."""

    def __init__(self, request: Request | None) -> None:
        self._request = request
        self._sequence = 0
        self._started: events.Started | None = None
        self._members: dict[str, Any] = {}
        self._ids = ItemIds("")
        self._items: list[Raw] = []
        self._parts: list[AnyPart] = []
        self._message: list[AnyPart] | None = None
        self._item_id = ""
        self._open: _OpenPart | None = None
        self._delta: tuple[bytes, bytes, bytes] = (b"", b"", b"")
        self._usage: Usage | None = None
        self._fields: dict[str, bytes] = {}

    def feed(self, event: events.Event) -> bytes:
        """Encode the next event."""
        if isinstance(event, events.PartDelta):
            return self._append(event.text, event.piece)
        match event:
            case events.PartStarted(_, part):
                return self._start_part(part)
            case events.PartEnded(_, complete):
                return self._end_part(complete=complete)
            case events.PartSigned(_, signature) if self._open is not None:
                self._open.signature = signature
            case events.PartCited(_, citation) if self._open is not None:
                return self._write_citation(self._open, citation)
            case events.PartNative(dialect=dialect, field=field, raw=raw) if self._open is not None and dialect == NAME:
                self._open.fields[field] = raw
            case events.UsageSeen(usage):
                self._usage = usage
            case events.Native(dialect, field, raw) if dialect == NAME:
                return self._write_native(field, raw)
            case events.Started():
                return self._begin(event)
            case events.Finished(finish):
                return self._finish(finish)
            case events.Failed(problem):
                return self._fail(problem)
            case events.PartSigned() | events.PartCited() | events.PartNative() | events.Native():
                pass
            case _:
                assert_never(event)
        return b""

    def _write_event(self, name: str, rest: bytes) -> bytes:
        """Render one event; `rest` are its other members, each preceded by a comma."""
        event_name = name.encode()
        number = self._sequence
        self._sequence = number + 1
        return b'event: %b\ndata: {"type":"%b","sequence_number":%d%b}\n\n' % (event_name, event_name, number, rest)

    def _begin(self, started: events.Started) -> bytes:
        response_id = started.id or "resp_" + ItemIds(started.model).get_id(Text(text=""), 0).removeprefix("msg_")
        self._started = started
        self._ids = ItemIds(response_id)
        self._members = render_envelope(response_id, started.model, started.created, self._request)
        rest = b',"response":' + json.encode(self._members)
        return self._write_event("response.created", rest) + self._write_event("response.in_progress", rest)

    # Parts

    def _start_part(self, part: AnyPart) -> bytes:
        frames = b""
        if self._message is not None and (part.spelling != SAME_MESSAGE or not is_message_part(part)):
            frames = self._close_message()
        if is_message_part(part):
            return frames + self._start_content(part)
        index = len(self._items)
        self._item_id = self._ids.get_id(part, index)
        self._open = _OpenPart(part, b'"item_id":%b,"output_index":%d' % (json.encode(self._item_id), index))
        if self._open.held or (item := write_item(part, self._item_id)) is None:
            return frames
        match part:
            case ToolCall(form=form):
                event = "function_call_arguments" if form == "json" else "custom_tool_call_input"
                self._set_delta_frame(f"response.{event}.delta", self._open.location, b"")
                return frames + self._write_item_event("added", announce_item(item))
            case Reasoning():
                return frames + self._write_item_event("added", announce_item(item))
            case _:
                raw = json.one_line(json.encode(item))
                started, progress = render_progress_events(raw, index)
                frames += self._write_item_event("added", started)
                frames += b"".join(self._write_event(*event) for event in progress)
                return frames + self._close_item(raw)

    def _start_content(self, part: AnyPart) -> bytes:
        """Start a content part, in the open message item or a new one."""
        frames = b""
        index = len(self._items)
        if self._message is None:
            self._message = []
            self._item_id = self._ids.get_id(part, index)
            fields = {**collect_message_fields([part]), "/status": b'"in_progress"'}
            item = json.one_line(json.encode(render_message_item([], fields, self._item_id)))
            frames = self._write_item_event("added", item)
        location = b'"item_id":%b,"output_index":%d,"content_index":%d' % (
            json.encode(self._item_id),
            index,
            len(self._message),
        )
        self._open = _OpenPart(part, location)
        if isinstance(part, Text):
            self._set_delta_frame("response.output_text.delta", location, b',"logprobs":[]')
        elif isinstance(part, Refusal):
            self._set_delta_frame("response.refusal.delta", location, b"")
        content = json.one_line(json.encode(write_content(drop_extras(part))))
        return frames + self._write_event("response.content_part.added", b',%b,"part":%b' % (location, content))

    def _set_delta_frame(self, name: str, location: bytes, tail: bytes) -> None:
        """Prepare the constant parts of the delta events of a part."""
        event_name = name.encode()
        self._delta = (
            b'event: %b\ndata: {"type":"%b","sequence_number":' % (event_name, event_name),
            b',%b,"delta":' % location,
            tail + b"}\n\n",
        )

    def _append(self, text: str, piece: int) -> bytes:
        opened = self._open
        if opened is None:
            return b""
        before = b"" if piece == opened.delta_piece else self._start_piece(opened, piece)
        opened.pieces[piece].append(text)
        opened.size += len(text)
        if opened.held:
            return b""
        head, middle, tail = self._delta
        number = self._sequence
        self._sequence = number + 1
        return b"%b%b%d%b%b%b" % (before, head, number, middle, json.encode(text), tail)

    def _write_citation(self, open_part: _OpenPart, citation: Citation) -> bytes:
        annotations = write_citations((citation,), open_part.size)
        if not annotations or not isinstance(open_part.part, Text):
            return b""
        number = len(open_part.citations)
        open_part.citations.append(citation)
        raw = json.one_line(json.encode(annotations[0]))
        rest = b',%b,"annotation_index":%d,"annotation":%b' % (open_part.location, number, raw)
        return self._write_event("response.output_text.annotation.added", rest)

    def _end_part(self, *, complete: bool) -> bytes:
        opened, self._open = self._open, None
        if opened is None:
            return b""
        whole = opened.build_part(complete=complete)
        self._parts.append(whole)
        if is_message_part(whole):
            return self._end_content(opened, whole)
        match whole:
            case ToolCall(native=native) if native:
                item = json.one_line(json.encode(write_item(whole, self._item_id)))
                started, progress = render_call_events(item, native, len(self._items))
                frames = self._write_item_event("added", started)
                progress = progress if complete else []
                frames += b"".join(self._write_event(*event) for event in progress)
            case ToolCall(complete=False):
                # Clients run a call when its arguments are done.
                frames = b""
            case ToolCall(form="json", arguments=arguments):
                members = (opened.location, json.encode(whole.name), json.encode(arguments))
                rest = b',%b,"name":%b,"arguments":%b' % members
                frames = self._write_event("response.function_call_arguments.done", rest)
            case ToolCall(arguments=arguments):
                rest = b',%b,"input":%b' % (opened.location, json.encode(arguments))
                frames = self._write_event("response.custom_tool_call_input.done", rest)
            case Reasoning():
                frames = self._end_piece(opened)
            case _:
                return b""
        return frames + self._close_item(json.one_line(json.encode(write_item(whole, self._item_id))))

    def _end_content(self, open_part: _OpenPart, whole: AnyPart) -> bytes:
        frames = b""
        match whole:
            case Text(text=text):
                rest = b',%b,"text":%b,"logprobs":[]' % (open_part.location, json.encode(text))
                frames = self._write_event("response.output_text.done", rest)
            case Refusal(text=text):
                frames = self._write_event(
                    "response.refusal.done", b',%b,"refusal":%b' % (open_part.location, json.encode(text))
                )
            case _:
                pass
        content = json.one_line(json.encode(write_content(whole)))
        frames += self._write_event("response.content_part.done", b',%b,"part":%b' % (open_part.location, content))
        if self._message is not None:
            self._message.append(whole)
        return frames if whole.spelling in (FIRST_PART, SAME_MESSAGE) else frames + self._close_message()

    def _close_message(self) -> bytes:
        parts, self._message = self._message, None
        if parts is None:
            return b""
        item = render_message_item(
            [write_content(part) for part in parts], collect_message_fields(parts), self._item_id
        )
        return self._close_item(json.one_line(json.encode(item)))

    def _write_item_event(self, suffix: str, item: bytes) -> bytes:
        rest = b',"output_index":%d,"item":%b' % (len(self._items), item)
        return self._write_event(f"response.output_item.{suffix}", rest)

    def _close_item(self, item: bytes) -> bytes:
        frames = self._write_item_event("done", item)
        self._items.append(Raw(item))
        return frames

    # Reasoning

    def _start_piece(self, open_part: _OpenPart, piece: int) -> bytes:
        """Start another piece of reasoning; pieces that were skipped are empty."""
        frames = b""
        while open_part.piece < piece:
            frames += self._end_piece(open_part)
            open_part.piece += 1
            open_part.pieces.append([])
            frames += self._write_event(*_render_piece_event(open_part, "added", ""))
        open_part.delta_piece = piece
        name = "reasoning_text" if open_part.part.spelling == CONTENT else "reasoning_summary_text"
        self._set_delta_frame(f"response.{name}.delta", _render_piece_members(open_part, piece), b"")
        return frames

    def _end_piece(self, open_part: _OpenPart) -> bytes:
        if open_part.piece < 0:
            return b""
        text = open_part.join_text(open_part.piece)
        name = "reasoning_text" if open_part.part.spelling == CONTENT else "reasoning_summary_text"
        rest = b',%b,"text":%b' % (_render_piece_members(open_part, open_part.piece), json.encode(text))
        return self._write_event(f"response.{name}.done", rest) + self._write_event(
            *_render_piece_event(open_part, "done", text)
        )

    # The end

    def _write_native(self, field: str, raw: bytes) -> bytes:
        if not field.startswith(STREAM_FIELDS):
            self._fields[field] = raw
            return b""
        if json.first_byte(raw) != b"{":
            return b""
        members = json.decode_object(raw)
        name = json.peek(members.pop("type", Raw(b'""')))
        members.pop("sequence_number", None)
        rest = b"".join(b",%b:%b" % (json.encode(key), json.one_line(bytes(value))) for key, value in members.items())
        return self._write_event(name, rest) if isinstance(name, str) and _EVENT_NAME.fullmatch(name) else b""

    def _finish(self, finish: Finish) -> bytes:
        frames = self._close_message()
        outcome = Outcome("completed") if "/status" in self._fields else find_outcome(finish, self._parts)
        frames += self._conclude(outcome)
        return frames if outcome.problem is None else frames + self._write_error_event(outcome.problem)

    def _fail(self, problem: Problem) -> bytes:
        frames = (
            b""
            if self._started is not None
            else self._begin(events.Started("", self._request.model if self._request else ""))
        )
        frames += self._close_message() if self._open is None else b""
        return frames + self._conclude(Outcome("failed", problem=problem)) + self._write_error_event(problem)

    def _conclude(self, outcome: Outcome) -> bytes:
        write_end(self._members, outcome, list(self._items), self._usage)
        body = json.one_line(encode_with_fields(self._members, self._fields))
        return self._write_event(_TERMINAL.get(outcome.status, "response.incomplete"), b',"response":' + body)

    def _write_error_event(self, problem: Problem) -> bytes:
        _, error = write_error(problem)
        code = error["code"] or "server_error"
        flat = {"code": code, "message": error["message"], "param": error["param"]}
        nested = {"type": error["type"], **flat}
        rest = json.encode({**flat, "error": nested})
        return self._write_event("error", b"," + rest[1:-1])


def _render_piece_members(open_part: _OpenPart, piece: int) -> bytes:
    member = b"content_index" if open_part.part.spelling == CONTENT else b"summary_index"
    return b'%b,"%b":%d' % (open_part.location, member, piece)


def _render_piece_event(open_part: _OpenPart, suffix: str, text: str) -> tuple[str, bytes]:
    """Return the name and members of the event that starts or ends a piece of reasoning."""
    raw = open_part.part.spelling == CONTENT
    name = f"response.{'content_part' if raw else 'reasoning_summary_part'}.{suffix}"
    part = {"type": "reasoning_text" if raw else "summary_text", "text": text}
    return name, b',%b,"part":%b' % (_render_piece_members(open_part, open_part.piece), json.encode(part))
