"""How the frames of a stream stand on the wire: as server-sent events, or as the items of one JSON array."""

from typing import Protocol

from dragoman.gateway.ask import Framing
from dragoman.wire.sse import SseReader


class Framer(Protocol):
    """Events in, as the dialect writes them; bytes for the client out."""

    kind: str

    def feed(self, events: bytes) -> bytes:
        """Take the next events."""
        ...

    def close(self) -> bytes:
        """No more come."""
        ...


class Events:
    """The dialect's own form."""

    kind = "text/event-stream; charset=utf-8"

    def feed(self, events: bytes) -> bytes:
        return events

    def close(self) -> bytes:
        return b""


class Items:
    """One JSON array over the whole stream, an item an event: what Gemini sends to who does not ask for events."""

    kind = "application/json; charset=UTF-8"

    def __init__(self) -> None:
        self._reader = SseReader()
        self._begun = False

    def feed(self, events: bytes) -> bytes:
        items = [event.data for event in self._reader.feed(events)]
        if not items:
            return b""
        opening = b",\r\n" if self._begun else b"["
        self._begun = True
        return opening + b",\r\n".join(items)

    def close(self) -> bytes:
        return b"]" if self._begun else b"[]"


def framer(framing: Framing) -> Framer:
    """Return what frames a stream."""
    return Items() if framing == "array" else Events()
