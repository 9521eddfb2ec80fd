"""A stream as one JSON array: Gemini's form without `alt=sse`."""

from dragoman.wire.sse import SseReader


class ArrayFramer:
    """Makes one JSON array of server-sent events, an item for each."""

    def __init__(self) -> None:
        self._reader = SseReader()
        self._begun = False

    def feed(self, events: bytes) -> bytes:
        """Return the items of the next events."""
        items = [event.data for event in self._reader.feed(events)]
        if not items:
            return b""
        opening = b",\r\n" if self._begun else b"["
        self._begun = True
        return opening + b",\r\n".join(items)

    def close(self) -> bytes:
        """Return the end of the array."""
        return b"]" if self._begun else b"[]"
