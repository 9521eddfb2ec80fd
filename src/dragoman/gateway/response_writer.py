"""Write a reply to the client, whole or as a stream, from an upstream's bytes or from events.

What belongs to a conversation is saved before the client receives the end of it.
"""

from collections.abc import AsyncIterator, Callable

from dragoman.core.events import Event, Failed, PartStarted
from dragoman.core.problems import NOTHING_SAID, Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Response
from dragoman.core.stream import Collector
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.context import RequestContext
from dragoman.gateway.heartbeat import Heartbeat
from dragoman.gateway.record import headers_of, signed_event
from dragoman.gateway.upstream_call import UpstreamReply, map_failure
from dragoman.http.link import Failure
from dragoman.http.message import JSON
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.signing import CallWatch, calls_in
from dragoman.interpreter.stream import StreamTranslator


async def write_reply(reply: UpstreamReply, context: RequestContext) -> None:
    """Translate a whole reply of an upstream and send it."""
    request, record = context.request, context.record
    try:
        body = await reply.incoming.read()
    except Failure as failure:
        raise map_failure(failure, record.upstream) from None
    source = reply.target.upstream.dialect
    rendered = translate_response(body, source, request.dialect, reply.context)
    response = rendered.response or _parse_passed_on(body, source)
    record.reply_losses = rendered.losses
    if reply.vault is not None and (calls := calls_in(response)):
        await reply.vault.keep(request.owner, calls)
    await _send_whole(rendered.body, response, context)


async def write_events(
    events: AsyncIterator[Event], request: Request, context: RequestContext, on_end: Callable[[], None]
) -> None:
    """Send a reply that is given as events in the client's terms; `on_end` is called when they are over.

    Raises the error that the events end with, unless the client has received something.
    """
    record, dialect, collector = context.record, dialect_named(context.request.dialect), Collector()
    if context.heartbeat is None:
        async for event in events:
            collector.feed(event)
        response = collector.response()
        on_end()
        await _send_whole(dialect.build_response(response, request), response, context)
        return
    writer, encoder = StreamWriter(request, context, context.heartbeat), dialect.encoder(request)
    problem: Problem | None = None
    async for event in events:
        if isinstance(event, Failed):
            problem = event.problem
            if not context.exchange.started:
                raise problem
        collector.feed(event)
        rendered = encoder.feed(event)
        rendered = rendered if problem is None else signed_event(rendered, record)
        await writer.write(rendered, begun=isinstance(event, PartStarted))
    on_end()
    if problem is None:
        response = collector.response()
        record.usage, record.finish = response.usage, response.finish.reason
    record.note_first()
    record.problem = await writer.end(b"", problem)


async def _send_whole(body: bytes, response: Response, context: RequestContext) -> None:
    record, keeper = context.record, context.keeper
    record.usage, record.finish = response.usage, response.finish.reason
    if keeper is not None:
        body = await keeper.whole(body, response)
    record.status = 200
    record.note_first()
    await context.exchange.send(200, headers_of(record, JSON), body)
    record.outcome = "answered"


def _parse_passed_on(body: bytes, dialect: str) -> Response:
    """Parse a reply that is passed on as it is: an error, a page or half a reply is no answer."""
    try:
        return dialect_named(dialect).parse_response(body)
    except Problem as problem:
        if problem.code != NOTHING_SAID:
            raise
        return Response(id="", model="", parts=(), finish=Finish("other", ""))


class StreamWriter:
    """Writes rendered events to the client; the stream starts with the first real event or a heartbeat."""

    def __init__(self, request: Request | None, context: RequestContext, heartbeat: Heartbeat) -> None:
        self._request = request
        self._exchange = context.exchange
        self._record = context.record
        self._keeper = context.keeper
        self._heartbeat = heartbeat
        if self._keeper is not None:
            self._keeper.begin()
        if not self._exchange.started:
            heartbeat.reset()

    async def write(self, events: bytes, *, begun: bool) -> None:
        """Send events; hold them back while the stream has not started and the reply has not `begun`."""
        exchange, heartbeat = self._exchange, self._heartbeat
        framed = heartbeat.frame(events if self._keeper is None else self._keeper.passing(events))
        if exchange.started:
            heartbeat.has_sent = True
            if begun:
                self._record.note_first()
            if framed or exchange.is_behind:
                await exchange.write(framed)
            return
        heartbeat.held += framed
        if begun:
            self._record.note_first()
            heartbeat.start_stream()

    def push(self, events: bytes) -> bool:
        """Send events at once, in a stream that has started; return whether the client keeps up."""
        exchange, heartbeat = self._exchange, self._heartbeat
        if framed := heartbeat.frame(events):
            exchange.push(framed)
            heartbeat.has_sent = True
        return not exchange.is_behind

    async def end(self, events: bytes, problem: Problem | None, *, begun: bool = True) -> Problem | None:
        """Save the answer and send the last events; return the error that the client received.

        Raises the error if the stream has not started.
        """
        exchange, heartbeat, keeper = self._exchange, self._heartbeat, self._keeper
        if problem is not None and not exchange.started:
            raise problem
        if keeper is not None:
            # What the client may receive before the answer is saved does not wait for that.
            await self.write(events if problem is None else signed_event(events, self._record), begun=begun)
            events, problem = await self._save(problem)
        if problem is not None:
            events = signed_event(events, self._record)
        if not exchange.started:
            heartbeat.start_stream()
        if not exchange.is_gone:
            self._record.outcome = "answered" if problem is None else "failed"
        await exchange.end(heartbeat.frame_end(events))
        return problem

    async def _save(self, problem: Problem | None) -> tuple[bytes, Problem | None]:
        """Save the answer; return the events that were held back for that, and the error if it cannot be saved."""
        keeper = self._keeper
        if keeper is None:
            return b"", problem
        if problem is not None:
            return keeper.let_go(), problem
        try:
            return await keeper.ended(self._request), None
        except Problem as unsaved:
            if not self._exchange.started:
                raise
            return keeper.failed(unsaved, self._request), unsaved


class UpstreamStream:
    """Translates an upstream's stream and writes it to the client as it arrives."""

    def __init__(self, reply: UpstreamReply, context: RequestContext, heartbeat: Heartbeat) -> None:
        self._incoming = reply.incoming
        self._context = context
        self._vault = reply.vault
        self._calls = CallWatch()
        watch = self._calls if reply.vault is not None else None
        source, dialect = reply.target.upstream.dialect, context.request.dialect
        self._translator = StreamTranslator(source, dialect, reply.context, watch)
        self._writer = StreamWriter(reply.translation.request, context, heartbeat)
        self._unsent = b""
        """The events of the last data, if they must wait for something."""

    async def write(self) -> None:
        """Write all of it; raise the error of a stream that fails before it has started."""
        translator, writer = self._translator, self._writer
        exchange, record = self._context.exchange, self._context.record
        problem: Problem | None = None
        try:
            events = b""
            while not translator.over:
                if events or exchange.is_behind:
                    await writer.write(events, begun=translator.begun)
                events = await self._next()
            if translator.begun and (exchange.started or translator.problem is None):
                record.note_first()
            problem = await writer.end(events, translator.problem, begun=translator.begun)
        finally:
            record.reply_losses, record.usage = translator.losses, translator.usage
            record.problem = problem or translator.problem
            record.finish = translator.finish.reason if translator.finish is not None else ""

    async def _next(self) -> bytes:
        """Return the events that the next data of the upstream is translated to and that were not sent yet."""
        translator, record = self._translator, self._context.record
        try:
            if self._context.keeper is None and record.first is not None:
                is_whole = await self._incoming.deliver_to(self._on_data)
                events, self._unsent = self._unsent, b""
                if is_whole and not translator.over:
                    events += translator.close()
            else:
                data = await self._incoming.piece()
                events = translator.feed(data) if data else translator.close()
        except Failure as failure:
            problem = map_failure(failure, record.upstream)
            if not self._context.exchange.started:
                raise problem from None
            return translator.fail(problem)
        if self._vault is not None and (calls := self._calls.take()):
            await self._vault.keep(self._context.request.owner, calls)
        return events

    def _on_data(self, data: bytes) -> bool:
        """Translate data and send its events at once; return whether more data may be delivered this way."""
        events = self._translator.feed(data)
        if self._translator.over or self._calls.has_ended:
            self._unsent = events
            return False
        return self._writer.push(events)
