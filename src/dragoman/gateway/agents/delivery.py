"""A run on its way to the client, whole or as a stream.

What the client hears the end of is kept before: the turn, where its conversation is, and what it was not told of.
"""

from collections.abc import AsyncIterator

from dragoman.agent import RunEnded, Step
from dragoman.core.events import Event, Failed, PartStarted
from dragoman.core.problems import Problem
from dragoman.core.response import Response
from dragoman.core.stream import Collector
from dragoman.dialects.record import Dialect
from dragoman.gateway.agents.asides import Asides
from dragoman.gateway.agents.crew import Crew
from dragoman.gateway.agents.telling import Telling
from dragoman.gateway.ask import Ask
from dragoman.gateway.pulse import Pulse
from dragoman.gateway.record import Record
from dragoman.gateway.sessions.keeping import Keeper
from dragoman.gateway.telling import headers_of, signed_event
from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON


class Delivery:
    """Tells one run."""

    def __init__(  # noqa: PLR0913, PLR0917  what is passed on is what a request has
        self,
        dialect: Dialect,
        crew: Crew,
        telling: Telling,
        ask: Ask,
        exchange: Exchange,
        record: Record,
        keeper: Keeper | None,
        asides: Asides,
    ) -> None:
        self._dialect = dialect
        self._crew = crew
        self._telling = telling
        self._ask = ask
        self._exchange = exchange
        self._record = record
        self._keeper = keeper
        self._asides = asides

    async def whole(self, steps: AsyncIterator[Step]) -> None:
        """Send a run as one whole reply."""
        collector = Collector()
        async for event in self._events(steps):
            collector.feed(event)
        response = collector.response()
        self._note(response)
        body = self._dialect.build_response(response, self._crew.asked)
        sent = body if self._keeper is None else await self._keeper.whole(body, response)
        self._record.status = 200
        self._record.note_first()
        await self._exchange.send(200, headers_of(self._record, JSON), sent)
        self._record.outcome = "answered"

    async def stream(self, steps: AsyncIterator[Step], pulse: Pulse) -> None:
        """Send a run as a stream, which begins with the first thing that is said."""
        if self._keeper is not None:
            self._keeper.begin()
        encoder, exchange, collector = self._dialect.encoder(self._crew.asked), self._exchange, Collector()
        problem: Problem | None = None
        async for event in self._events(steps):
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
            self._note(collector.response())
            try:
                last = await keeper.ended(self._crew.asked) if keeper is not None else b""
            except Problem as unkept:
                problem = unkept
                last = keeper.failed(unkept, self._crew.asked) if keeper is not None else b""
        elif keeper is not None:
            last = keeper.let_go()
        self._record.problem = problem
        if not exchange.is_gone:
            self._record.outcome = "answered" if problem is None else "failed"
        await exchange.end(pulse.framer.feed(last) + pulse.framer.close())

    def _note(self, response: Response) -> None:
        self._record.losses = (*self._record.losses, *self._telling.losses)
        self._record.usage, self._record.finish = response.usage, response.finish.reason

    async def _events(self, steps: AsyncIterator[Step]) -> AsyncIterator[Event]:
        async for step in steps:
            if isinstance(step, RunEnded):
                await self._asides.keep(self._ask.owner, self._telling.messages, self._telling.ids)
            for event in self._telling.feed(step):
                yield event
