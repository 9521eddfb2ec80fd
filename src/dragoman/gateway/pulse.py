"""The signs of life of a stream.

A stream begins for the client with the first real event, or when that is too long in coming: also where the upstream
has not even begun to answer. From then on blank lines keep the connection alive while nothing else comes, and what goes
wrong is told in the stream.
"""

import asyncio
from collections.abc import Awaitable

from dragoman.core.events import Failed, Started
from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.ask import Ask
from dragoman.gateway.framing import framer
from dragoman.gateway.record import Record
from dragoman.gateway.sessions.keeping import Keeper
from dragoman.gateway.telling import headers_of, signed_event
from dragoman.http.exchange import Exchange

_BEAT = b"\n"
"""A blank line: the only heartbeat that no client stumbles over."""


class Pulse:
    """Begins a stream in time, and keeps it alive."""

    def __init__(self, ask: Ask, exchange: Exchange, record: Record) -> None:
        self._ask = ask
        self._exchange = exchange
        self._record = record
        self._loop = asyncio.get_running_loop()
        self.spoke = False
        """Something was sent since somebody looked."""
        self.renew()

    def renew(self) -> None:
        """Another attempt begins: what was held of the last one is forgotten."""
        self.framer = framer(self._ask.framing)
        self.held = b""
        """What has come before the first real event."""

    async def during(self, work: Awaitable[None], hold: float, beat: float, keeper: Keeper | None = None) -> None:
        """Begin the stream after so many seconds if `work` has not by then, and keep it alive until that is done.

        What goes wrong before anything was said is told in a stream that has begun, and raised before that.
        """
        self._timer = self._loop.call_later(hold, self._nudge, beat)
        try:
            await work
        except Problem as problem:
            if not self._exchange.started or self._exchange.ended or self._record.first is not None:
                raise
            await self._fail(problem, keeper)
        finally:
            self._timer.cancel()

    def begin(self) -> None:
        """Tell the client that a stream begins."""
        record = self._record
        record.status = 200
        headers = headers_of(record, {"content-type": self.framer.kind, "cache-control": "no-cache"})
        self._exchange.start(200, headers, first=self.held)
        self.held = b""
        self.spoke = True

    async def _fail(self, problem: Problem, keeper: Keeper | None) -> None:
        """End a stream of which the client has heard nothing but that it begins."""
        self._record.problem, self._record.outcome = problem, "failed"
        encoder = dialect_named(self._ask.dialect).encoder(None)
        told = encoder.feed(Started("", self._ask.call.model)) + encoder.feed(Failed(problem))
        if keeper is not None:
            keeper.begin()
            told = keeper.passing(told) + keeper.let_go()
        await self._exchange.end(self.framer.feed(signed_event(told, self._record)) + self.framer.close())

    def _nudge(self, beat: float) -> None:
        """Begin if nothing has yet, else send a sign of life if there was none for long."""
        if self._exchange.is_gone:
            return
        if not self._exchange.started:
            self.begin()
        elif not self.spoke:
            self._exchange.push(_BEAT)
        self.spoke = False
        self._timer = self._loop.call_later(beat, self._nudge, beat)
