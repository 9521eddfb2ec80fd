"""A run on its way to the client, whole or as a stream.

What the client is not told of is kept before it hears the end.
"""

from collections.abc import AsyncIterator

from dragoman.agent import RunEnded, Step
from dragoman.core.events import Event
from dragoman.dialects.record import Dialect
from dragoman.gateway.agents.asides import Asides
from dragoman.gateway.agents.crew import Crew
from dragoman.gateway.agents.telling import Telling
from dragoman.gateway.ask import Ask
from dragoman.gateway.pulse import Pulse
from dragoman.gateway.record import Record
from dragoman.gateway.sessions.keeping import Keeper
from dragoman.gateway.spoken import Spoken
from dragoman.http.exchange import Exchange


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
        self._telling = telling
        self._owner = ask.owner
        self._record = record
        self._asides = asides
        self._spoken = Spoken(dialect, crew.asked, exchange, record, keeper=keeper, note=self._note)

    async def whole(self, steps: AsyncIterator[Step]) -> None:
        """Send a run as one whole reply."""
        await self._spoken.whole(self._events(steps))

    async def stream(self, steps: AsyncIterator[Step], pulse: Pulse) -> None:
        """Send a run as a stream."""
        await self._spoken.stream(self._events(steps), pulse)

    def _note(self) -> None:
        self._record.losses = (*self._record.losses, *self._telling.losses)

    async def _events(self, steps: AsyncIterator[Step]) -> AsyncIterator[Event]:
        async for step in steps:
            if isinstance(step, RunEnded):
                await self._asides.keep(self._owner, self._telling.messages, self._telling.ids)
            for event in self._telling.feed(step):
                yield event
