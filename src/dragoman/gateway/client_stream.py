"""Writes a stream to the client as its events arrive from an upstream or an agent.

A reply that belongs to a conversation is saved before the client receives its last event.
"""

from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.gateway.context import RequestContext
from dragoman.gateway.errors import add_id_to_event, map_failure
from dragoman.gateway.heartbeat import Heartbeat
from dragoman.gateway.upstream_call import UpstreamReply
from dragoman.http.upstream_connection import ConnectionFailure
from dragoman.interpreter.signatures import CallRecorder
from dragoman.interpreter.stream import StreamTranslator


class StreamWriter:
    """Writes rendered events to the client; the stream starts with the first event with content or a heartbeat."""

    def __init__(self, request: Request | None, context: RequestContext, heartbeat: Heartbeat) -> None:
        self._request = request
        self._exchange = context.exchange
        self._record = context.record
        self._recorder = context.recorder
        self._heartbeat = heartbeat
        if self._recorder is not None:
            self._recorder.reset()
        if not self._exchange.started:
            heartbeat.reset()

    async def write(self, events: bytes, *, has_begun: bool) -> None:
        """Send events; buffer them while the stream has not started and the reply has no content yet (`has_begun`)."""
        exchange, heartbeat = self._exchange, self._heartbeat
        framed = heartbeat.frame(events if self._recorder is None else self._recorder.feed(events))
        if exchange.started:
            heartbeat.has_sent = True
            if has_begun:
                self._record.note_first_token()
            if framed or exchange.is_write_paused:
                await exchange.write(framed)
            return
        heartbeat.held_events += framed
        if has_begun:
            self._record.note_first_token()
            heartbeat.start_stream()

    def push(self, events: bytes) -> bool:
        """Send events at once in a stream that has started; return whether the client keeps up."""
        exchange, heartbeat = self._exchange, self._heartbeat
        if framed := heartbeat.frame(events):
            exchange.push(framed)
            heartbeat.has_sent = True
        return not exchange.is_write_paused

    async def end(self, events: bytes, problem: Problem | None, *, has_begun: bool = True) -> Problem | None:
        """Save the reply and send the last events; return the error that the client received.

        Raises the error if the stream has not started.
        """
        exchange, heartbeat, recorder = self._exchange, self._heartbeat, self._recorder
        if problem is not None and not exchange.started:
            raise problem
        if recorder is not None:
            # Events that the client may receive before the reply is saved are sent first.
            await self.write(events if problem is None else add_id_to_event(events, self._record), has_begun=has_begun)
            events, problem = await self._save(problem)
        if problem is not None:
            events = add_id_to_event(events, self._record)
        if not exchange.started:
            heartbeat.start_stream()
        if not exchange.is_disconnected:
            self._record.outcome = "answered" if problem is None else "failed"
        await exchange.end(heartbeat.frame_end(events))
        return problem

    async def _save(self, problem: Problem | None) -> tuple[bytes, Problem | None]:
        """Save the reply; return the events that were held back for that, and an error if it cannot be saved."""
        recorder = self._recorder
        if recorder is None:
            return b"", problem
        if problem is not None:
            return recorder.take_held(), problem
        try:
            return await recorder.save_stream(self._request), None
        except Problem as failure:
            if not self._exchange.started:
                raise
            return recorder.render_failure(failure, self._request), failure


class UpstreamStream:
    """Translates an upstream's stream and writes it to the client as it arrives."""

    def __init__(self, reply: UpstreamReply, context: RequestContext, heartbeat: Heartbeat) -> None:
        self._incoming = reply.incoming
        self._context = context
        self._signature_store = reply.signature_store
        source, dialect, reply_context = reply.target.upstream.dialect, context.request.dialect, reply.context
        self._call_watch = CallRecorder()
        watch = self._call_watch if reply.signature_store is not None else None
        self._translator = StreamTranslator(source, dialect, reply_context, watch)
        self._writer = StreamWriter(reply.translation.request, context, heartbeat)
        self._unsent = b""
        """The events of the last chunk, if they must not be sent yet."""

    async def write(self) -> None:
        """Write the whole stream; raise the error of a stream that fails before it has started."""
        translator, writer = self._translator, self._writer
        exchange, record = self._context.exchange, self._context.record
        problem: Problem | None = None
        try:
            events = b""
            while not translator.over:
                if events or exchange.is_write_paused:
                    await writer.write(events, has_begun=translator.begun)
                events = await self._read_events()
            if translator.begun and (exchange.started or translator.problem is None):
                record.note_first_token()
            problem = await writer.end(events, translator.problem, has_begun=translator.begun)
        finally:
            record.reply_losses, record.usage = translator.losses, translator.usage
            record.problem = problem or translator.problem
            record.finish = translator.finish.reason if translator.finish is not None else ""

    async def _read_events(self) -> bytes:
        """Return the events of the next upstream chunk that were not sent yet."""
        translator, record = self._translator, self._context.record
        try:
            if self._context.recorder is None and record.first_token_seconds is not None:
                is_whole = await self._incoming.deliver_to(self._on_data)
                events, self._unsent = self._unsent, b""
                if is_whole and not translator.over:
                    events += translator.close()
            else:
                data = await self._incoming.read_chunk()
                events = translator.feed(data) if data else translator.close()
        except ConnectionFailure as failure:
            problem = map_failure(failure, record.upstream)
            if not self._context.exchange.started:
                raise problem from None
            return translator.fail(problem)
        if self._signature_store is not None and (calls := self._call_watch.ended):
            self._call_watch.ended = []
            await self._signature_store.save(self._context.request.owner, calls)
        return events

    def _on_data(self, data: bytes) -> bool:
        """Translate data and send its events at once; return whether more data may be delivered to this callback."""
        events = self._translator.feed(data)
        if self._translator.over or self._call_watch.ended:
            self._unsent = events
            return False
        return self._writer.push(events)
