"""Encodes the core events of a reply as Chat chunks.

Rules: every chunk has the same id and time; a call's id, type and name are sent once, and absent values are omitted;
calls are numbered from 0 in the order they start. Vendor fields of this dialect are sent in the last chunks. Usage is
a separate chunk, sent only if the client asked for it. A failed reply ends with an error and without `[DONE]`.
"""

from typing import Any, assert_never

from msgspec import Raw

from dragoman.core import events
from dragoman.core.parts import AnyPart, Opaque, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, FinishReason, Usage
from dragoman.core.value import own_extras
from dragoman.dialects.chat.errors import render_error_body
from dragoman.dialects.chat.fields import REASONING_MEMBERS, Spelling, is_legacy
from dragoman.dialects.chat.parts import GOOGLE, write_citation
from dragoman.dialects.chat.reasoning_details import write_details
from dragoman.dialects.chat.wire import NAME
from dragoman.dialects.decoder import Encoder
from dragoman.wire.json import Malformed, decode_object, encode, first_byte, one_line, with_members
from dragoman.wire.splice import graft
from dragoman.wire.sse import render_data_frame

_DONE = b"data: [DONE]\n\n"
_THINKING = b'{"content":[{"type":"thinking","thinking":[{"type":"text","text":'
_FINISH_REASONS: dict[FinishReason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "filtered": "content_filter",
    "refused": "content_filter",
    "paused": "stop",
    # OpenAI has no value for "another reason"; "stop" would mean that the reply is complete.
    "other": "content_filter",
}
_MALFORMED_CALL = "the model made a malformed tool call"


class _OpenPart:
    """A part that is being streamed; each delta is written between two fixed byte strings, `head` and `tail`."""

    __slots__ = (
        "has_delta",
        "head",
        "is_json_call",
        "kind",
        "ordinal",
        "part",
        "piece",
        "signature",
        "size",
        "tail",
        "texts",
    )

    def __init__(self, part: AnyPart) -> None:
        self.part = part
        self.kind = part.__class__
        self.head = b""
        self.tail = b""
        self.ordinal = -1
        self.piece = 0
        self.size = 0
        self.has_delta = False
        self.is_json_call = False
        self.signature = part.signature
        self.texts: list[str] = []
        """The text of reasoning, which is repeated with its signature."""


def wants_usage(request: Request | None) -> bool:
    """Return whether the client gets the usage chunk."""
    if request is None:
        return True
    extras = request.extras
    raw = extras.fields.get("/stream_options") if extras is not None and extras.dialect == NAME else None
    if raw is None or first_byte(raw) != b"{":
        return False
    return bytes(decode_object(raw).get("include_usage", b"")) == b"true"


def _build_call_head(open_part: _OpenPart) -> dict[str, Any]:
    """Return the members that every delta of a call has; OpenAI's stream helper requires `function` in each."""
    return {"index": open_part.ordinal, "function": {}} if open_part.is_json_call else {"index": open_part.ordinal}


class ChatEncoder(Encoder):
    """Encodes core events as bytes for the client."""

    def __init__(self, request: Request | None) -> None:
        self._sends_usage = wants_usage(request)
        self._tail = b',"usage":null}\n\n' if self._sends_usage else b"}\n\n"
        self._prefix = b""
        self._parts: dict[int, _OpenPart] = {}
        self._call_count = 0
        self._usage: Usage | None = None
        self._native: dict[str, bytes] = {}
        self._annotations: list[dict[str, Any] | Raw] = []
        self._text_length = 0
        """Length of all ended texts: the offsets of annotations count from the start of the first text."""
        self._has_refusal = False
        self._has_legacy_call = False
        self._has_reasoning = False
        self._detail_count = 0

    def feed(self, event: events.Event) -> bytes:
        """Encode the next event."""
        if isinstance(event, events.PartDelta):
            return self._append(self._parts.get(event.index), event.text, event.piece)
        match event:
            case events.PartStarted(index, part):
                return self._begin(index, part)
            case events.PartEnded(index, complete):
                return self._end_part(self._parts.pop(index, None), complete)
            case events.PartSigned(index, signature):
                return self._sign(index, signature)
            case events.PartCited(index, citation):
                opened = self._parts.get(index)
                written = write_citation(citation, self._text_length, opened.size if opened is not None else 0)
                if written is not None:
                    self._annotations.append(written)
                return b""
            case events.PartNative(index, dialect, field, raw):
                return self._write_part_field(index, field, raw) if dialect == NAME else b""
            case events.Native(dialect, field, raw):
                if dialect == NAME:
                    self._native[field] = raw
                return b""
            case events.UsageSeen(usage):
                self._usage = usage
                return b""
            case events.Started():
                return self._start(event)
            case events.Finished(finish):
                return self._finish(finish)
            case events.Failed(problem):
                return render_data_frame(render_error_body(problem))
            case _:
                assert_never(event)

    def _start(self, event: events.Started) -> bytes:
        head = {
            "id": event.id,
            "object": "chat.completion.chunk",
            "created": event.created or 0,
            "model": event.model,
        }
        self._prefix = b"data: " + encode(head)[:-1] + b',"choices":['
        return self._write_delta(b'{"role":"assistant","content":"","refusal":null}')

    def _write_chunk(self, choices: bytes) -> bytes:
        return self._prefix + choices + b"]" + self._tail

    def _write_delta(self, delta: bytes) -> bytes:
        return self._write_chunk(b'{"index":0,"delta":' + delta + b',"finish_reason":null}')

    def _begin(self, index: int, part: AnyPart) -> bytes:
        opened = self._parts[index] = _OpenPart(part)
        match part:
            case Text():
                self._set_delta_frame(opened, b'{"content":', b"}")
            case Refusal():
                self._has_refusal = True
                self._set_delta_frame(opened, b'{"refusal":', b"}")
            case Reasoning(spelling=Spelling.THINKING):
                self._set_delta_frame(opened, _THINKING, b"}]}]}")
            case Reasoning(spelling=Spelling.DETAILS):
                return b""
            case Reasoning():
                member = REASONING_MEMBERS.get(part.spelling, "reasoning_content")
                self._set_delta_frame(opened, b'{"' + member.encode() + b'":', b"}")
            case ToolCall():
                return self._begin_call(opened, part)
            case Opaque(dialect=dialect) if dialect == NAME:
                return self._write_delta(encode({"content": [Raw(one_line(part.raw))]}))
            case _:
                return b""
        fields = own_extras(part, NAME) or {}
        return b"".join(self._write_part_field(index, field, raw) for field, raw in fields.items())

    def _set_delta_frame(self, open_part: _OpenPart, head: bytes, tail: bytes) -> None:
        open_part.head = self._prefix + b'{"index":0,"delta":' + head
        open_part.tail = tail + b',"finish_reason":null}]' + self._tail

    def _begin_call(self, open_part: _OpenPart, call: ToolCall) -> bytes:
        open_part.is_json_call = call.form == "json"
        if is_legacy(call):
            self._has_legacy_call = True
            self._set_delta_frame(open_part, b'{"function_call":{"arguments":', b"}}")
            return self._write_delta(encode({"function_call": {"name": call.name, "arguments": ""}}))
        open_part.ordinal = self._call_count
        self._call_count += 1
        number = str(open_part.ordinal).encode()
        kind, field = ("function", "arguments") if open_part.is_json_call else ("custom", "input")
        head = b'{"tool_calls":[{"index":' + number + b',"' + kind.encode() + b'":{"' + field.encode() + b'":'
        self._set_delta_frame(open_part, head, b"}}]}")
        value: dict[str, Any] = {
            "index": open_part.ordinal,
            "id": call.id,
            "type": kind,
            kind: {"name": call.name, field: ""},
        }
        body = encode(value)
        if call.extras is not None and (fields := own_extras(call, NAME)):
            body = one_line(graft(body, fields))
        first = self._write_delta(b'{"tool_calls":[' + body + b"]}")
        signature = call.signature
        return (
            first if signature is None else first + self._write_signature(open_part, signature.issuer, signature.value)
        )

    def _append(self, open_part: _OpenPart | None, text: str, piece: int) -> bytes:
        if open_part is None:
            return b""
        if open_part.kind is Reasoning:
            open_part.texts.append(f"\n\n{text}" if piece != open_part.piece and open_part.texts else text)
        if not open_part.head:
            open_part.piece = piece
            return b""
        if open_part.kind is Reasoning:
            text = self._separate_summaries(open_part, text, piece)
        open_part.has_delta = True
        open_part.size += len(text)
        return open_part.head + encode(text) + open_part.tail

    def _separate_summaries(self, open_part: _OpenPart, text: str, piece: int) -> str:
        """Return the text with a blank line before it if it starts another summary, as in a whole reply."""
        starts_summary = piece != open_part.piece or not open_part.has_delta
        needs_separator = starts_summary and self._has_reasoning
        open_part.piece = piece
        self._has_reasoning = True
        return f"\n\n{text}" if needs_separator else text

    def _end_part(self, open_part: _OpenPart | None, complete: bool) -> bytes:
        if open_part is not None and isinstance(open_part.part, Text):
            self._text_length += open_part.size
        if open_part is not None and open_part.kind is Reasoning and open_part.signature is not None:
            signed = Reasoning(texts=("".join(open_part.texts),), signature=open_part.signature)
            items = write_details((signed,), self._detail_count)
            self._detail_count += len(items)
            return self._write_delta(one_line(encode({"reasoning_details": items})))
        if open_part is None or open_part.has_delta or not open_part.is_json_call or not complete:
            return b""
        # Clients parse the joined arguments, and an empty string is not JSON.
        return self._append(open_part, "{}", 0)

    def _sign(self, index: int, signature: Signature) -> bytes:
        opened = self._parts.get(index)
        if opened is None or opened.ordinal < 0:
            if opened is not None:
                opened.signature = signature
            return b""
        return self._write_signature(opened, signature.issuer, signature.value)

    def _write_signature(self, open_part: _OpenPart, issuer: str, value: str) -> bytes:
        if issuer != GOOGLE:
            return b""
        signed = {**_build_call_head(open_part), "extra_content": {GOOGLE: {"thought_signature": value}}}
        return self._write_delta(encode({"tool_calls": [signed]}))

    def _write_part_field(self, index: int, field: str, raw: bytes) -> bytes:
        opened = self._parts.get(index)
        if opened is None:
            return b""
        if opened.ordinal >= 0:
            body = one_line(graft(encode(_build_call_head(opened)), {field: raw}))
            return self._write_delta(b'{"tool_calls":[' + body + b"]}")
        match opened.part:
            case Text():
                empty: dict[str, Any] = {"type": "text", "text": ""}
            case Reasoning(spelling=Spelling.THINKING):
                empty = {"type": "thinking", "thinking": []}
            case _:
                return b""
        return self._write_delta(b'{"content":[' + one_line(graft(encode(empty), {field: raw})) + b"]}")

    def _finish(self, finish: Finish) -> bytes:
        try:
            finish_reason = write_finish(finish, has_refusal=self._has_refusal, is_legacy=self._has_legacy_call)
        except Problem as problem:
            return render_data_frame(render_error_body(problem))
        others: list[bytes] = []
        choice: dict[str, bytes] = {}
        message: dict[str, bytes] = {}
        top: dict[str, bytes] = {}
        for field, raw in self._native.items():
            if field.startswith("/choices/0/message/"):
                message[field.removeprefix("/choices/0/message")] = raw
            elif field.startswith("/choices/0/"):
                choice[field.removeprefix("/choices/0")] = raw
            elif field.startswith("/choices/"):
                others.append(_choice_to_delta(raw))
            else:
                top[field] = raw
        chunks = b"".join(self._write_chunk(one_line(other)) for other in others)
        if self._annotations:
            # In one chunk: OpenAI's stream accumulator raises at a second list of annotations.
            chunks += self._write_delta(one_line(encode({"annotations": self._annotations})))
        if message:
            chunks += self._write_delta(one_line(graft(b"{}", message)))
        last = b'{"index":0,"delta":{},"finish_reason":' + encode(finish_reason) + b"}"
        finished = self._write_chunk(graft(last, choice) if choice else last)
        if top:
            body = graft(finished.removeprefix(b"data: ").rstrip(), top)
            finished = render_data_frame(one_line(body))
        return chunks + finished + self._write_usage_chunk() + _DONE

    def _write_usage_chunk(self) -> bytes:
        if not self._sends_usage or self._usage is None:
            return b""
        return self._prefix + b'],"usage":' + one_line(encode(write_usage(self._usage))) + b"}\n\n"


def _choice_to_delta(raw: bytes) -> bytes:
    """Convert a whole choice to a streamed one: rename `message` to `delta`."""
    try:
        members = {name: bytes(value) for name, value in decode_object(raw).items()}
    except Malformed:
        return raw
    return with_members(b"{}", {"delta" if name == "message" else name: value for name, value in members.items()})


def write_usage(usage: Usage) -> dict[str, Any] | Raw:
    """Render token counts."""
    fields = (own_extras(usage, NAME) if usage.extras is not None else None) or {}
    prompt_tokens, output = usage.input or 0, usage.output or 0
    value: dict[str, Any] = {"prompt_tokens": prompt_tokens}
    if "/completion_tokens" not in fields:
        value["completion_tokens"] = output
    if "/total_tokens" not in fields:
        value["total_tokens"] = prompt_tokens + output
    if usage.cached is not None or usage.cache_written is not None:
        prompt = {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written}
        value["prompt_tokens_details"] = {name: count for name, count in prompt.items() if count is not None}
    if usage.reasoning is not None:
        value["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return Raw(graft(encode(value), fields)) if fields else value


def write_finish(finish: Finish, *, has_refusal: bool, is_legacy: bool) -> str:
    """Return the `finish_reason` of a finish; raise for a malformed call, which has none."""
    if finish.reason == "malformed_call":
        raise Problem("malformed_reply", _MALFORMED_CALL, code="malformed_function_call")
    if finish.reason == "refused" and has_refusal:
        return "stop"
    if finish.reason == "tool_calls" and is_legacy:
        return "function_call"
    return _FINISH_REASONS[finish.reason]
