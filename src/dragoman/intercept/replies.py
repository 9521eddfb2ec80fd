"""Replies of Google's API: the paths that return them, their three formats, and capturing calls from them.

The formats are one JSON object, server-sent events, and one JSON array that is streamed item by item. Data that cannot
be parsed is forwarded unchanged, and so is all that follows it. Among the calls of a caller's tools the first is
replaced by a placeholder text with the mark of the group, and the others are removed. Everything else stays byte for
byte; calls of the client's own tools are forwarded to the client.
"""

import re
from typing import Protocol
from uuid import uuid4

from msgspec import Struct

from dragoman.core.parts import ToolCall
from dragoman.intercept.document import ObjectFields, items_of, join_items
from dragoman.intercept.history_rules import call_of
from dragoman.intercept.plan import CapturedToolCall
from dragoman.wire import json
from dragoman.wire.json import Malformed
from dragoman.wire.json_stream import JsonStreamReader
from dragoman.wire.sse import SseReader, split_frames

_CALLS = (b"functionCall", b"function_call")
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_EMPTY_PART = b'{"text":""}'
_TURN = re.compile(
    r"(?P<before>[^?]*/(?P<room>models|tunedModels|endpoints)/)(?P<model>[^/?]+?)"
    r"(?P<after>(?::|%3[Aa])(?P<verb>generateContent|streamGenerateContent)(?:\?(?P<query>.*))?)"
)
_WRAPPED = re.compile(r".*/v1internal:(?P<verb>generateContent|streamGenerateContent)(?:\?(?P<query>.*))?")
_EVENTS = frozenset({"alt=sse", "$alt=sse", "%24alt=sse"})
_NO_USAGE = {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}
_MAX_BUFFERED = 64 << 20


class CallCapture:
    """Captures calls of the caller's tools: takes chunks of a reply, returns what is forwarded to the client."""

    def __init__(self, names: frozenset[str], placeholder: str, used_ids: frozenset[str] = frozenset()) -> None:
        self._names = names
        self._placeholder = json.encode({"text": placeholder})
        self._used_ids = set(used_ids)
        """Ids that other calls of the session already have."""
        self.calls: list[CapturedToolCall] = []
        self.has_client_calls = False
        """The reply has calls of the client's own tools, so the client will continue by itself."""

    def feed(self, chunk: bytes, *, is_whole: bool = False) -> bytes | None:
        """Filter a chunk, or a complete reply; return what is forwarded to the client, None for nothing."""
        if not any(mark in chunk for mark in _CALLS):
            return chunk
        outer = ObjectFields(chunk)
        inner = outer.get("response")
        reply = outer if inner is None else ObjectFields(inner)
        candidates = items_of(reply.get("candidates") or b"[]")
        filtered = [self._filter_candidate(candidate) for candidate in candidates]
        if filtered == candidates:
            return chunk
        if filtered == [None] and not is_whole:
            return None
        reply.set("candidates", join_items([one or other for one, other in zip(filtered, candidates, strict=True)]))
        if inner is not None:
            outer.set("response", reply.raw)
        return outer.raw

    def _filter_candidate(self, raw: bytes) -> bytes | None:
        """Return what is forwarded of a candidate; None for nothing."""
        candidate = ObjectFields(raw)
        content = candidate.get("content")
        if content is None:
            return raw
        turn = ObjectFields(content)
        parts = items_of(turn.get("parts") or b"[]")
        filtered = [one for part in parts for one in self._filter_part(part)]
        if filtered == parts:
            return raw
        if not filtered and candidate.get("finishReason") is None:
            return None
        turn.set("parts", join_items(filtered or [_EMPTY_PART]))
        candidate.set("content", turn.raw)
        return candidate.raw

    def _filter_part(self, part: bytes) -> list[bytes]:
        call = call_of(part)
        if call is None:
            return [part]
        if call.get("name") not in self._names:
            self.has_client_calls = True
            return [part]
        is_first = not self.calls
        self.calls.append(self._capture_call(part, str(call["name"]), str(call.get("id") or "")))
        return [self._placeholder] if is_first else []

    def _capture_call(self, part: bytes, name: str, given: str) -> CapturedToolCall:
        is_usable = _PLAIN_ID.fullmatch(given) is not None and given not in self._used_ids
        call_id = given if is_usable else f"call_{uuid4().hex}"
        self._used_ids.add(call_id)
        return CapturedToolCall(id=call_id, name=name, part=part, given=given)


def to_tool_call(captured: CapturedToolCall) -> ToolCall:
    """Convert a captured call to a core tool call."""
    call = ObjectFields(captured.part).get("functionCall") or b"{}"
    arguments = ObjectFields(call).get("args") or b"{}"
    return ToolCall(id=captured.id, name=captured.name, arguments=arguments.decode())


class TurnRequest(Struct, frozen=True, kw_only=True):
    """A request for a model turn."""

    wrapped: bool = False
    """The request is in Code Assist's envelope."""
    stream: bool = False
    events: bool = False
    """The stream uses server-sent events, not one JSON array."""
    model: str = ""
    """The model in the path; requests in the envelope have it in the body."""


def parse_turn_request(method: str, target: str) -> TurnRequest | None:
    """Parse the path of a request for a model turn; None for any other request."""
    if method != "POST":
        return None
    found = _TURN.fullmatch(target)
    model = found["model"] if found is not None else ""
    wrapped = found is None
    found = found or _WRAPPED.fullmatch(target)
    if found is None:
        return None
    stream = found["verb"].startswith("stream")
    events = not _EVENTS.isdisjoint((found["query"] or "").split("&"))
    return TurnRequest(wrapped=wrapped, stream=stream, events=events, model=model)


def replace_model_in_path(target: str, model: str) -> str:
    """Return the path with another model; unchanged if it names none, or a tuned model of the user."""
    found = _TURN.fullmatch(target)
    if found is None or found["room"] != "models":
        return target
    return f"{found['before']}{model}{found['after']}"


def build_reply(text: str, turn: TurnRequest, model: str) -> tuple[dict[str, str], bytes]:
    """Return headers and body of a reply whose only content is `text`."""
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
    name = model.removeprefix("models/")
    reply = {"candidates": [candidate], "usageMetadata": _NO_USAGE, "modelVersion": name, "responseId": uuid4().hex}
    body = json.encode({"response": reply} if turn.wrapped else reply)
    if turn.stream and turn.events:
        return {"content-type": "text/event-stream"}, b"data: " + body + b"\r\n\r\n"
    return {"content-type": "application/json; charset=UTF-8"}, b"[" + body + b"]" if turn.stream else body


class ReplyForm(Protocol):
    """Takes the bytes of a reply and returns the bytes for the client."""

    def feed(self, piece: bytes) -> bytes:
        """Process the next bytes and return those for the client."""
        ...

    def close(self) -> bytes:
        """Process the end of the reply and return the bytes that remain."""
        ...


def choose_reply_form(turn: TurnRequest, kind: str, capture: CallCapture) -> ReplyForm:
    """Return the reader for a reply, by the request and the reply's content type."""
    if not turn.stream:
        return ObjectReply(capture)
    return EventStreamReply(capture) if "event-stream" in kind else ArrayStreamReply(capture)


class ObjectReply:
    """A reply in one JSON object: it is buffered, and forwarded when it is complete."""

    def __init__(self, capture: CallCapture) -> None:
        self._capture = capture
        self._buffer = bytearray()
        self._is_passthrough = False

    def feed(self, piece: bytes) -> bytes:
        if self._is_passthrough:
            return piece
        self._buffer += piece
        if len(self._buffer) <= _MAX_BUFFERED:
            return b""
        self._is_passthrough = True
        return bytes(self._buffer)

    def close(self) -> bytes:
        if self._is_passthrough:
            return b""
        body = bytes(self._buffer)
        try:
            return self._capture.feed(body, is_whole=True) or body
        except (Malformed, ValueError, TypeError, AttributeError):
            return body


class EventStreamReply:
    """A stream of events: each event is forwarded as soon as it is complete."""

    def __init__(self, capture: CallCapture) -> None:
        self._capture = capture
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._filter_frame(frame) for frame in split_frames(self._buffer, piece))

    def close(self) -> bytes:
        rest = bytes(self._buffer)
        return self._filter_frame(rest) if rest else b""

    def _filter_frame(self, frame: bytes) -> bytes:
        if b"unction" not in frame:
            return frame
        reader = SseReader()
        try:
            found = [*reader.feed(frame), *reader.close()]
            filtered = self._capture.feed(found[0].data) if len(found) == 1 else None
        except (Malformed, ValueError, TypeError, AttributeError):
            return frame
        if filtered is None:
            return b"" if len(found) == 1 else frame
        if filtered == found[0].data:
            return frame
        end = b"\r\n\r\n" if frame.endswith(b"\r\n\r\n") else b"\n\n"
        return b"data: " + filtered + end


class ArrayStreamReply:
    """One JSON array: each item is forwarded as soon as it is complete, with the bytes before it."""

    def __init__(self, capture: CallCapture) -> None:
        self._capture = capture
        self._reader: JsonStreamReader | None = JsonStreamReader()
        self._unsent = bytearray()
        """Bytes received but not yet forwarded."""
        self._opening = b""
        """The bytes before the first item, which are sent before the first forwarded item."""
        self._has_sent = False

    def feed(self, piece: bytes) -> bytes:
        if self._reader is None:
            return piece
        self._unsent += piece
        try:
            values = self._reader.feed(piece)
        except Malformed:
            self._reader = None
            return self._flush()
        return b"".join(self._filter_item(value) for value in values)

    def close(self) -> bytes:
        return self._flush()

    def _filter_item(self, value: bytes) -> bytes:
        # Only separators come before the item that was read.
        at = self._unsent.find(value)
        before = bytes(self._unsent[:at])
        del self._unsent[: at + len(value)]
        if not self._has_sent:
            before = self._opening = self._opening or before
        try:
            filtered = self._capture.feed(value)
        except (Malformed, ValueError, TypeError, AttributeError):
            filtered = value
        if filtered is None:
            return b""
        self._has_sent = True
        return before + filtered

    def _flush(self) -> bytes:
        rest = bytes(self._unsent)
        self._unsent.clear()
        return rest if self._has_sent else self._opening + rest
