"""The three forms of a reply: one JSON object, server-sent events, and one JSON array that comes item by item.

What cannot be read is passed on as it came, and so is all that follows it.
"""

from typing import Protocol

from dragoman.intercept.capture import Capture
from dragoman.intercept.paths import Turn
from dragoman.wire.json import Malformed
from dragoman.wire.json_stream import JsonStreamReader
from dragoman.wire.sse import SseReader, whole_frames

_MOST_HELD = 64 << 20


class Form(Protocol):
    """Bytes of a reply in, bytes for the client out."""

    def feed(self, piece: bytes) -> bytes:
        """Take the next bytes."""
        ...

    def close(self) -> bytes:
        """No more come."""
        ...


def form_of(turn: Turn, kind: str, capture: Capture) -> Form:
    """Return how a reply is read, by what was asked for and the content type that it has."""
    if not turn.stream:
        return Whole(capture)
    return Events(capture) if "event-stream" in kind else Items(capture)


class Whole:
    """A reply in one object: nothing of it is told before all of it is there."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._held = bytearray()
        self._passes = False

    def feed(self, piece: bytes) -> bytes:
        if self._passes:
            return piece
        self._held += piece
        if len(self._held) <= _MOST_HELD:
            return b""
        self._passes = True
        return bytes(self._held)

    def close(self) -> bytes:
        if self._passes:
            return b""
        body = bytes(self._held)
        try:
            return self._capture.feed(body, is_whole=True) or body
        except (Malformed, ValueError, TypeError, AttributeError):
            return body


class Events:
    """A stream of events: each is passed on as soon as it is whole."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._begun = bytearray()

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._frame(frame) for frame in whole_frames(self._begun, piece))

    def close(self) -> bytes:
        rest = bytes(self._begun)
        return self._frame(rest) if rest else b""

    def _frame(self, frame: bytes) -> bytes:
        if b"unction" not in frame:
            return frame
        reader = SseReader()
        try:
            found = [*reader.feed(frame), *reader.close()]
            told = self._capture.feed(found[0].data) if len(found) == 1 else None
        except (Malformed, ValueError, TypeError, AttributeError):
            return frame
        if told is None:
            return b"" if len(found) == 1 else frame
        if told == found[0].data:
            return frame
        end = b"\r\n\r\n" if frame.endswith(b"\r\n\r\n") else b"\n\n"
        return b"data: " + told + end


class Items:
    """One array: each item is passed on as soon as it is whole, with what stood before it."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._reader: JsonStreamReader | None = JsonStreamReader()
        self._untold = bytearray()
        """What has come and was not passed on."""
        self._opening = b""
        """What stood before the first item: it stands before the first that is told."""
        self._begun = False

    def feed(self, piece: bytes) -> bytes:
        if self._reader is None:
            return piece
        self._untold += piece
        try:
            values = self._reader.feed(piece)
        except Malformed:
            self._reader = None
            return self._rest()
        return b"".join(self._item(value) for value in values)

    def close(self) -> bytes:
        return self._rest()

    def _item(self, value: bytes) -> bytes:
        # Nothing but what separates items stands before the one that was read next.
        at = self._untold.find(value)
        before = bytes(self._untold[:at])
        del self._untold[: at + len(value)]
        if not self._begun:
            before = self._opening = self._opening or before
        try:
            told = self._capture.feed(value)
        except (Malformed, ValueError, TypeError, AttributeError):
            told = value
        if told is None:
            return b""
        self._begun = True
        return before + told

    def _rest(self) -> bytes:
        rest = bytes(self._untold)
        self._untold.clear()
        return rest if self._begun else self._opening + rest
