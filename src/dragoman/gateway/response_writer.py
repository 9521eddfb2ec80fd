"""Writes the response to the client: a whole reply, or a stream as its events arrive from an upstream.

A reply that belongs to a conversation is saved before the client receives its last event.
"""

from collections.abc import Callable

from dragoman.core.events import Failed, Started
from dragoman.core.problems import EMPTY_REPLY_CODE, Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Response
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.context import CallContext, RequestContext
from dragoman.gateway.errors import add_id_to_event, map_failure
from dragoman.gateway.record import Record, build_response_headers
from dragoman.gateway.upstream_call import UpstreamReply
from dragoman.http.message import JSON_HEADERS
from dragoman.http.upstream_connection import ConnectionFailure
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.signature_recorder import SignatureRecorder
from dragoman.interpreter.signatures import find_signed_sections
from dragoman.interpreter.stream import StreamTranslator
from dragoman.wire.json_stream import ArrayFramer

SSE_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_ARRAY_HEADERS = {"content-type": "application/json; charset=UTF-8", "cache-control": "no-cache"}


async def read_reply(reply: UpstreamReply, context: CallContext) -> tuple[bytes, Response]:
    """Read and translate a whole upstream reply; return the client's body and the reply in the core."""
    request, record = context.request, context.record
    try:
        body = await reply.incoming.read()
    except ConnectionFailure as failure:
        raise map_failure(failure, record.upstream) from None
    source = reply.target.upstream.dialect
    rendered = translate_response(body, source, request.dialect, reply.context)
    response = rendered.response or _parse_untranslated(body, source)
    record.reply_losses = rendered.losses
    if reply.signature_store is not None and (sections := find_signed_sections(response)):
        await reply.signature_store.save(request.owner, sections)
    return rendered.body, response


async def send_whole(body: bytes, response: Response, context: RequestContext) -> None:
    """Save a whole reply, if it belongs to a conversation, and send it."""
    record, recorder = context.record, context.recorder
    record.usage, record.finish = response.usage, response.finish.reason
    if recorder is not None:
        body = await recorder.save_reply(body, response)
    record.status = 200
    record.note_first_token()
    await context.exchange.send(200, build_response_headers(record, JSON_HEADERS), body)
    record.outcome = "answered"


def _parse_untranslated(body: bytes, dialect: str) -> Response:
    """Parse a reply that is forwarded unchanged; an error, an HTML page or half a reply raises a `Problem`."""
    try:
        return dialect_named(dialect).parse_response(body)
    except Problem as problem:
        if problem.code != EMPTY_REPLY_CODE:
            raise
        return Response(id="", model="", parts=(), finish=Finish("other", ""))


def start_stream(context: RequestContext) -> None:
    """Send the head of a streamed response and the events that were held back."""
    record = context.record
    record.status = 200
    content_headers = _ARRAY_HEADERS if context.request.framing == "array" else SSE_HEADERS
    context.exchange.start(200, build_response_headers(record, content_headers), first=context.held_events)
    context.held_events = b""
    context.has_sent = True


class StreamWriter:
    """Writes rendered events to the client; the stream starts with the first event with content or a heartbeat.

    Each attempt has its own writer: what was held back of the last attempt is dropped.
    """

    def __init__(self, request: Request | None, context: RequestContext) -> None:
        self._request = request
        self._context = context
        self._exchange = context.exchange
        self._record = context.record
        self._recorder = context.recorder
        if self._recorder is not None:
            self._recorder.reset()
        if not self._exchange.started:
            context.framer, context.held_events = None, b""
        if context.framer is None and context.request.framing == "array":
            context.framer = ArrayFramer()
        self._framer = context.framer

    async def write(self, events: bytes, *, has_begun: bool) -> None:
        """Send events; buffer them while the stream has not started and the reply has no content yet (`has_begun`)."""
        exchange, context = self._exchange, self._context
        framed = events if self._recorder is None else self._recorder.feed(events)
        framed = framed if self._framer is None else self._framer.feed(framed)
        if exchange.started:
            context.has_sent = True
            if has_begun:
                self._record.note_first_token()
            if framed or exchange.is_write_paused:
                await exchange.write(framed)
            return
        context.held_events += framed
        if has_begun:
            self._record.note_first_token()
            start_stream(context)

    def push(self, events: bytes) -> bool:
        """Send events at once in a stream that has started; return whether the client keeps up."""
        exchange = self._exchange
        if framed := events if self._framer is None else self._framer.feed(events):
            exchange.push(framed)
            self._context.has_sent = True
        return not exchange.is_write_paused

    async def end(self, events: bytes, problem: Problem | None, *, has_begun: bool = True) -> Problem | None:
        """Save the reply and send the last events; return the error that the client received.

        Raises the error if the stream has not started.
        """
        exchange = self._exchange
        if problem is not None and not exchange.started:
            raise problem
        if self._recorder is not None:
            # Events that the client may receive before the reply is saved are sent first.
            await self.write(events if problem is None else add_id_to_event(events, self._record), has_begun=has_begun)
            events, problem = await self._save(problem)
        if problem is not None:
            events = add_id_to_event(events, self._record)
        if not exchange.started:
            start_stream(self._context)
        if not exchange.is_disconnected:
            self._record.outcome = "answered" if problem is None else "failed"
        await exchange.end(events if self._framer is None else self._framer.feed(events) + self._framer.close())
        return problem

    async def fail(self, problem: Problem) -> None:
        """End a stream that has started but has no content with an error."""
        self._record.problem, self._record.outcome = problem, "failed"
        request = self._context.request
        encoder = dialect_named(request.dialect).encoder(None)
        events = encoder.feed(Started("", request.call.model)) + encoder.feed(Failed(problem))
        await self.end(events, problem, has_begun=False)

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


class ReplyStream:
    """Translates an upstream's stream, and saves what is signed in it for a client that may not send it back."""

    def __init__(self, reply: UpstreamReply, request: ClientRequest) -> None:
        self._incoming = reply.incoming
        self._upstream = reply.target.upstream.name
        self._owner = request.owner
        self._signature_store = reply.signature_store
        context, self._signature_watch = reply.context, SignatureRecorder()
        watch = self._signature_watch if reply.signature_store is not None else None
        self.translator = StreamTranslator(reply.target.upstream.dialect, request.dialect, context, watch)
        self._push: Callable[[bytes], bool] | None = None
        self._unsent = b""
        """The events of the last chunk, if they must not be sent yet."""

    async def read_events(self, push: Callable[[bytes], bool] | None = None) -> bytes:
        """Return the client's events for the next chunk of the upstream; a lost connection is one that ends the stream.

        With `push`, the events of many chunks are sent by that at once, and those that it may not send are returned.
        """
        translator = self.translator
        try:
            if push is not None:
                self._push = push
                is_whole = await self._incoming.deliver_to(self._on_data)
                events, self._unsent = self._unsent, b""
                if is_whole and not translator.over:
                    events += translator.close()
            else:
                data = await self._incoming.read_chunk()
                events = translator.feed(data) if data else translator.close()
        except ConnectionFailure as failure:
            return translator.fail(map_failure(failure, self._upstream))
        if self._signature_store is not None and (sections := self._signature_watch.ended):
            self._signature_watch.ended = []
            await self._signature_store.save(self._owner, sections)
        return events

    def _on_data(self, data: bytes) -> bool:
        """Translate data and send its events at once; return whether more data may be delivered to this callback."""
        events = self.translator.feed(data)
        if self.translator.over or self._signature_watch.ended or self._push is None:
            self._unsent = events
            return False
        return self._push(events)

    def note_end(self, record: Record) -> None:
        """Note in a record how the stream ended."""
        translator = self.translator
        record.reply_losses, record.usage = translator.losses, translator.usage
        record.finish = translator.finish.reason if translator.finish is not None else ""


class UpstreamStream:
    """Writes an upstream's stream to the client as it arrives."""

    def __init__(self, reply: UpstreamReply, context: RequestContext) -> None:
        self._context = context
        self._stream = ReplyStream(reply, context.request)
        self._writer = StreamWriter(reply.translation.request, context)

    async def write(self) -> None:
        """Write the whole stream; raise the error of a stream that fails before it has started."""
        stream, translator, writer = self._stream, self._stream.translator, self._writer
        exchange, record = self._context.exchange, self._context.record
        problem: Problem | None = None
        try:
            events = b""
            while not translator.over:
                if events or exchange.is_write_paused:
                    await writer.write(events, has_begun=translator.begun)
                can_push = self._context.recorder is None and record.first_token_seconds is not None
                events = await stream.read_events(writer.push if can_push else None)
            if translator.begun and (exchange.started or translator.problem is None):
                record.note_first_token()
            problem = await writer.end(events, translator.problem, has_begun=translator.begun)
        finally:
            stream.note_end(record)
            record.problem = problem or translator.problem
