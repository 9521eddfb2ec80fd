"""Streams of JSON values without SSE: one array, one value per line, or concatenated values.

The reader finds the end of each top-level value (or array item) by tracking strings and brackets, in linear time and
with any chunk boundaries. It does not validate the values; their decoder does.
"""

import re

from dragoman.wire.json import Malformed
from dragoman.wire.sse import SseReader

MAX_VALUE_BYTES = 64 * 1024 * 1024
_MARK = re.compile(rb'["{}\[\],]')
_IN_STRING = re.compile(rb'["\\]')
_SPACE = b" \t\r\n"


class JsonStreamReader:
    """Splits a byte stream into complete JSON values."""

    def __init__(self, max_value_bytes: int = MAX_VALUE_BYTES) -> None:
        self._limit = max_value_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._array: bool | None = None
        self._is_over = False
        self._error: Malformed | None = None

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add bytes and return the values they complete. An error after a value is raised by the next call."""
        if self._error is not None:
            raise self._error
        values: list[bytes] = []
        position = 0
        if self._array is None:
            stripped = chunk.lstrip(_SPACE)
            if not stripped:
                return []
            self._array = stripped.startswith(b"[")
            position = len(chunk) - len(stripped) + (1 if self._array else 0)
        try:
            while position < len(chunk):
                position = self._read_mark(chunk, position, values)
        except Malformed as error:
            self._error = error
            if not values:
                raise
        return values

    def close(self) -> list[bytes]:
        """Raise `Malformed` if the stream ended inside a value or inside its array."""
        if self._error is not None:
            raise self._error
        if self._depth or self._in_string or b"".join(self._pieces).strip(_SPACE):
            raise Malformed("the stream ended inside a JSON value")
        if self._array and not self._is_over:
            raise Malformed("the stream ended inside its JSON array")
        return []

    def _read_mark(self, chunk: bytes, position: int, values: list[bytes]) -> int:
        """Read up to the next structural character and return the position after it."""
        if self._escaped:
            self._buffer(chunk[position : position + 1])
            self._escaped = False
            return position + 1
        found = (_IN_STRING if self._in_string else _MARK).search(chunk, position)
        if found is None:
            self._buffer(chunk[position:])
            return len(chunk)
        mark = found.group()
        end = found.end()
        if self._in_string:
            self._buffer(chunk[position:end])
            self._escaped = mark == b"\\"
            self._in_string = mark != b'"'
        elif mark == b'"':
            self._buffer(chunk[position:end])
            self._in_string = True
        elif mark in (b"{", b"["):
            self._buffer(chunk[position:end])
            self._depth += 1
        elif self._depth == 0:
            self._buffer(chunk[position : end - 1])
            self._end_item(mark, values)
        elif mark in (b"}", b"]"):
            self._buffer(chunk[position:end])
            self._depth -= 1
            if self._depth == 0:
                self._emit_value(values)
        else:
            self._buffer(chunk[position:end])
        return end

    def _end_item(self, mark: bytes, values: list[bytes]) -> None:
        if self._is_over or not self._array or mark not in (b",", b"]"):
            raise Malformed("unexpected character between JSON values")
        self._emit_value(values)
        self._is_over = mark == b"]"

    def _buffer(self, piece: bytes) -> None:
        if self._is_over and piece.strip(_SPACE):
            raise Malformed("data after the end of the JSON array")
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > self._limit:
            raise Malformed(f"a JSON value is larger than {self._limit} bytes")

    def _emit_value(self, values: list[bytes]) -> None:
        value = b"".join(self._pieces).strip(_SPACE)
        self._pieces = []
        self._size = 0
        if value:
            values.append(value)


class ArrayFramer:
    """Converts server-sent events to one JSON array with an item for each event."""

    def __init__(self) -> None:
        self._reader = SseReader()
        self._has_items = False

    def feed(self, events: bytes) -> bytes:
        """Return the array items for the next events."""
        items = [event.data for event in self._reader.feed(events)]
        if not items:
            return b""
        opening = b",\r\n" if self._has_items else b"["
        self._has_items = True
        return opening + b",\r\n".join(items)

    def close(self) -> bytes:
        """Return the end of the array."""
        return b"]" if self._has_items else b"[]"
