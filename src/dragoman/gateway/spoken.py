"""Tell a client what somebody else's events say, whole or as a stream, in the client's own dialect."""

from collections.abc import AsyncIterator, Iterable
from time import time
from typing import TYPE_CHECKING

from msgspec import structs

from dragoman.core.events import Event, Failed, PartStarted, Started
from dragoman.core.request import Request
from dragoman.core.stream import Collector, Sequencer
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.ask import Ask
from dragoman.gateway.pulse import Pulse
from dragoman.gateway.record import Record
from dragoman.gateway.telling import headers_of, signed_event
from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON
from dragoman.interpreter.aliases import minted_id
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply import ReplyFitter

if TYPE_CHECKING:
    from dragoman.core.problems import Problem


class Spoken:
    """Tells one reply that is given as events of `source`, the dialect that they were read in."""

    def __init__(self, ask: Ask, asked: Request, exchange: Exchange, record: Record, source: str) -> None:
        self._dialect = dialect_named(ask.dialect)
        self._asked = asked
        self._exchange = exchange
        self._record = record
        here = dialect_named(source)
        self._ledger = Ledger(here.reply_pointers)
        self._sequencer = Sequencer()
        self._fitter = None
        if here is not self._dialect:
            self._fitter = ReplyFitter(
                self._dialect,
                self._ledger,
                whole=not ask.call.stream,
                salt=record.id,
                source_issuer=here.issuer,
                field_place=here.field_place,
                repeated=here.repeated,
                finish_words=here.finish_words,
                source=here,
            )

    async def whole(self, events: AsyncIterator[Event]) -> None:
        """Send a whole reply; raises the `Problem` that the events end with."""
        collector = Collector()
        async for event in events:
            for told in self._fitted(event):
                collector.feed(told)
        response = collector.response()
        self._record.usage, self._record.finish, self._record.status = response.usage, response.finish.reason, 200
        self._record.reply_losses = self._ledger.losses()
        self._record.note_first()
        body = self._dialect.build_response(response, self._asked)
        await self._exchange.send(200, headers_of(self._record, JSON), body)
        self._record.outcome = "answered"

    async def stream(self, events: AsyncIterator[Event], pulse: Pulse) -> None:
        """Send a stream, which begins with the first thing that is said."""
        encoder, exchange, collector = self._dialect.encoder(self._asked), self._exchange, Collector()
        problem: Problem | None = None
        async for event in events:
            for told in self._fitted(event):
                if isinstance(told, Failed):
                    problem = told.problem
                    if not exchange.started:
                        raise problem
                collector.feed(told)
                written = encoder.feed(told)
                written = pulse.framer.feed(signed_event(written, self._record) if problem is not None else written)
                if exchange.started:
                    pulse.spoke = True
                    await exchange.write(written)
                else:
                    pulse.held += written
                    if isinstance(told, PartStarted):
                        self._record.note_first()
                        pulse.begin()
        if not exchange.started:
            pulse.begin()
        self._record.problem, self._record.outcome = problem, "answered" if problem is None else "failed"
        if problem is None:
            response = collector.response()
            self._record.usage, self._record.finish = response.usage, response.finish.reason
        self._record.reply_losses = self._ledger.losses()
        await exchange.end(pulse.framer.close())

    def _fitted(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Started):
            named = event.id or minted_id(self._dialect.reply_prefix, self._record.id)
            event = structs.replace(event, id=named, created=event.created or int(time()))
        for ordered in self._sequencer.feed(event):
            yield from self._fitter.feed(ordered) if self._fitter is not None else (ordered,)
