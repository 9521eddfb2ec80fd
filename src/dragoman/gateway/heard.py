"""Events that were read in another dialect, in the terms of a client who asked here."""

from collections.abc import AsyncIterator, Iterable
from time import time

from msgspec import structs

from dragoman.core.events import Event, Started
from dragoman.core.stream import Sequencer
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.record import Record
from dragoman.interpreter.aliases import minted_id
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply import ReplyFitter
from dragoman.interpreter.reply_adapter import ReplyOptions


class Heard:
    """Fits the events of one reply, which is given in the dialect `source`."""

    def __init__(self, ask: ClientRequest, record: Record, source: str) -> None:
        here, there = dialect_named(source), dialect_named(ask.dialect)
        self._record = record
        self._prefix = there.reply_prefix
        self._ledger = Ledger(here.reply_pointers)
        self._sequencer = Sequencer()
        self._fitter = None
        if here is not there:
            options = ReplyOptions(salt=record.id, whole=not ask.call.stream)
            self._fitter = ReplyFitter(here, there, self._ledger, options)

    async def events(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """Tell what the client can be told."""
        async for event in events:
            for fitted in self._fitted(event):
                yield fitted

    def note(self) -> None:
        """Book what could not be told."""
        self._record.reply_losses = self._ledger.losses()

    def _fitted(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Started):
            named = event.id or minted_id(self._prefix, self._record.id)
            event = structs.replace(event, id=named, created=event.created or int(time()))
        for ordered in self._sequencer.feed(event):
            yield from self._fitter.feed(ordered) if self._fitter is not None else (ordered,)
