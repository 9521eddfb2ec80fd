"""Decoders and encoders of streams: what every dialect's do, and the loop over frames that all decoders share."""

from typing import Protocol

from dragoman.core.events import Event, Failed
from dragoman.core.problems import Problem
from dragoman.wire.json import Malformed
from dragoman.wire.sse import Frame, SseReader


class Decoder(Protocol):
    """Upstream bytes in, events out. After `Finished` or `Failed` it returns no more events."""

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes."""
        ...

    def close(self) -> list[Event]:
        """The stream is over: `Failed` if the dialect's terminal event has not been seen."""
        ...


class FrameReader(Protocol):
    """Bytes in, frames out. Both methods raise `Malformed`."""

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes, return the frames they complete."""
        ...

    def close(self) -> list[Frame]:
        """Return the frames that only the end of the stream completes."""
        ...


class Encoder(Protocol):
    """Events in, bytes for the client out."""

    def feed(self, event: Event) -> bytes:
        """Take the next event."""
        ...


class FrameDecoder(Decoder):
    """Decodes a stream frame by frame. Whatever is wrong with a frame ends the stream with `Failed`.

    A dialect implements `_take` and `_end`. They append to `_events`, and set `_over` with the last event.
    """

    def __init__(self, reader: FrameReader | None = None) -> None:
        self._reader = reader or SseReader()
        self._events: list[Event] = []
        """The events of the frames taken now. Helpers hold this list too, so it is emptied and never replaced."""
        self._is_over = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes."""
        if self._is_over:
            return []
        try:
            for frame in self._reader.feed(chunk):
                self._decode_frame(frame)
                if self._is_over:
                    break
        except (Malformed, Problem) as error:
            self._fail(error)
        events = self._events.copy()
        self._events.clear()
        return events

    def close(self) -> list[Event]:
        """The stream is over: `Failed` if the dialect's terminal event has not been seen."""
        if self._is_over:
            return []
        try:
            for frame in self._reader.close():
                self._decode_frame(frame)
            if not self._is_over:
                self._end()
        except (Malformed, Problem) as error:
            self._fail(error)
        return self._events

    def _decode_frame(self, frame: Frame) -> None:
        """Decode one frame."""
        raise NotImplementedError

    def _end(self) -> None:
        """Finish the reply at the end of the stream, or raise a `Problem` if it is not complete."""
        raise NotImplementedError

    def _fail(self, error: Malformed | Problem) -> None:
        self._is_over = True
        problem = error if isinstance(error, Problem) else Problem("malformed_reply", error.message, where=error.where)
        self._events.append(Failed(problem))
