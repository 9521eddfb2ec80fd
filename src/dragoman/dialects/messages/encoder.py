"""Encodes events as frames of a Messages stream.

Rules: `event:` names are mandatory; blocks follow each other and are numbered from 0; a signature is sent just before
its block stops; the reply ends with `message_delta` (with all usage) and `message_stop`, or with an `error` frame. A
part that Messages cannot express gets no block and no number.
"""

import re
from typing import Any, assert_never

from msgspec import Raw

from dragoman.core import events
from dragoman.core.parts import AnyPart, Reasoning, Refusal, Search, Text, ToolCall, ToolSearch
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Usage
from dragoman.core.value import own_extras
from dragoman.dialects.decoder import Encoder
from dragoman.dialects.messages.errors import render_error_body
from dragoman.dialects.messages.parts import write_citation, write_part
from dragoman.dialects.messages.response import ensure_reply_id, write_finish, write_usage
from dragoman.dialects.messages.searches import write_web_search
from dragoman.dialects.messages.wire import NAME, TextBlock, ThinkingBlock, ToolUseBlock
from dragoman.wire.json import decode_object, encode, one_line
from dragoman.wire.shape import Wire
from dragoman.wire.splice import graft
from dragoman.wire.sse import render_named_frame

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+")
"""Names that are safe for an unknown delta: the name is inserted into the event without escaping."""
_OWN_DELTAS = frozenset({"text", "input_json", "thinking", "signature", "citations"})
_DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":'
_DELTA_END = b"}}\n\n"
_START = b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":'
_STOP = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
_MESSAGE_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_EMPTY_INPUT = Raw(b"{}")
_EVENT_FIELDS = ("/context_management", "/input_transformations")
"""Reply fields that belong to the `message_delta` event itself, not to its `delta` object."""


class MessagesEncoder(Encoder):
    """Encodes events into the bytes of a Messages stream."""

    def __init__(self, request: Request | None) -> None:
        del request
        self._count = 0
        self._part: AnyPart | None = None
        self._prefix = b""
        self._piece = 0
        self._has_text = False
        self._signature = ""
        self._usage: Usage | None = None
        self._fields: dict[str, bytes] = {}

    def feed(self, event: events.Event) -> bytes:  # one case for each event
        """Return the bytes for the next event."""
        if isinstance(event, events.PartDelta):
            return self._append(event.text, event.piece)
        match event:
            case events.PartStarted(_, part):
                return self._start(part)
            case events.PartEnded():
                return self._end_block()
            case events.PartSigned(_, signature):
                self._signature = signature.value
                return b""
            case events.PartCited(_, citation):
                raw = write_citation(citation) if isinstance(self._part, Text) else None
                return b"" if raw is None else self._write_delta("citations_delta", "citation", bytes(raw))
            case events.PartNative(_, dialect, field, raw):
                return self._write_unknown_delta(field, raw) if dialect == NAME and self._prefix else b""
            case events.UsageSeen(usage):
                self._usage = usage
                return b""
            case events.Native(dialect, field, raw):
                if dialect == NAME:
                    self._fields[field] = raw
                return b""
            case events.Started():
                return _render_message_start(event)
            case events.Finished(finish):
                return self._finish(finish)
            case events.Failed(problem):
                return render_error_frame(problem)
            case _:
                assert_never(event)

    def _start(self, part: AnyPart) -> bytes:
        self._part = part
        self._has_text = False
        self._signature = part.signature.value if part.signature else ""
        match part:
            case Text() | Refusal():
                self._open(b"text_delta", b"text")
                return self._write_block_start(part, TextBlock(""))
            case ToolCall():
                self._open(b"input_json_delta", b"partial_json")
                return self._write_block_start(
                    part, ToolUseBlock(part.id, part.name, _EMPTY_INPUT, toolset_name=part.namespace or None)
                )
            case Reasoning(redacted=False):
                self._open(b"thinking_delta", b"thinking")
                return self._write_block_start(part, ThinkingBlock("", ""))
            case Reasoning():
                return b""
            case _:
                block = write_part(part)
                if block is None:
                    return (
                        b"".join(map(self._write_search_block, write_web_search(part))) if type(part) is Search else b""
                    )
                if isinstance(part, ToolSearch) and part.dialect != NAME:
                    return self._write_server_call(encode(block))
                return self._write_whole(encode(block))

    def _write_whole(self, block: bytes) -> bytes:
        frames = _START % self._count + one_line(block) + b"}\n\n" + _STOP % self._count
        self._count += 1
        return frames

    def _write_search_block(self, block: Raw) -> bytes:
        is_call = "input" in decode_object(block)
        return self._write_server_call(bytes(block)) if is_call else self._write_whole(bytes(block))

    def _write_server_call(self, block: bytes) -> bytes:
        """Render a call of a tool that the vendor runs; clients read its input from deltas."""
        members = decode_object(block)
        start = one_line(encode({**members, "input": _EMPTY_INPUT}))
        delta = self._write_delta("input_json_delta", "partial_json", encode(bytes(members["input"]).decode()))
        frames = _START % self._count + start + b"}\n\n" + delta + _STOP % self._count
        self._count += 1
        return frames

    def _open(self, kind: bytes, field: bytes) -> None:
        self._prefix = _DELTA % (self._count, kind, field)

    def _write_block_start(self, part: AnyPart, block: Wire) -> bytes:
        body = encode(block)
        fields = own_extras(part, NAME)
        if fields:
            body = one_line(graft(body, fields))
        return _START % self._count + body + b"}\n\n"

    def _append(self, text: str, piece: int) -> bytes:
        if not self._prefix or not text:
            return b""
        if piece != self._piece:
            self._piece = piece
            # All reasoning summaries of another vendor's reply go into one thinking block.
            if self._has_text:
                text = "\n\n" + text
        self._has_text = True
        return self._prefix + encode(text) + _DELTA_END

    def _write_delta(self, kind: str, field: str, raw: bytes) -> bytes:
        return _DELTA % (self._count, kind.encode(), field.encode()) + one_line(raw) + _DELTA_END

    def _write_unknown_delta(self, field: str, raw: bytes) -> bytes:
        name = field[1:]
        plain = _PLAIN_NAME.fullmatch(name) is not None and name not in _OWN_DELTAS
        return self._write_delta(f"{name}_delta", name, raw) if plain else b""

    def _end_block(self) -> bytes:
        part, self._part = self._part, None
        if not self._prefix:
            return self._write_redacted(part) if isinstance(part, Reasoning) else b""
        written = b""
        if self._signature and isinstance(part, Reasoning):
            written = self._write_delta("signature_delta", "signature", encode(self._signature))
        written += _STOP % self._count
        self._count += 1
        self._prefix = b""
        return written

    def _write_redacted(self, part: Reasoning) -> bytes:
        """Render a redacted block as a whole, because its data may arrive after its start."""
        if not self._signature:
            return b""
        fields = own_extras(part, NAME)
        body = encode({"type": "redacted_thinking", "data": self._signature})
        block = one_line(graft(body, fields)) if fields else body
        return self._write_whole(block)

    def _finish(self, finish: Finish) -> bytes:
        try:
            stop_reason = write_finish(finish)
        except Problem as problem:
            return render_error_frame(problem)
        delta = encode({"stop_reason": stop_reason, "stop_sequence": finish.sequence})
        in_delta = {field: raw for field, raw in self._fields.items() if field not in _EVENT_FIELDS}
        in_event = {field: raw for field, raw in self._fields.items() if field in _EVENT_FIELDS}
        delta = graft(delta, in_delta)
        body = encode({"type": "message_delta", "delta": Raw(delta), "usage": write_usage(self._usage)})
        return render_named_frame("message_delta", one_line(graft(body, in_event))) + _MESSAGE_STOP


def render_error_frame(problem: Problem) -> bytes:
    """Render an error in a stream. Clients ignore it without its `event:` line."""
    return render_named_frame("error", one_line(render_error_body(problem)))


def _render_message_start(event: events.Started) -> bytes:
    message: dict[str, Any] = {
        "id": ensure_reply_id(event.id),
        "type": "message",
        "role": "assistant",
        "model": event.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": write_usage(None),
    }
    return render_named_frame("message_start", encode({"type": "message_start", "message": message}))
