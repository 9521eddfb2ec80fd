"""A reply that is given as events, on its way to the client: whole or as a stream, in the client's own dialect.

What the client hears the end of is kept before, where its conversation is.
"""

from collections.abc import AsyncIterator, Callable

from dragoman.core.events import Event, Failed, PartStarted
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Response
from dragoman.core.stream import Collector
from dragoman.dialects.record import Dialect
from dragoman.gateway.pulse import Pulse
from dragoman.gateway.record import Record
from dragoman.gateway.sessions.keeping import Keeper
from dragoman.gateway.telling import headers_of, signed_event
from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON


class Spoken:
    """Tells one reply, whose events are in the client's terms; `note` is called when they are over."""

    def __init__(  # noqa: PLR0913  what is passed on is what a request has
        self,
        dialect: Dialect,
        asked: Request,
        exchange: Exchange,
        record: Record,
        *,
        keeper: Keeper | None = None,
        note: Callable[[], None],
    ) -> None:
        self._dialect = dialect
        self._asked = asked
        self._exchange = exchange
        self._record = record
        self._keeper = keeper
        self._note = note

    async def whole(self, events: AsyncIterator[Event]) -> None:
        """Send a whole reply; raises the `Problem` that the events end with."""
        collector = Collector()
        async for event in events:
            collector.feed(event)
        response = collector.response()
        self._ended(response)
        body = self._dialect.build_response(response, self._asked)
        sent = body if self._keeper is None else await self._keeper.whole(body, response)
        self._record.status = 200
        self._record.note_first()
        await self._exchange.send(200, headers_of(self._record, JSON), sent)
        self._record.outcome = "answered"

    async def stream(self, events: AsyncIterator[Event], pulse: Pulse) -> None:
        """Send a stream, which begins with the first thing that is said."""
        if self._keeper is not None:
            self._keeper.begin()
        encoder, exchange, collector = self._dialect.encoder(self._asked), self._exchange, Collector()
        problem: Problem | None = None
        async for event in events:
            if isinstance(event, Failed):
                problem = event.problem
                if not exchange.started:
                    raise problem
            collector.feed(event)
            told = encoder.feed(event)
            told = signed_event(told, self._record) if problem is not None else told
            told = pulse.framer.feed(told if self._keeper is None else self._keeper.passing(told))
            if exchange.started:
                pulse.spoke = True
                await exchange.write(told)
            else:
                pulse.held += told
                if isinstance(event, PartStarted):
                    self._record.note_first()
                    pulse.begin()
        await self._over(collector, problem, pulse)

    async def _over(self, collector: Collector, problem: Problem | None, pulse: Pulse) -> None:
        """End a stream, once it is kept."""
        exchange, keeper = self._exchange, self._keeper
        if not exchange.started:
            pulse.begin()
        self._record.note_first()
        last = b""
        if problem is None:
            self._ended(collector.response())
            try:
                last = await keeper.ended(self._asked) if keeper is not None else b""
            except Problem as unkept:
                problem = unkept
                last = keeper.failed(unkept, self._asked) if keeper is not None else b""
        else:
            self._note()
            last = keeper.let_go() if keeper is not None else b""
        self._record.problem = problem
        if not exchange.is_gone:
            self._record.outcome = "answered" if problem is None else "failed"
        await exchange.end(pulse.framer.feed(last) + pulse.framer.close())

    def _ended(self, response: Response) -> None:
        self._note()
        self._record.usage, self._record.finish = response.usage, response.finish.reason
