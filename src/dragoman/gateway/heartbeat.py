"""Starts a stream to the client in time and keeps its connection alive.

A stream starts with the first event with content, or after `hold` seconds, even if the upstream has not responded yet.
From then on blank lines keep the connection alive while nothing else is sent, and errors are sent in the stream.
"""

import asyncio
from collections.abc import Awaitable

from dragoman.core.events import Failed, Started
from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.conversation_recorder import ConversationRecorder
from dragoman.gateway.errors import add_id_to_event
from dragoman.gateway.record import Record, build_response_headers
from dragoman.http.exchange import Exchange
from dragoman.wire.json_stream import ArrayFramer

_BLANK_LINE = b"\n"
"""The only heartbeat that every client ignores."""
SSE_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_ARRAY_HEADERS = {"content-type": "application/json; charset=UTF-8", "cache-control": "no-cache"}


class Heartbeat:
    """Starts one stream and keeps it alive."""

    def __init__(self, request: ClientRequest, exchange: Exchange, record: Record) -> None:
        self._request = request
        self._exchange = exchange
        self._record = record
        self._loop = asyncio.get_running_loop()
        self.has_sent = False
        """Whether something was sent since the last heartbeat."""
        self.reset()

    def reset(self) -> None:
        """Start another attempt: drop the events of the last one that were held back."""
        self._array_framer = ArrayFramer() if self._request.framing == "array" else None
        self.held_events = b""
        """Events before the first one with content."""

    def frame(self, events: bytes) -> bytes:
        """Return events in the client's framing."""
        return events if self._array_framer is None else self._array_framer.feed(events)

    def frame_end(self, events: bytes) -> bytes:
        """Return the last events and the end of the stream in the client's framing."""
        return events if self._array_framer is None else self._array_framer.feed(events) + self._array_framer.close()

    async def run(
        self, work: Awaitable[object], hold: float, interval: float, recorder: ConversationRecorder | None = None
    ) -> None:
        """Await `work`; start the stream after `hold` seconds at the latest, and keep it alive until `work` is done.

        An error before the first content is sent in the stream if that has started, else raised.
        """
        self._timer = self._loop.call_later(hold, self._on_timer, interval)
        try:
            await work
        except Problem as problem:
            if not self._exchange.started or self._exchange.ended or self._record.first_token_seconds is not None:
                raise
            await self._send_failure(problem, recorder)
        finally:
            self._timer.cancel()

    def start_stream(self) -> None:
        """Send the response head and the events that were held back."""
        record = self._record
        record.status = 200
        headers = build_response_headers(record, SSE_HEADERS if self._array_framer is None else _ARRAY_HEADERS)
        self._exchange.start(200, headers, first=self.held_events)
        self.held_events = b""
        self.has_sent = True

    async def _send_failure(self, problem: Problem, recorder: ConversationRecorder | None) -> None:
        """End a stream that has started but has no content with an error."""
        self._record.problem, self._record.outcome = problem, "failed"
        encoder = dialect_named(self._request.dialect).encoder(None)
        events = encoder.feed(Started("", self._request.call.model)) + encoder.feed(Failed(problem))
        if recorder is not None:
            recorder.reset()
            events = recorder.feed(events) + recorder.take_held()
        await self._exchange.end(self.frame_end(add_id_to_event(events, self._record)))

    def _on_timer(self, interval: float) -> None:
        """Start the stream if it has not started; else send a blank line if nothing was sent since the last one."""
        if self._exchange.is_disconnected:
            return
        if not self._exchange.started:
            self.start_stream()
        elif not self.has_sent:
            self._exchange.push(_BLANK_LINE)
        self.has_sent = False
        self._timer = self._loop.call_later(interval, self._on_timer, interval)
