"""Server-sent events: a tolerant reader and a strict writer.

The reader takes bytes at any boundary, in linear time and bounded memory. It accepts LF, CRLF and CR line ends,
comments, `data:` with and without the space, several data lines per event and a byte order mark. An event that the
stream's end cuts off (no blank line) is still told by `close`: dropping it would lose the last words of a careless
server.
"""

import re

from msgspec import Struct

from dragoman.wire.json import Malformed

MAX_EVENT_BYTES = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_LF = 0x0A
_LONE = re.compile(rb"data: (\{[^\r\n]*)(?:\r\n\r\n|\n\n)").fullmatch
_FRAME = re.compile(rb".*?\n\r?\n[\r\n]*", re.DOTALL)


class Frame(Struct, frozen=True):
    """One event: its name ("" when the stream gave none) and its data."""

    event: str
    data: bytes


class SseReader:
    """Bytes in, frames out."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._event = ""
        self._data: list[bytes] = []
        self._data_size = 0
        self._first = True
        self._after_cr = False
        self._between = True

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes, return the events they complete."""
        if self._between and len(chunk) <= self._limit:
            frame = _only_event(chunk)
            if frame is not None:
                self._first = False
                return [frame]
        self._between = False
        frames = self._feed(chunk)
        self._between = not (self._rest or self._data or self._event or self._after_cr)
        return frames

    def lone(self, chunk: bytes) -> bytes | None:
        """Read a chunk that is one nameless event, an object on one line; None, and nothing read, for any other."""
        found = _LONE(chunk) if self._between and len(chunk) <= self._limit else None
        if found is None:
            return None
        self._first = False
        return found[1]

    def _feed(self, chunk: bytes) -> list[Frame]:
        if not chunk:
            return []
        if self._after_cr:
            self._after_cr = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if chunk.endswith(b"\r"):
            self._after_cr = True
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in chunk:
            self._hold(chunk)
            return []
        lines = chunk.split(b"\n")
        if self._rest:
            self._rest.append(lines[0])
            lines[0] = b"".join(self._rest)
            self._rest = []
            self._rest_size = 0
        last = lines.pop()
        if last:
            self._hold(last)
        frames: list[Frame] = []
        for line in lines:
            self._line(line, frames)
        return frames

    def close(self) -> list[Frame]:
        """Tell what the end of the stream left without its blank line."""
        frames: list[Frame] = []
        if self._rest:
            self._line(b"".join(self._rest), frames)
            self._rest = []
        self._line(b"", frames)
        return frames

    def _hold(self, piece: bytes) -> None:
        self._rest.append(piece)
        self._rest_size += len(piece)
        if self._rest_size + self._data_size > self._limit:
            raise Malformed(f"an event is larger than {self._limit} bytes")

    def _line(self, line: bytes, frames: list[Frame]) -> None:
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


def _only_event(chunk: bytes) -> Frame | None:
    """Read a chunk that is one event in its plainest spelling, which is how servers flush them; None for any other."""
    start, name, size = 0, "", len(chunk)
    if not chunk.startswith(b"data: "):
        if not chunk.startswith(b"event: "):
            return None
        start = chunk.find(b"\n") + 1
        if not chunk.startswith(b"data: ", start):
            return None
        name = chunk[7 : start - 1].rstrip(b"\r").decode("utf-8", "replace")
    end = chunk.find(b"\n", start)
    if end == size - 2 and chunk[-1] == _LF and b"\r" not in chunk:
        return Frame(name, chunk[start + 6 : end])
    if end == size - 3 and chunk.endswith(b"\r\n\r\n") and chunk.count(b"\r") == chunk.count(b"\r\n"):
        return Frame(name, chunk[start + 6 : end - 1])
    return None


def whole_frames(begun: bytearray, chunk: bytes) -> list[bytes]:
    """Return the frames that are whole now as they came; what has come of the next is held in `begun`."""
    # Only what is new is looked at, and two bytes before it: a frame's end may come in pieces.
    seam = bytes(begun[-2:]) + chunk
    begun += chunk
    end = max(seam.rfind(mark) + len(mark) if mark in seam else 0 for mark in (b"\n\n", b"\n\r\n"))
    if not end:
        return []
    whole = len(begun) - len(seam) + end
    known = bytes(begun[:whole])
    del begun[:whole]
    return _FRAME.findall(known)


def data_frame(data: bytes) -> bytes:
    """Write an event without a name."""
    return b"data: " + data + b"\n\n"


def named_frame(event: str, data: bytes) -> bytes:
    """Write an event with a name."""
    return b"event: " + event.encode() + b"\ndata: " + data + b"\n\n"
