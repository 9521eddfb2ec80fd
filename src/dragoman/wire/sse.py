"""Server-sent events: a tolerant parser and a strict renderer.

The parser takes chunks with any boundaries, in linear time and bounded memory. It accepts LF, CRLF and CR line ends,
comments, `data:` with and without the space, several data lines per event and a byte order mark. `close` still returns
a last event without its blank line: to drop it would lose the end of a reply from a server that does not send it.
"""

import re

from msgspec import Struct

from dragoman.wire.json import Malformed

MAX_EVENT_BYTES = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_FRAME = re.compile(rb".*?\n\r?\n[\r\n]*", re.DOTALL)


class Frame(Struct, frozen=True):
    """One event: its name ("" when the stream gave none) and its data."""

    event: str
    data: bytes


class SseReader:
    """Parses a byte stream into frames."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._partial_line: list[bytes] = []
        self._partial_size = 0
        self._event = ""
        self._data: list[bytes] = []
        self._data_size = 0
        self._first = True
        self._after_cr = False
        self._between = True
        """No part of an event is buffered."""

    def feed(self, chunk: bytes) -> list[Frame]:
        """Add bytes and return the events they complete."""
        lines = chunk.splitlines()
        # Servers flush events one by one, so most chunks are one whole event.
        if self._between and 2 <= len(lines) <= 3 and not lines[-1] and len(chunk) <= self._limit:
            data = lines[-2]
            if data.startswith(b"data: "):
                if len(lines) == 2:
                    self._first = False
                    return [Frame("", data[6:])]
                if lines[0].startswith(b"event: "):
                    self._first = False
                    return [Frame(lines[0][7:].decode("utf-8", "replace"), data[6:])]
        return self._feed_lines(chunk, lines)

    def _feed_lines(self, chunk: bytes, lines: list[bytes]) -> list[Frame]:
        if not lines:
            return []
        if self._after_cr and chunk.startswith(b"\n"):
            del lines[0]  # the LF of a CRLF that was split between two chunks
        self._after_cr = chunk.endswith(b"\r")
        is_cut = not chunk.endswith((b"\n", b"\r"))
        if self._partial_line and (not is_cut or len(lines) > 1):
            self._partial_line.append(lines[0])
            lines[0] = b"".join(self._partial_line)
            self._partial_line = []
            self._partial_size = 0
        if is_cut:
            self._buffer_rest(lines.pop())
        frames: list[Frame] = []
        for line in lines:
            self._read_line(line, frames)
        self._between = not (self._partial_line or self._data or self._event or self._after_cr)
        return frames

    def close(self) -> list[Frame]:
        """Return the last event if the stream ended without its blank line."""
        frames: list[Frame] = []
        if self._partial_line:
            self._read_line(b"".join(self._partial_line), frames)
            self._partial_line = []
        self._read_line(b"", frames)
        return frames

    def _buffer_rest(self, piece: bytes) -> None:
        self._partial_line.append(piece)
        self._partial_size += len(piece)
        if self._partial_size + self._data_size > self._limit:
            raise Malformed(f"an event is larger than {self._limit} bytes")

    def _read_line(self, line: bytes, frames: list[Frame]) -> None:
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                frames.append(Frame(self._event, b"\n".join(self._data)))
                self._data = []
                self._data_size = 0
            self._event = ""
            return
        name, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            self._data.append(value)
            self._data_size += len(value) + 1
            if self._data_size > self._limit:
                raise Malformed(f"an event is larger than {self._limit} bytes")
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")


def split_frames(partial: bytearray, chunk: bytes) -> list[bytes]:
    """Return the frames that `chunk` completes, byte for byte; the start of the next frame stays in `partial`."""
    # Only the chunk and the two bytes before it are searched: the end of a frame may be split between chunks.
    seam = bytes(partial[-2:]) + chunk
    partial += chunk
    end = max(seam.rfind(mark) + len(mark) if mark in seam else 0 for mark in (b"\n\n", b"\n\r\n"))
    if not end:
        return []
    whole = len(partial) - len(seam) + end
    complete = bytes(partial[:whole])
    del partial[:whole]
    return _FRAME.findall(complete)


def render_data_frame(data: bytes) -> bytes:
    """Return an SSE event without a name."""
    return b"data: " + data + b"\n\n"


def render_named_frame(event: str, data: bytes) -> bytes:
    """Return an SSE event with a name."""
    return b"event: " + event.encode() + b"\ndata: " + data + b"\n\n"
