"""Write a stream to the client, as its events arrive from the upstream or from an agent.

What belongs to a conversation is saved before the client receives the end of it.
"""

from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.gateway.context import RequestContext
from dragoman.gateway.errors import add_id_to_event, map_failure
from dragoman.gateway.heartbeat import Heartbeat
from dragoman.gateway.upstream_call import UpstreamReply
from dragoman.http.link import Failure
from dragoman.interpreter.signatures import CallWatch
from dragoman.interpreter.stream import StreamTranslator


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
            await self.write(events if problem is None else add_id_to_event(events, self._record), begun=begun)
            events, problem = await self._save(problem)
        if problem is not None:
            events = add_id_to_event(events, self._record)
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
        source, dialect, answered = reply.target.upstream.dialect, context.request.dialect, reply.context
        self._calls = CallWatch()
        watch = self._calls if reply.vault is not None else None
        self._translator = StreamTranslator(source, dialect, answered, watch)
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
        if self._vault is not None and (calls := self._calls.ended):
            self._calls.ended = []
            await self._vault.keep(self._context.request.owner, calls)
        return events

    def _on_data(self, data: bytes) -> bool:
        """Translate data and send its events at once; return whether more data may be delivered this way."""
        events = self._translator.feed(data)
        if self._translator.over or self._calls.ended:
            self._unsent = events
            return False
        return self._writer.push(events)
