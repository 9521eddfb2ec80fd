"""Events of the core, encoded as stream events of the wire.

Rules: one item is open at a time; `sequence_number` counts every event from 0; the terminal event holds the complete
reply, because the official helpers and Codex read it from there. A message item stays open after its part only if
its part came from this dialect, where another part of the same item may follow. A failure is told twice, as
`response.failed` for Codex and as an `error` event, flat and nested at once, for the official clients.
"""

import re
from typing import Any

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
from dragoman.core.parts import AnyPart, Citation, Data, Opaque, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Usage
from dragoman.core.value import own_extras
from dragoman.dialects.decoder import Encoder
from dragoman.dialects.responses.errors import write_error
from dragoman.dialects.responses.items import CONTENT
from dragoman.dialects.responses.output import (
    FIRST,
    SAME,
    Ids,
    in_message,
    item_fields_of,
    message_item,
    write_content,
    write_item,
)
from dragoman.dialects.responses.parts import extras_of, write_citations
from dragoman.dialects.responses.remote import progress_events
from dragoman.dialects.responses.response import (
    STREAM_FIELDS,
    Outcome,
    conclude,
    envelope,
    outcome_of,
    with_reply_fields,
)
from dragoman.dialects.responses.wire import NAME
from dragoman.wire import json

_EVENT_NAME = re.compile(r"[A-Za-z0-9_.-]+")
"""What an event may be called: its name is written outside of any JSON string."""
_TERMINAL = {"completed": "response.completed", "failed": "response.failed"}


class _Open:
    """The part that is being told."""

    __slots__ = ("citations", "fields", "growing", "part", "piece", "pieces", "place", "signature", "size")

    def __init__(self, part: AnyPart, place: bytes) -> None:
        self.part = part
        self.place = place
        is_reasoning = isinstance(part, Reasoning)
        self.pieces: list[list[str]] = [] if is_reasoning else [[]]
        self.size = 0
        self.piece = -1
        """The last piece of reasoning that was announced."""
        self.growing = -1 if is_reasoning else 0
        """The piece that the last delta was for."""
        self.citations: list[Citation] = []
        self.signature: Signature | None = part.signature
        self.fields = dict(own_extras(part, NAME) or {})

    def text(self, piece: int = 0) -> str:
        return "".join(self.pieces[piece]) if piece < len(self.pieces) else ""

    def whole(self, *, complete: bool = True) -> AnyPart:
        """Return the part as it is now."""
        changes: dict[str, Any] = {"extras": extras_of(self.fields), "signature": self.signature}
        match self.part:
            case Text():
                changes.update(text=self.text(), citations=tuple(self.citations))
            case Refusal():
                changes.update(text=self.text())
            case ToolCall():
                changes.update(arguments=self.text(), complete=complete)
            case Reasoning():
                changes.update(texts=tuple("".join(piece) for piece in self.pieces))
            case _:
                pass
        return structs.replace(self.part, **changes)


class ResponsesEncoder(Encoder):
    """Events in, bytes out."""

    def __init__(self, request: Request | None) -> None:
        self._request = request
        self._sequence = 0
        self._started: Started | None = None
        self._members: dict[str, Any] = {}
        self._ids = Ids("")
        self._items: list[Raw] = []
        self._parts: list[AnyPart] = []
        self._message: list[AnyPart] | None = None
        self._item_id = ""
        self._open: _Open | None = None
        self._delta: tuple[bytes, bytes, bytes] = (b"", b"", b"")
        self._usage: Usage | None = None
        self._fields: dict[str, bytes] = {}

    def feed(self, event: Event) -> bytes:
        """Take the next event."""
        if isinstance(event, PartDelta):
            return self._append(event.text, event.piece)
        match event:
            case PartStarted(_, part):
                return self._part_started(part)
            case PartEnded(_, complete):
                return self._part_ended(complete=complete)
            case PartSigned(_, signature) if self._open is not None:
                self._open.signature = signature
            case PartCited(_, citation) if self._open is not None:
                return self._cite(self._open, citation)
            case PartNative(dialect=dialect, field=field, raw=raw) if self._open is not None and dialect == NAME:
                self._open.fields[field] = raw
            case UsageSeen(usage):
                self._usage = usage
            case Native(dialect, field, raw) if dialect == NAME:
                return self._native(field, raw)
            case Started():
                return self._begin(event)
            case Finished(finish):
                return self._finish(finish)
            case Failed(problem):
                return self._fail(problem)
            case _:
                pass
        return b""

    def _frame(self, name: str, rest: bytes) -> bytes:
        """Write one event; `rest` are its other members, each with a comma before it."""
        word = name.encode()
        number = self._sequence
        self._sequence = number + 1
        return b'event: %b\ndata: {"type":"%b","sequence_number":%d%b}\n\n' % (word, word, number, rest)

    def _begin(self, started: Started) -> bytes:
        response_id = started.id or "resp_" + Ids(started.model).of(Text(text=""), 0).removeprefix("msg_")
        self._started = started
        self._ids = Ids(response_id)
        self._members = envelope(response_id, started.model, started.created, self._request)
        rest = b',"response":' + json.encode(self._members)
        return self._frame("response.created", rest) + self._frame("response.in_progress", rest)

    # Parts

    def _part_started(self, part: AnyPart) -> bytes:
        told = b""
        if self._message is not None and (part.spelling != SAME or not in_message(part)):
            told = self._close_message()
        if in_message(part):
            return told + self._start_content(part)
        index = len(self._items)
        self._item_id = self._ids.of(part, index)
        item = write_item(part, self._item_id)
        self._open = _Open(part, b'"item_id":%b,"output_index":%d' % (json.encode(self._item_id), index))
        if item is None:
            return told
        match part:
            case ToolCall(form=form):
                word = "function_call_arguments" if form == "json" else "custom_tool_call_input"
                self._set_delta(f"response.{word}.delta", self._open.place, b"")
                return told + self._item_frame("added", _begun(item))
            case Reasoning():
                return told + self._item_frame("added", _begun(item))
            case _:
                raw = json.one_line(json.encode(item))
                begun, events = progress_events(raw, index)
                told += self._item_frame("added", begun) + b"".join(self._frame(*event) for event in events)
                return told + self._close_item(raw)

    def _start_content(self, part: AnyPart) -> bytes:
        """Start a content part, in the open message item or a new one."""
        told = b""
        index = len(self._items)
        if self._message is None:
            self._message = []
            self._item_id = self._ids.of(part, index)
            fields = {**item_fields_of([part]), "/status": b'"in_progress"'}
            item = json.one_line(json.encode(message_item([], fields, self._item_id)))
            told = self._item_frame("added", item)
        place = b'"item_id":%b,"output_index":%d,"content_index":%d' % (
            json.encode(self._item_id),
            index,
            len(self._message),
        )
        self._open = _Open(part, place)
        if isinstance(part, Text):
            self._set_delta("response.output_text.delta", place, b',"logprobs":[]')
        elif isinstance(part, Refusal):
            self._set_delta("response.refusal.delta", place, b"")
        content = json.one_line(json.encode(write_content(_bare(part))))
        return told + self._frame("response.content_part.added", b',%b,"part":%b' % (place, content))

    def _set_delta(self, name: str, place: bytes, tail: bytes) -> None:
        """Prepare all of a delta event that does not change from one to the next."""
        word = name.encode()
        self._delta = (
            b'event: %b\ndata: {"type":"%b","sequence_number":' % (word, word),
            b',%b,"delta":' % place,
            tail + b"}\n\n",
        )

    def _append(self, text: str, piece: int) -> bytes:
        opened = self._open
        if opened is None:
            return b""
        before = b"" if piece == opened.growing else self._turn_to(opened, piece)
        opened.pieces[piece].append(text)
        opened.size += len(text)
        head, middle, tail = self._delta
        number = self._sequence
        self._sequence = number + 1
        return b"%b%b%d%b%b%b" % (before, head, number, middle, json.encode(text), tail)

    def _cite(self, opened: _Open, citation: Citation) -> bytes:
        annotations = write_citations((citation,), opened.size)
        if not annotations or not isinstance(opened.part, Text):
            return b""
        number = len(opened.citations)
        opened.citations.append(citation)
        raw = json.one_line(json.encode(annotations[0]))
        rest = b',%b,"annotation_index":%d,"annotation":%b' % (opened.place, number, raw)
        return self._frame("response.output_text.annotation.added", rest)

    def _part_ended(self, *, complete: bool) -> bytes:
        opened, self._open = self._open, None
        if opened is None:
            return b""
        whole = opened.whole(complete=complete)
        self._parts.append(whole)
        if in_message(whole):
            return self._end_content(opened, whole)
        match whole:
            case ToolCall(form="json", arguments=arguments):
                rest = b',%b,"name":%b,"arguments":%b' % (
                    opened.place,
                    json.encode(whole.name),
                    json.encode(arguments),
                )
                told = self._frame("response.function_call_arguments.done", rest)
            case ToolCall(arguments=arguments):
                rest = b',%b,"input":%b' % (opened.place, json.encode(arguments))
                told = self._frame("response.custom_tool_call_input.done", rest)
            case Reasoning():
                told = self._end_piece(opened)
            case _:
                return b""
        return told + self._close_item(json.one_line(json.encode(write_item(whole, self._item_id))))

    def _end_content(self, opened: _Open, whole: AnyPart) -> bytes:
        told = b""
        match whole:
            case Text(text=text):
                rest = b',%b,"text":%b,"logprobs":[]' % (opened.place, json.encode(text))
                told = self._frame("response.output_text.done", rest)
            case Refusal(text=text):
                told = self._frame("response.refusal.done", b',%b,"refusal":%b' % (opened.place, json.encode(text)))
            case _:
                pass
        content = json.one_line(json.encode(write_content(whole)))
        told += self._frame("response.content_part.done", b',%b,"part":%b' % (opened.place, content))
        if self._message is not None:
            self._message.append(whole)
        return told if whole.spelling in (FIRST, SAME) else told + self._close_message()

    def _close_message(self) -> bytes:
        parts, self._message = self._message, None
        if parts is None:
            return b""
        item = message_item([write_content(part) for part in parts], item_fields_of(parts), self._item_id)
        return self._close_item(json.one_line(json.encode(item)))

    def _item_frame(self, word: str, item: bytes) -> bytes:
        rest = b',"output_index":%d,"item":%b' % (len(self._items), item)
        return self._frame(f"response.output_item.{word}", rest)

    def _close_item(self, item: bytes) -> bytes:
        told = self._item_frame("done", item)
        self._items.append(Raw(item))
        return told

    # Reasoning

    def _turn_to(self, opened: _Open, piece: int) -> bytes:
        """Go on to another piece of reasoning; pieces nobody said anything about are empty."""
        told = b""
        while opened.piece < piece:
            told += self._end_piece(opened)
            opened.piece += 1
            opened.pieces.append([])
            told += self._frame(*_piece_frame(opened, "added", ""))
        opened.growing = piece
        name = "reasoning_text" if opened.part.spelling == CONTENT else "reasoning_summary_text"
        self._set_delta(f"response.{name}.delta", _piece_place(opened, piece), b"")
        return told

    def _end_piece(self, opened: _Open) -> bytes:
        if opened.piece < 0:
            return b""
        text = opened.text(opened.piece)
        name = "reasoning_text" if opened.part.spelling == CONTENT else "reasoning_summary_text"
        rest = b',%b,"text":%b' % (_piece_place(opened, opened.piece), json.encode(text))
        return self._frame(f"response.{name}.done", rest) + self._frame(*_piece_frame(opened, "done", text))

    # The end

    def _native(self, field: str, raw: bytes) -> bytes:
        if not field.startswith(STREAM_FIELDS):
            self._fields[field] = raw
            return b""
        if json.first_byte(raw) != b"{":
            return b""
        members = json.decode_object(raw)
        name = json.peek(members.pop("type", Raw(b'""')))
        members.pop("sequence_number", None)
        rest = b"".join(b",%b:%b" % (json.encode(key), json.one_line(bytes(value))) for key, value in members.items())
        return self._frame(name, rest) if isinstance(name, str) and _EVENT_NAME.fullmatch(name) else b""

    def _finish(self, finish: Finish) -> bytes:
        told = self._close_message()
        outcome = Outcome("completed") if "/status" in self._fields else outcome_of(finish, self._parts)
        told += self._conclude(outcome)
        return told if outcome.problem is None else told + self._error(outcome.problem)

    def _fail(self, problem: Problem) -> bytes:
        told = (
            b"" if self._started is not None else self._begin(Started("", self._request.model if self._request else ""))
        )
        told += self._close_message() if self._open is None else b""
        return told + self._conclude(Outcome("failed", problem=problem)) + self._error(problem)

    def _conclude(self, outcome: Outcome) -> bytes:
        conclude(self._members, outcome, list(self._items), self._usage)
        body = json.one_line(with_reply_fields(self._members, self._fields))
        return self._frame(_TERMINAL.get(outcome.status, "response.incomplete"), b',"response":' + body)

    def _error(self, problem: Problem) -> bytes:
        _, error = write_error(problem)
        code = error["code"] or "server_error"
        flat = {"code": code, "message": error["message"], "param": error["param"]}
        nested = {"type": error["type"], **flat}
        rest = json.encode({**flat, "error": nested})
        return self._frame("error", b"," + rest[1:-1])


def _bare(part: AnyPart) -> AnyPart:
    """A content part is announced without the fields that are known only when it is done."""
    return part if isinstance(part, Opaque | Data) else structs.replace(part, extras=None)


def _begun(item: Any) -> bytes:
    """An item as it is announced: in progress, and without what only the finished item has."""
    raw = json.encode(item)
    members = {name: bytes(value) for name, value in json.decode_object(raw).items()}
    for name in ("encrypted_content", "content"):
        members.pop(name, None)
    if "status" in members:
        members["status"] = b'"in_progress"'
    return json.one_line(json.with_members(b"{}", members))


def _piece_place(opened: _Open, piece: int) -> bytes:
    word = b"content_index" if opened.part.spelling == CONTENT else b"summary_index"
    return b'%b,"%b":%d' % (opened.place, word, piece)


def _piece_frame(opened: _Open, word: str, text: str) -> tuple[str, bytes]:
    """The name and members of the event that announces or closes a piece of reasoning."""
    raw = opened.part.spelling == CONTENT
    name = f"response.{'content_part' if raw else 'reasoning_summary_part'}.{word}"
    part = {"type": "reasoning_text" if raw else "summary_text", "text": text}
    return name, b',%b,"part":%b' % (_piece_place(opened, opened.piece), json.encode(part))
