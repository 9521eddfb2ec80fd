"""Protocols for stream decoders and encoders, and the frame loop that all decoders share."""

from collections.abc import Callable
from typing import Protocol

from dragoman.core.events import Event, Failed
from dragoman.core.problems import Problem
from dragoman.core.response import Response
from dragoman.core.stream import replay
from dragoman.wire.json import Malformed
from dragoman.wire.sse import MAX_EVENT_BYTES, Frame, SseReader


class Decoder(Protocol):
    """Decodes the bytes of an upstream stream into events. Returns no more events after `Finished` or `Failed`."""

    def feed(self, chunk: bytes) -> list[Event]:
        """Decode the next bytes and return the events they complete."""
        ...

    def close(self) -> list[Event]:
        """End the stream and return the last events: `Failed` if the dialect's terminal event did not arrive."""
        ...


class FrameReader(Protocol):
    """Splits bytes into frames. Both methods raise `Malformed`."""

    def feed(self, chunk: bytes) -> list[Frame]:
        """Read the next bytes and return the frames they complete."""
        ...

    def close(self) -> list[Frame]:
        """Return the frames that the end of the stream completes."""
        ...


class Encoder(Protocol):
    """Encodes events into the bytes of the client's stream."""

    def feed(self, event: Event) -> bytes:
        """Return the bytes for the next event."""
        ...


class FrameDecoder(Decoder):
    """Decodes a stream frame by frame. Any error in a frame ends the stream with `Failed`.

    A dialect implements `_decode_frame` and `_end`. They append to `_events` and set `_is_over` with the last event.
    Some servers answer a request for a stream with a whole reply; `parse_whole` parses it when it has arrived.
    """

    def __init__(
        self, reader: FrameReader | None = None, parse_whole: Callable[[bytes], Response] | None = None
    ) -> None:
        self._reader = reader or SseReader()
        self._parse_whole = parse_whole
        self._whole: bytearray | None = None
        """The bytes so far of a whole reply."""
        self._is_unread = parse_whole is not None
        """Only white space has arrived so far, so it is not known whether a stream or a whole reply follows."""
        self._events: list[Event] = []
        """The events of the current call. Helpers share this list, so it is cleared and never replaced."""
        self._is_over = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Decode the next bytes and return the events they complete."""
        if self._is_over:
            return []
        if self._is_unread and (head := chunk.lstrip()[:1]):
            self._is_unread = False
            self._whole = bytearray() if head == b"{" else None
        try:
            frames = self._reader.feed(chunk) if self._whole is None else self._append_whole(self._whole, chunk)
            for frame in frames:
                self._decode_frame(frame)
                if self._is_over:
                    break
        except (Malformed, Problem) as error:
            self._fail(error)
        events = self._events.copy()
        self._events.clear()
        return events

    def close(self) -> list[Event]:
        """End the stream and return the last events: `Failed` if the dialect's terminal event did not arrive."""
        if self._is_over:
            return []
        try:
            if self._whole is not None and self._parse_whole is not None:
                self._events.extend(replay(self._parse_whole(bytes(self._whole))))
                self._is_over = True
                return self._events
            for frame in self._reader.close():
                self._decode_frame(frame)
            if not self._is_over:
                self._end()
        except (Malformed, Problem) as error:
            self._fail(error)
        return self._events

    def _append_whole(self, whole: bytearray, chunk: bytes) -> list[Frame]:
        """Append to a whole reply, which has no frames and is parsed at its end."""
        whole += chunk
        if len(whole) > MAX_EVENT_BYTES:
            raise Malformed(f"the reply is larger than {MAX_EVENT_BYTES} bytes")
        return []

    def _decode_frame(self, frame: Frame) -> None:
        """Decode one frame."""
        raise NotImplementedError

    def _end(self) -> None:
        """Finish the reply at the end of the stream; raise a `Problem` if it is incomplete."""
        raise NotImplementedError

    def _fail(self, error: Malformed | Problem) -> None:
        self._is_over = True
        problem = error if isinstance(error, Problem) else Problem("malformed_reply", error.message, where=error.where)
        self._events.append(Failed(problem))
